"""A store that a newer version of the program has written to: runs are read, listed, shown, resumed."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Literal

import pytest

from journeyman import Agent
from journeyman.agent.ending import response
from journeyman.agent.state import RunState
from journeyman.app.journeyman import Journeyman
from journeyman.core.data import FORMAT
from journeyman.core.events import RunSuspended, UnknownFact, _Event, read_fact
from journeyman.core.runs import RunStatus
from journeyman.execution.recorder import MemoryJournal, Recorder
from journeyman.stores.processes import SqlPrograms
from journeyman.testing import FakeClock
from tests.app.conftest import Opens
from tests.app.shop import ADA, Ledger, deletes

NEWER = FORMAT + 1


async def rewrite(app: Journeyman, run_id: str) -> None:
    """Make a run's rows look as if a newer version had written them: unknown fields everywhere, an unknown fact."""

    def change(connection: Any) -> None:
        rows = connection.query("SELECT seq, body FROM facts WHERE run_id = ? ORDER BY seq", run_id)
        for seq, body in rows:
            fact = {**json.loads(body), "format": NEWER, "weather": {"sky": "blue"}}
            for part in ("task", "approval", "principal", "agent"):
                if isinstance(fact.get(part), dict):
                    fact[part]["mood"] = "new"
            connection.execute("UPDATE facts SET body = ? WHERE run_id = ? AND seq = ?", json.dumps(fact), run_id, seq)
        last, body = rows[-1]
        unknown = {"type": "moon_phase", "format": NEWER, "run_id": run_id, "seq": last, "time": 7.0, "phase": "full"}
        known = json.loads(connection.query("SELECT body FROM facts WHERE run_id = ? AND seq = ?", run_id, last)[0][0])
        connection.execute("UPDATE facts SET body = ?, type = ? WHERE run_id = ? AND seq = ?",
                           json.dumps(unknown), "moon_phase", run_id, last)  # fmt: skip
        connection.execute(
            "INSERT INTO facts (run_id, seq, type, body) VALUES (?, ?, ?, ?)",
            *(run_id, last + 1, known["type"], json.dumps({**known, "seq": last + 1})),
        )
        connection.execute("UPDATE runs SET last_seq = ? WHERE id = ?", last + 1, run_id)
        for table, column in (("runs", "asked"), ("approvals", "question")):
            key = "id" if table == "runs" else "run_id"
            for (text,) in connection.query(f"SELECT {column} FROM {table} WHERE {key} = ?", run_id):
                data = {**json.loads(text), "format": NEWER, "tides": [1, 2]}
                if "agent" in data:
                    data["agent"]["temper"] = "mild"
                    data["agent"]["tools"][0]["colour"] = "red"
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", json.dumps(data), run_id)

    await app.store._database.write(change)


async def test_a_run_that_a_newer_version_began_is_listed_shown_and_resumed(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    async with opens(deletes("W-1")) as app:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        await rewrite(app, handle.run_id)
    async with opens(deletes("W-1")) as app:
        assert [row.id for row in await app.store.runs.list()] == [handle.run_id]
        [handle] = await app.resume()
        assert (await handle.so_far()) is not None
        [approval] = await app.approvals.pending()
        await app.approvals.approve(approval.id, by="grace")
        assert (await handle.result()).answer == "Done."
        [unknown] = [event async for event in handle.events() if isinstance(event, UnknownFact)]
        assert json.loads(unknown.model_dump_json())["phase"] == "full"
    assert ledger.effects() == {("delete_order", "W-1"): 1}


async def test_a_run_in_a_status_that_only_a_newer_version_knows_is_shown_and_left_alone(
    opens: Opens, agent: Agent
) -> None:
    async with opens(deletes("W-1")) as app:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        await handle.wait()
        await app.store._database.write(lambda connection: connection.execute("UPDATE runs SET status = 'on_the_moon'"))
    async with opens(deletes("W-1")) as app:
        [row] = await app.store.runs.list()
        assert row.status is RunStatus.UNKNOWN
        await app.resume(handle.run_id)
        assert await app.runner.work_on(handle.run_id) is RunStatus.UNKNOWN
        assert (await app.store.runs.get(handle.run_id)).epoch == row.epoch  # type: ignore[union-attr]  # it is there


def test_a_fact_that_no_version_can_have_written_is_damage_and_not_skipped() -> None:
    for text in ('{"type": "run_suspended"}', "[]", '{"type": 3}', "{"):
        with pytest.raises(ValueError):  # noqa: PT011 - which one says less than that it is one
            read_fact(text)
    newer = read_fact(json.dumps({"type": "run_suspended", "format": NEWER, "status": "on_the_moon", "seq": 3}))
    assert isinstance(newer, UnknownFact)
    assert newer.seq == 3


def test_unknown_facts_change_no_state() -> None:
    state = RunState(result_limit=1000)
    state.apply(UnknownFact(content={"type": "moon_phase"}))
    assert state.status is RunStatus.QUEUED
    with pytest.raises(AssertionError):
        response("run", state)  # there is no task yet


class MoonPhase(_Event):
    """A fact of the next version."""

    since: ClassVar[int] = NEWER
    type: Literal["moon_phase"] = "moon_phase"


async def test_a_new_type_of_fact_is_not_written_while_an_older_program_is_at_work() -> None:
    journal, everybody_reads = MemoryJournal(), FORMAT
    recorder = Recorder("run", journal, clock=FakeClock(), format=lambda: everybody_reads)
    await recorder.record(MoonPhase(), RunSuspended(status=RunStatus.AWAITING_APPROVAL, waiting_for=()))  # type: ignore[arg-type]
    await recorder.record(MoonPhase())  # type: ignore[arg-type]
    assert [fact.type for fact in await journal.read("run")] == ["run_suspended"]
    everybody_reads = NEWER
    await recorder.record(MoonPhase())  # type: ignore[arg-type]
    assert [fact.type for fact in await journal.read("run")] == ["run_suspended", "moon_phase"]
    assert [fact.seq for fact in await journal.read("run")] == [1, 2]


async def test_new_facts_are_on_when_the_last_older_program_has_left(opens: Opens) -> None:
    async with opens(deletes()) as old:
        database = old.store._database
        newer = SqlPrograms(database, format=NEWER)
        assert await newer.announce("new", silent_seconds=60) == FORMAT
        await old.store.programs.leave(old._shared.owner)
        assert await newer.announce("new", silent_seconds=60) == NEWER
        await old.store.programs.announce("died", silent_seconds=60)
        assert await newer.announce("new", silent_seconds=-1) == NEWER  # the dead one is forgotten
