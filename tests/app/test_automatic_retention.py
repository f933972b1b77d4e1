"""What an app forgets by itself: all that is old where a retention is set, else ended runs alone."""

from __future__ import annotations

from journeyman import Agent, Journeyman
from journeyman.core.audit import PURGED, STORE_PURGED
from journeyman.stores.store import SqlStore
from journeyman.testing import FakeClock, ScriptedModel, call, say
from tests.app.conftest import Opens
from tests.app.shop import ADA, deletes
from tests.waiting import until

LATE = 4_000_000_000.0
TABLES = ("runs", "facts", "artifacts", "sessions", "messages", "calls", "gaps")


async def counted(app: Journeyman) -> dict[str, int]:
    store = app.store
    assert isinstance(store, SqlStore)
    sql = "SELECT " + ", ".join(f"(SELECT COUNT(*) FROM {table})" for table in TABLES)
    [row] = await store._database.read(lambda connection: connection.query(sql))
    return dict(zip(TABLES, row, strict=True))


async def one_of_each(app: Journeyman, agent: Agent) -> str:
    handle = await app.session("talk").send(agent, "Look", principal=ADA)
    await handle.result()
    await app.store.artifacts.put(handle.run_id, "long" * 100)
    assert await app.gaps.detect("Fly me to the moon", run_id=handle.run_id)
    await app.store.audit.append("note", actor="ada", run_id=None, subject="x", details={}, now=app.clock.time())
    return handle.run_id


async def test_with_a_retention_everything_old_is_forgotten_and_the_audit_says_so(opens: Opens, agent: Agent) -> None:
    async with opens(ScriptedModel([call("look", order_id="W-1"), say("Done.")])) as app:
        await one_of_each(app, agent)
        assert all((await counted(app)).values())
    async with opens(deletes("W-1")) as app:  # nor does a run that goes on lose anything
        waiting = await app.start(agent, "Delete W-1", principal=ADA)
        await waiting.wait()
        left = await counted(app)
    async with opens(deletes("W-1"), clock=FakeClock(start=LATE), retention_seconds=3600.0) as app:
        audit = app.store.audit

        async def told() -> bool:
            return bool(await audit.list(kind=STORE_PURGED))

        await until(told)
        [row] = await audit.list(kind=STORE_PURGED)
        assert row.actor is None
        assert {"runs": 1, "sessions": 1, "gaps": 1}.items() <= row.details.items()
        assert {"events", "artifacts", "messages", "calls"} <= row.details.keys()
        assert await audit.list(kind=PURGED)
        assert not await audit.list(kind="note")
        await audit.verify()
        assert await app.store.runs.get(waiting.run_id) is not None
        assert (await counted(app))["calls"] == left["calls"] - row.details["calls"]


async def test_without_one_only_ended_runs_are(opens: Opens, agent: Agent) -> None:
    async with opens(ScriptedModel([call("look", order_id="W-1"), say("Done.")])) as app:
        run_id = await one_of_each(app, agent)
        before = await counted(app)
    async with opens(deletes("W-1"), clock=FakeClock(start=LATE)) as app:

        async def gone() -> bool:
            return await app.store.runs.get(run_id) is None

        await until(gone)
        kept = {"sessions", "messages", "calls", "gaps"}
        assert {name: (await counted(app))[name] for name in kept} == {name: before[name] for name in kept}
        assert await app.store.audit.list(kind="note")
