"""The server dies in the middle of streaming chats; whoever comes back sees the rest, once."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.doors.http.restarting import STEPS
from tests.doors.http.serving import Sent, events_of
from tests.waiting import WAIT_SECONDS, until

CHATS = 20
PROJECT = Path(__file__).parents[3]


class Killable:
    """One server after another on one store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: asyncio.subprocess.Process | None = None

    async def start(self) -> str:
        port = self.folder / "port"
        port.unlink(missing_ok=True)
        self.process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.doors.http.restarting",
            f"sqlite:///{self.folder / 'store.db'}",
            str(self.folder),
            cwd=PROJECT,
        )
        async with asyncio.timeout(WAIT_SECONDS):
            while not port.exists() and self.process.returncode is None:  # noqa: ASYNC110 (another process)
                await asyncio.sleep(0.05)
        return f"http://127.0.0.1:{port.read_text()}"

    async def kill(self) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


async def follow(url: str, run_id: str, facts: list[Sent], *, first: bool, enough: asyncio.Event | None = None) -> None:
    """Take facts until the end, or until the server is gone."""
    async with httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client:
        last = {"Last-Event-ID": str(facts[-1].id)} if facts else {}
        if first or not facts:
            body = {"message": "Work", "run_id": run_id}
            request = client.stream("POST", "/api/v1/chat", json=body, headers=last)
        else:
            request = client.stream("GET", f"/api/v1/runs/{run_id}/events", headers=last)
        async with request as response:
            assert response.status_code == 200
            async for event in events_of(response):
                if event.id is not None:
                    facts.append(event)
                if enough is not None and len(facts) >= 12:
                    enough.set()


@pytest.mark.slow
async def test_no_fact_is_repeated_or_missing_after_the_server_was_killed(tmp_path: Path) -> None:
    server = Killable(tmp_path)
    chats: dict[str, list[Sent]] = {f"chat-run-{number}": [] for number in range(CHATS)}
    try:
        url = await server.start()
        some = asyncio.Event()
        streams = [
            asyncio.create_task(follow(url, run_id, facts, first=True, enough=some)) for run_id, facts in chats.items()
        ]
        async with asyncio.timeout(WAIT_SECONDS):
            await some.wait()
        await server.kill()
        await asyncio.gather(*streams, return_exceptions=True)
        assert any(facts and facts[-1].event != "run_finished" for facts in chats.values())
        url = await server.start()
        await asyncio.gather(*(follow(url, run_id, facts, first=False) for run_id, facts in chats.items()))
    finally:
        with suppress(ProcessLookupError):
            await server.kill()
    for facts in chats.values():
        assert [fact.id for fact in facts] == list(range(1, len(facts) + 1))
        assert facts[-1].event == "run_finished"
        done = [fact.json["record"]["result"] for fact in facts if fact.event == "call_finished"]
        assert done == [f"step {step} is done" for step in range(STEPS)]
    keys = set((tmp_path / "ledger").read_text().split())
    assert len(keys) == CHATS * STEPS


async def test_streams_end_without_a_word_when_the_server_is_told_to(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.doors.http.restarting", store, str(tmp_path)),
        stderr=asyncio.subprocess.PIPE,
        cwd=PROJECT,
    )
    await until((tmp_path / "port").exists)
    url = f"http://127.0.0.1:{(tmp_path / 'port').read_text()}"
    told: list[Sent] = []
    async with (
        httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client,
        client.stream("POST", "/api/v1/chat", json={"message": "Work"}) as response,
    ):
        async for event in events_of(response):
            if not told:
                process.send_signal(signal.SIGTERM)
            told.append(event)
    # Its end is an end of the connection in order, and not the run's: a client comes back for the rest.
    assert told
    assert told[-1].data != "[DONE]"
    assert process.stderr is not None
    said = (await process.stderr.read()).decode()
    assert await process.wait() == 0
    assert "Traceback" not in said, said
