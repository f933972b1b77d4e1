"""Is it ready? Quickly said, also when the store is away, and not without anybody who carries out runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from journeyman import Principal
from journeyman.app.configuration import Configuration
from journeyman.app.journeyman import Journeyman
from journeyman.doors.http import Tokens, health
from journeyman.testing import ScriptedModel
from tests.doors.http.serving import served
from tests.waiting import until


async def test_a_service_that_carries_out_runs_itself_is_ready(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        response = await client.get("/readyz")
        assert response.status_code == 200
        assert response.json()["workers"] is None


async def test_an_edit_of_the_configuration_that_was_refused_is_told(tmp_path: Path) -> None:
    file = tmp_path / "journeyman.yaml"
    file.write_text(f"version: 1\nstore: sqlite:///{tmp_path / 'store.db'}\ntoolkits: [hello]\n")
    configuration = Configuration(file, watched=False)
    principals = {
        "t" * 16: Principal("ada", permissions={"configuration:read"}),
        "u" * 16: Principal("bob"),
    }
    async with (
        served(tmp_path, configuration=configuration, tokens=Tokens(principals)) as server,
        server.client() as client,
    ):

        async def state(token: str) -> dict[str, Any]:
            answer = await client.get("/api/v1/configuration", headers={"Authorization": f"Bearer {token * 16}"})
            found: dict[str, Any] = answer.json()
            return found

        assert (await client.get("/readyz")).json()["configuration"] == "current"
        assert (await state("t"))["file"] == str(file)
        await configuration.take_over(b"version: 1\ntoolkit: []\n")
        assert (await client.get("/readyz")).json()["configuration"] == "refused"
        told = await state("t")
        assert told["current"] is False
        assert "2:1: toolkit: unknown key; did you mean 'toolkits'?" in told["problems"][0]
        assert await state("u") == {**told, "file": None, "problems": []}


async def test_a_server_that_is_away_makes_the_file_no_worse(tmp_path: Path) -> None:
    file = tmp_path / "journeyman.yaml"
    store = f"sqlite:///{tmp_path / 'store.db'}"
    file.write_text(f"version: 1\nstore: {store}\ntoolkits: [hello]\nmcp:\n  gone: {{command: [/no/such/thing]}}\n")
    async with (
        served(tmp_path, configuration=Configuration(file, watched=False)) as server,
        server.client() as client,
    ):
        told = (await client.get("/api/v1/configuration")).json()
        assert told["current"] is True
        assert "5:10: mcp.gone.command: cannot be opened: the MCP server 'gone'" in told["problems"][0]


async def test_a_store_that_is_away_is_said_so_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "READY_SECONDS", 0.2)
    async with served(tmp_path) as server, server.client() as client:
        looks, back = 0, threading.Event()
        version = server.service.store.schema_version

        async def waits(*_: Any) -> int:
            nonlocal looks
            looks += 1
            await asyncio.to_thread(back.wait)
            return await version()

        monkeypatch.setattr(type(server.service.store), "schema_version", waits)
        answers = await asyncio.gather(*(client.get("/readyz") for _ in range(20)))
        assert {answer.status_code for answer in answers} == {503}
        assert {answer.json()["code"] for answer in answers} == {"STORE_AWAY"}
        # However many ask, and however often: the store is looked at once at a time.
        assert (await client.get("/readyz")).status_code == 503
        assert looks == 1
        back.set()

        async def ready() -> bool:
            return (await client.get("/readyz")).status_code == 200

        await until(ready)


@pytest.mark.slow
async def test_without_a_worker_it_is_not_ready(tmp_path: Path, postgres_url: str) -> None:
    async with (
        served(tmp_path, store=postgres_url, workers=True, model=ScriptedModel([])) as server,
        server.client() as client,
    ):
        alone = await client.get("/readyz")
        assert (alone.status_code, alone.json()["code"]) == (503, "NO_WORKER")
        async with Journeyman(store=postgres_url, model=ScriptedModel([])):
            response = await client.get("/readyz")
            assert (response.status_code, response.json()["workers"]) == (200, 1)
        assert (await client.get("/readyz")).status_code == 503
        # One that died without a word, on this machine, and one that was last seen long ago on another.
        programs, database = server.service.store.programs, server.service.store._database
        await programs.announce("nowhere/1/1/aa", silent_seconds=1e9)
        sql = "UPDATE programs SET seen_at = seen_at - 3600 WHERE owner = 'nowhere/1/1/aa'"
        await database.write(lambda connection: connection.execute(sql))
        assert (await client.get("/readyz")).status_code == 503
        await programs.announce(_dead(), silent_seconds=1e9)
        assert (await client.get("/readyz")).status_code == 503


def _dead() -> str:
    """The name of an app in a process that is gone."""
    code = "from journeyman.app.owners import new_owner; print(new_owner())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.strip()


async def test_health_answers_those_who_want_no_body(tmp_path: Path) -> None:
    async with served(tmp_path) as server, server.client() as client:
        for path in ("/healthz", "/readyz"):
            head = await client.head(path)
            assert (head.status_code, head.content) == (200, b"")
            refused = await client.post(path)
            assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
