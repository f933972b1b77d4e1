"""Sessions of many turns: a run begins with what was said, and does not write all of it down again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from journeyman import Agent, Limits
from journeyman.core.events import RunStarted
from journeyman.core.runs import Message
from journeyman.testing import ScriptedModel, say
from tests.app.conftest import Opens

SAID = "x" * 500
TURNS = 1_000


async def talk(app: Any, agent: Agent, turns: int) -> None:
    session = app.session("long")
    for _ in range(turns):
        assert (await (await session.send(agent, SAID)).result()).answer == SAID


def size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.glob("store.db*"))


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_session_grows_by_what_is_said_and_not_by_its_length(
    opens: Opens, agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with opens(ScriptedModel([say(SAID)])) as app:
        await talk(app, agent, TURNS // 2)
        half = size(tmp_path)
        await talk(app, agent, TURNS // 2)
        whole = size(tmp_path)
        rows = await app.store._database.read(
            lambda connection: connection.query("SELECT SUM(LENGTH(body)) FROM facts")
        )
    with capsys.disabled():
        print(f"\n{TURNS} turns: {whole / 1e6:.1f} MB, {rows[0][0] / TURNS:.0f} characters of facts a turn")
    assert whole < 2.5 * half
    assert rows[0][0] / TURNS < 10_000


async def test_a_run_of_a_session_begins_with_what_was_said_and_keeps_a_reference(opens: Opens, agent: Agent) -> None:
    model = ScriptedModel([say("One.")])
    async with opens(model) as app:
        session = app.session("s")
        for said in ("first", "second"):
            await (await session.send(agent, said)).result()
        handle = await session.send(agent, "third")
        response = await handle.result()
        assert [message.content for message in response.messages] == [
            *("first", "One.", "second", "One.", "third", "One.")
        ]
        [(body,)] = await app.store._database.read(
            lambda connection: connection.query("SELECT body FROM facts WHERE run_id = ? AND seq = 1", handle.run_id)
        )
        assert "One." not in body
        # Read back, by whoever goes on with the run, it is whole.
        [started, *_] = await app.store.runs.facts(handle.run_id)
        assert isinstance(started, RunStarted)
        assert [message.content for message in started.history] == ["first", "One.", "second", "One."]
        again = await handle.so_far()
        assert again is not None
        assert again.messages == response.messages
    assert [message.content for message in asked(model)] == ["first", "One.", "second", "One.", "third"]


def asked(model: ScriptedModel) -> list[Message]:
    return [message for message in model.requests[-1].messages if message.role != "system"]


async def test_no_more_is_read_of_a_session_than_a_model_may_be_sent(opens: Opens, agent: Agent) -> None:
    async with opens(ScriptedModel([say("Hm.")])) as app:
        session = app.session("s")
        for number in range(7):
            handle = await session.send(agent, f"number {number}", limits=Limits(history_messages=4))
            response = await handle.result()
        said = [message.content for message in response.messages if message.role == "user"]
        assert said == ["number 4", "number 5", "number 6"]
        assert len(await session.messages()) == 14


async def test_what_an_older_program_must_read_has_its_history_with_it(opens: Opens, agent: Agent) -> None:
    async with opens(ScriptedModel([say("One.")])) as app:
        session = app.session("s")
        await (await session.send(agent, "first")).result()
        app._shared.format = 1
        handle = await session.send(agent, "second")
        await handle.result()
        [(body,)] = await app.store._database.read(
            lambda connection: connection.query("SELECT body FROM facts WHERE run_id = ? AND seq = 1", handle.run_id)
        )
        assert "One." in body
        response = await handle.so_far()
        assert response is not None
        assert [message.content for message in response.messages] == ["first", "One.", "second", "One."]


async def test_what_is_said_twice_under_one_name_is_said_once(opens: Opens, agent: Agent) -> None:
    async with opens(ScriptedModel([say("One.")])) as app:
        session = app.session("s")
        first = await session.send(agent, "hello", run_id="mine")
        await first.result()
        second = await session.send(agent, "hello", run_id="mine")
        assert (await second.result()).answer == "One."
        assert [message.content for message in await session.messages()] == ["hello", "One."]
        assert len(await app.store.runs.list()) == 1
