"""What a run waits for, for whom and until when: over HTTP and from the command line."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from journeyman.testing import ScriptedModel, call
from tests.app.shop import ADA, Ledger, clerk, shop
from tests.doors.http.serving import served


async def test_what_a_run_waits_for_is_shown_with_whom_and_until_when(tmp_path: Path) -> None:
    library = shop(Ledger(tmp_path / "ledger"))
    model = ScriptedModel([call("delete_order", order_id="W-1")])
    async with served(tmp_path, library=library, model=model) as running, running.client() as client:
        session = running.service.app.session("s")
        first = await session.send(clerk(library), "Delete W-1", principal=ADA)
        await first.wait()
        second = await session.send(clerk(library), "And then", principal=ADA)
        asked, queued = [
            (await client.get(f"/api/v1/runs/{handle.run_id}")).json()["waits"] for handle in (first, second)
        ]
        [approval] = await running.service.app.approvals.pending()
        assert [(wait["reason"], wait["whom"], wait["until"]) for wait in asked] == [
            ("approval", "a person", approval.expires_at.isoformat().replace("+00:00", "Z"))
        ]
        assert [(wait["reason"], wait["whom"], wait["until"]) for wait in queued] == [
            ("turn", f"run {first.run_id}", None)
        ]
        url = f"sqlite:///{tmp_path / 'store.db'}"
        command = (sys.executable, "-m", "journeyman", "runs", "show", first.run_id, "--store", url)
        assert "waits for" in await _printed(*command)
        assert json.loads(await _printed(*command, "--json"))["waits"] == asked
        await first.cancel()
        await second.cancel()
        ended = (await client.get(f"/api/v1/runs/{first.run_id}")).json()
        assert (ended["waits"], ended["run"]["cancel_wanted"]) == ([], True)


async def _printed(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0
    return said.decode()
