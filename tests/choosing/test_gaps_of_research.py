"""What the research toolkit cannot do is said, and what it can do is no gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman import Journeyman, ToolLibrary
from journeyman.choosing.gaps import ToolGapDetector
from journeyman.retrieval.embedders import default_embedder
from journeyman.toolkits.research import ResearchTools


@pytest.mark.parametrize("embedded", [True, False])
async def test_somebodys_portfolio_is_nothing_that_research_finds(tmp_path: Path, embedded: bool) -> None:
    async with Journeyman(store=f"sqlite:///{tmp_path / 'store.db'}") as app:
        tools = ToolLibrary(ResearchTools(memory=app.memory, root=tmp_path).tools())
        detector = ToolGapDetector(tools, embedder=default_embedder() if embedded else None)
        report = await detector.detect("Retrieve my stock portfolio performance for Q3 2024")
        assert report is not None
        assert report.missing_tools == ("retrieve stock portfolio performance",)
        assert sorted(report.existing_tools_checked) == sorted(tools.names())


@pytest.mark.parametrize(
    "request_text",
    ["Search the web for the height of Mount Everest", "What time is it in Tokyo?", "Read the file notes.txt"],
)
async def test_what_the_toolkit_does_is_no_gap(tmp_path: Path, request_text: str) -> None:
    tools = ToolLibrary(ResearchTools(root=tmp_path).tools())
    assert await ToolGapDetector(tools, embedder=default_embedder()).detect(request_text) is None
