"""A cancel from another process is never lost, at whatever step it comes and through whatever door."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from journeyman import Agent, Principal, ToolContext, ToolLibrary, tool
from journeyman.app.desk import Desk
from journeyman.app.journeyman import Journeyman
from journeyman.app.service import open_service
from journeyman.core.events import Fact, RunFinished, RunSuspended
from journeyman.core.runs import RunStatus
from journeyman.doors.mcp import Gateway
from journeyman.doors.mcp.calls import Places
from journeyman.stores.journal import RetryingJournal
from journeyman.testing import ScriptedModel, call, say
from tests.app.conftest import Opens
from tests.app.shop import ADA, Ledger
from tests.app.test_relay import worker
from tests.doors.http.serving import served
from tests.stores.samples import numbered
from tests.waiting import until

Cancel = Callable[[str], Awaitable[None]]
APPENDS = 10
"""More than the run appends before it asks: its start, two steps, a call that reads, the question."""


def asks() -> ScriptedModel:
    return ScriptedModel([call("look", order_id="W-1"), call("delete_order", order_id="W-1"), say("Done.")])


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return (
        f"sqlite:///{tmp_path / 'store.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    )


class Interrupted:
    """Has something done before the so-manieth append of a run's worker, which goes on only after it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, cancel: Cancel) -> None:
        self.count = 0
        append = RetryingJournal.append

        async def interrupted(journal: Any, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
            number, self.count = self.count, self.count + 1
            if number == at:
                await cancel(run_id)
            await append(journal, run_id, facts, sync=sync)

        monkeypatch.setattr(RetryingJournal, "append", interrupted)


def silenced(app: Journeyman) -> None:
    """From now on it does not look by itself whether its runs are to be cancelled."""
    assert app.runner._housekeeping is not None
    app.runner._housekeeping.cancel()


async def must_be_cancelled(app: Journeyman, run_id: str, *, questions: int = 0) -> None:
    async def ended() -> bool:
        row = await app.store.runs.get(run_id)
        return row is not None and row.status.ended

    await until(ended)
    row = await app.store.runs.get(run_id)
    assert row is not None
    assert row.status is RunStatus.CANCELLED
    assert len(await app.approvals.pending()) == questions
    ends = [fact for fact in await app.store.runs.facts(run_id) if isinstance(fact, RunFinished)]
    assert [fact.status for fact in ends] == [RunStatus.CANCELLED]


@pytest.mark.parametrize("at", range(APPENDS))
async def test_a_cancel_from_another_process_is_kept_at_every_step_before_a_question(
    opens: Opens, agent: Agent, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    async with opens(asks()) as works, opens(None, library=ToolLibrary()) as other:
        silenced(works)  # so that nothing but the transaction that suspends can find it

        async def cancel(run_id: str) -> None:
            await other.cancel(run_id, by="grace")

        hook = Interrupted(monkeypatch, at, cancel)
        handle = await works.start(agent, "Delete W-1", principal=ADA)
        await works.runner.at_rest(handle.run_id)
        monkeypatch.undo()
        if hook.count <= at:  # it has suspended before, and is cancelled where it waits
            assert await handle.status() is RunStatus.AWAITING_APPROVAL
            await other.cancel(handle.run_id)
        await must_be_cancelled(other, handle.run_id)
    assert ("delete_order", "W-1") not in ledger.effects()


async def test_the_steps_at_which_a_run_is_cancelled_go_up_to_its_question(
    opens: Opens, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test above would leave out the one that matters."""

    async def nothing(run_id: str) -> None: ...

    async with opens(asks()) as works:
        hook = Interrupted(monkeypatch, 0, nothing)
        handle = await works.start(agent, "Delete W-1", principal=ADA)
        assert await handle.wait() is RunStatus.AWAITING_APPROVAL
    assert 5 <= hook.count <= APPENDS


@tool(risk="reversible")
async def wrap(what: str, context: ToolContext) -> str:
    """Wrap something."""
    for question in ("Which paper?", "Which ribbon?"):
        await context.ask(question, {"type": "object", "properties": {"answer": {"type": "string"}}})
    return f"{what} is wrapped"


@pytest.mark.parametrize("at", range(3 * APPENDS))
async def test_a_cancel_from_another_process_is_kept_at_every_step_around_what_a_tool_asks(
    opens: Opens, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    library = ToolLibrary([wrap])
    model = ScriptedModel([call("wrap", what="tea"), say("Done.")])
    async with opens(model, library=library) as works, opens(None, library=ToolLibrary()) as other:
        silenced(works)

        suspended = 0  # before the cancel

        async def cancel(run_id: str) -> None:
            nonlocal suspended
            suspended = sum(isinstance(fact, RunSuspended) for fact in await other.store.runs.facts(run_id))
            await other.cancel(run_id, by="grace")

        hook = Interrupted(monkeypatch, at, cancel)
        handle = await works.start(Agent(name="shop", instruction="Help.", tools=[wrap]), "Wrap tea", principal=ADA)
        while not (status := await handle.wait()).ended:
            assert status is RunStatus.AWAITING_APPROVAL
            for approval in await other.approvals.pending(run_id=handle.run_id):
                await works.approvals.approve(approval.id, by="ada", arguments={"answer": "red"})
            await works.resume(handle.run_id)
            await works.runner.at_rest(handle.run_id)
        monkeypatch.undo()
        if hook.count <= at or suspended == 2:  # after which its worker would look, which was silenced
            assert status in (RunStatus.COMPLETED, RunStatus.CANCELLED)
        else:
            await must_be_cancelled(other, handle.run_id)


@pytest.mark.parametrize("door", ["handle", "desk", "http", "command line"])
async def test_every_door_cancels_what_another_process_is_about_to_suspend(
    opens: Opens, agent: Agent, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    async with opens(asks()) as works, served(tmp_path, store=url, library=ToolLibrary()) as running:
        silenced(works)
        silenced(running.service.app)  # its app would resume what it finds

        async def cancel(run_id: str) -> None:
            app = running.service.app
            if door == "handle":
                await (await app.handle(run_id)).cancel()
            elif door == "desk":  # what Slack's buttons and MCP's notifications come to
                await Desk(app, Principal("root", permissions={"*"})).cancel(run_id)
            elif door == "http":
                async with running.client() as client:
                    assert (await client.post(f"/api/v1/runs/{run_id}/cancel")).status_code == 200
            else:
                command = (sys.executable, "-m", "journeyman", "runs", "cancel", run_id, "--store", url)
                process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
                said, _ = await process.communicate()
                assert (process.returncode, b"is to be cancelled" in said) == (0, True)

        append = RetryingJournal.append

        async def interrupted(journal: Any, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
            if any(isinstance(fact, RunSuspended) for fact in facts):
                await cancel(run_id)
            await append(journal, run_id, facts, sync=sync)

        monkeypatch.setattr(RetryingJournal, "append", interrupted)
        handle = await works.start(agent, "Delete W-1", principal=ADA)
        await must_be_cancelled(works, handle.run_id)


async def test_a_queued_run_is_cancelled_before_it_begins(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(asks(), concurrency=1) as works, opens(None, library=ToolLibrary()) as other:
        first = await works.session("s").send(agent, "Delete W-1", principal=ADA)
        assert await first.wait() is RunStatus.AWAITING_APPROVAL
        second = await works.session("s").send(agent, "Delete W-1", principal=ADA)
        await (await other.handle(second.run_id)).cancel()
        await must_be_cancelled(
            works, second.run_id, questions=1
        )  # in a moment: it may just be looked at, whether it can begin
        await (await other.handle(first.run_id)).cancel()
        await must_be_cancelled(works, first.run_id)
    assert ledger.effects() == {("look", "W-1"): 1}


@pytest.mark.parametrize("state", ["queued behind another", "asked", "stuck"])
async def test_whoever_finds_a_run_that_is_to_be_cancelled_ends_it(opens: Opens, agent: Agent, state: str) -> None:
    """The one who wanted it died after saying so."""
    async with opens(asks()) as app:
        wanted = await app.session("s").send(agent, "Delete W-1", principal=ADA)
        assert await wanted.wait() is RunStatus.AWAITING_APPROVAL
        if state == "queued behind another":
            wanted = await app.session("s").send(agent, "Delete W-1", principal=ADA)
        elif state == "stuck":
            epoch = await app.store.runs.claim(wanted.run_id, owner="gone", lease_seconds=60, in_turn=False)
            row = await app.store.runs.get(wanted.run_id)
            assert epoch is not None
            assert row is not None
            stuck = RunSuspended(status=RunStatus.STUCK, waiting_for=())
            journal = app.store.runs.journal(row.id, epoch=epoch)
            await journal.append(row.id, numbered(row.id, stuck, first=row.last_seq + 1))
        await app.store.runs.request_cancel(wanted.run_id, by="grace")
    async with opens(asks()) as app:
        await app.resume()
        await must_be_cancelled(app, wanted.run_id, questions=state == "queued behind another")
        audit = [row for row in await app.store.audit.list() if row.kind == "run_cancelled"]
        assert [row.actor for row in audit] == ["grace"]


@pytest.mark.slow
async def test_a_call_that_an_mcp_client_cancels_is_cancelled_where_a_worker_suspends_it(
    postgres_url: str, library: ToolLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places(decide=lambda approval: "Decide.", settle=lambda run, call: "Settle.")
    about_to, wanted, append = asyncio.Event(), asyncio.Event(), RetryingJournal.append

    async def waits(journal: Any, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        if any(isinstance(fact, RunSuspended) for fact in facts):
            about_to.set()
            await wanted.wait()
        await append(journal, run_id, facts, sync=sync)

    monkeypatch.setattr(RetryingJournal, "append", waits)
    async with (
        open_service(store=postgres_url, library=library, workers=True) as service,
        worker(postgres_url, library=library, model=ScriptedModel([])),
    ):
        gateway = Gateway(service, principal=lambda _: ADA, places=places)
        async with gateway.watching(), Client(gateway.server, mode="legacy") as client:
            calling = asyncio.ensure_future(client.call_tool("delete_order", {"order_id": "W-1"}))
            await about_to.wait()
            calling.cancel()
            await asyncio.wait((calling,))
            [row] = await service.store.runs.list()

            async def is_wanted() -> bool:
                found = await service.store.runs.get(row.id)
                return found is not None and found.cancel_wanted

            await until(is_wanted)
            wanted.set()
            await must_be_cancelled(service.app, row.id)
