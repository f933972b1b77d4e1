"""A short campaign of kills: server, gateway and client once for each kind of tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.mcp.kills import TOOLS, VICTIMS, Campaign


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_nothing_is_lost_and_nothing_doubled_whoever_is_killed(tmp_path: Path) -> None:
    found = await Campaign(tmp_path).run(len(VICTIMS) * len(TOOLS))
    assert found.right, found
    assert sum(found.kills.values()) == len(VICTIMS) * len(TOOLS)
