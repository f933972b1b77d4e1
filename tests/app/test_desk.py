"""What every door decides alike: who sees and changes what, what a run waits for, and repeated requests."""

from __future__ import annotations

import os
import socket

import pytest

from journeyman import Agent, BindingError, Principal, RunStatus, TaskInput, ToolLibrary
from journeyman.app.desk import ConflictError, Desk, NotFoundError, NotPermittedError, outcome_kind
from journeyman.app.journeyman import Journeyman
from journeyman.app.operations.runs import list_sessions
from journeyman.core.storing import RunOrder, RunRow
from journeyman.testing import ScriptedModel, say
from tests.app.conftest import Opens
from tests.app.shop import ADA, deletes

BOB = Principal("bob")
READER = Principal("reader", permissions={"runs:read"})
WRITER = Principal("writer", permissions={"runs:write"})
DECIDER = Principal("decider", permissions={"approvals:decide"})
HELLO = ScriptedModel([say("Hello.")])


async def row_of(app: Journeyman, run_id: str) -> RunRow:
    row = await app.store.runs.get(run_id)
    assert row is not None
    return row


async def ordered(app: Journeyman, agent: Agent, run_id: str, *, session_id: str | None = None) -> RunRow:
    """A run in the store that no process has taken up."""
    task = TaskInput(description="Hi", session_id=session_id)
    order = RunOrder(run_id=run_id, agent=agent.snapshot, task=task, principal=ADA, created_at=1.0)
    await app.store.runs.create(order)
    return await row_of(app, run_id)


# --- who may see and change what


async def test_each_sees_and_changes_what_their_permissions_say(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-1")) as app:
        handle = await app.session("s").send(agent, "Delete W-1", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        [asked] = await Desk(app, ADA).approvals()

        async def seen(principal: Principal) -> tuple[int, int, int, int]:
            desk = Desk(app, principal)
            runs, pending, every = desk.runs(), desk.approvals(), desk.approvals(pending=False)
            sessions = (await list_sessions(desk)).sessions
            return len(await runs), len(sessions), len(await pending), len(await every)

        assert [await seen(principal) for principal in (ADA, READER, WRITER)] == [(1, 1, 1, 1)] * 3
        assert [await seen(principal) for principal in (BOB, DECIDER)] == [(0, 0, 0, 0), (0, 0, 1, 1)]

        for refused in (Desk(app, BOB), Desk(app, DECIDER)):
            for hidden in (refused.run(handle.run_id), refused.session("s"), refused.cancel(handle.run_id)):
                with pytest.raises(NotFoundError):
                    await hidden
        for refused in (Desk(app, ADA), Desk(app, READER)):
            with pytest.raises(NotPermittedError, match="'approvals:decide'"):
                await refused.approve(asked.id)
        for change in (Desk(app, READER).cancel(handle.run_id), Desk(app, READER).delete_session("s")):
            with pytest.raises(NotPermittedError, match="'runs:write'"):
                await change
        with pytest.raises(NotFoundError, match="there is no approval"):
            await Desk(app, BOB).deny(asked.id)
        with pytest.raises(ConflictError) as at_work:
            await Desk(app, WRITER).delete_session("s")
        assert (at_work.value.code, at_work.value.recover_action) == ("SESSION_AT_WORK", "Cancel it first")

        assert (await Desk(app, DECIDER).deny(asked.id)).decided_by == "decider"
        assert await handle.wait() == "completed"
        with pytest.raises(ConflictError, match="is completed already"):
            await Desk(app, WRITER).cancel(handle.run_id)
        await Desk(app, WRITER).delete_session("s")
        with pytest.raises(NotFoundError, match="there is no session 's'"):
            await Desk(app, ADA).session("s")


async def test_what_belongs_to_nobody_is_nobodys_own(opens: Opens, agent: Agent) -> None:
    async with opens(HELLO) as app:
        handle = await app.start(agent, "Hi")
        await handle.wait()
        with pytest.raises(NotFoundError):
            await Desk(app, BOB).run(handle.run_id)
        assert await Desk(app, BOB).runs() == ()
        assert [row.id for row in await Desk(app, READER).runs()] == [handle.run_id]


# --- what a run waits for


async def test_a_run_is_blocked_by_questions_to_a_person_its_own_or_those_of_one_ahead(
    opens: Opens, agent: Agent
) -> None:
    async with opens(deletes("W-1")) as app:
        desk, session = Desk(app, ADA), app.session("s")
        first = await session.send(agent, "Delete W-1", principal=ADA)
        outcome = await desk.outcome(first, session_id="s")
        assert (outcome.kind, outcome.status, len(outcome.calls)) == ("waiting", "awaiting_approval", 0)
        [asked] = outcome.blockers.approvals
        assert (asked.run_id, outcome.blockers.earlier, outcome.blockers.unattended) == (first.run_id, None, False)

        second = await session.send(agent, "Delete W-2", principal=ADA)
        behind = await desk.outcome(second, session_id="s")
        assert (behind.kind, behind.status, behind.response) == ("waiting", "queued", None)
        assert behind.blockers.earlier is not None
        assert (behind.blockers.earlier.id, behind.blockers.earlier.status) == (first.run_id, "awaiting_approval")
        assert behind.blockers.approvals == (asked,)
        assert await desk.blockers(await row_of(app, second.run_id)) == behind.blockers

        await app.approvals.deny(asked.id)
        assert (await desk.outcome(first, session_id="s")).kind == "done"
        ended = await desk.blockers(await row_of(app, first.run_id))
        assert (ended.approvals, ended.earlier, ended.unattended) == ((), None, False)


async def test_a_run_that_no_process_holds_is_unattended(opens: Opens, agent: Agent) -> None:
    async with opens(HELLO) as app:
        desk = Desk(app, ADA)
        row = await ordered(app, agent, "left", session_id="s")
        behind = await ordered(app, agent, "behind", session_id="s")
        assert (await desk.blockers(row)).unattended
        assert (await desk.blockers(behind)).earlier == row
        assert desk.holder(row) is None

        ours = app.runner.shared.owner
        host, pid, _, number, boot, namespace = ours.split("/")
        for owner, holder in (
            (ours, f"process {os.getpid()} on {socket.gethostname()}"),
            ("/".join((host, pid, "before-us", number, boot, namespace)), None),
            ("/".join((host, pid, "1", number, boot, "4711")), f"process {pid} on {host}"),
            ("elsewhere/7/1/1", "process 7 on elsewhere"),
        ):
            held = row.model_copy(update={"owner": owner})
            assert desk.holder(held) == holder
            assert (await desk.blockers(held)).unattended is (holder is None)


async def test_a_run_whose_tools_are_not_here_says_so(opens: Opens, agent: Agent) -> None:
    async with opens(HELLO, library=ToolLibrary()) as app:
        desk = Desk(app, ADA)
        row = await ordered(app, agent, "left", session_id="s")
        await desk.resume("left")
        with pytest.raises(BindingError):
            await (await app.handle("left")).wait()
        assert isinstance((await desk.blockers(row)).error, BindingError)
        await ordered(app, agent, "behind", session_id="s")
        behind = await desk.outcome(await app.handle("behind"), session_id="s")
        assert behind.blockers.earlier is not None
        assert (behind.blockers.earlier.id, type(behind.blockers.error)) == ("left", BindingError)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (RunStatus.COMPLETED, "done"),
        (RunStatus.FAILED, "failed"),
        (RunStatus.CANCELLED, "failed"),
        (RunStatus.LIMIT_REACHED, "failed"),
        (RunStatus.AWAITING_APPROVAL, "waiting"),
        (RunStatus.AWAITING_RESOLUTION, "waiting"),
        (RunStatus.QUEUED, "waiting"),
    ],
)
def test_a_status_means_one_thing_at_every_door(status: RunStatus, kind: str) -> None:
    assert outcome_kind(status) == kind


# --- requests that are sent again


async def test_a_key_stands_for_one_run_of_one_principal_at_one_door(opens: Opens, agent: Agent) -> None:
    async with opens(HELLO) as app:
        desk = Desk(app, ADA)
        run_id = desk.run_id_for("chat", "k1")
        assert run_id is not None
        assert run_id == desk.run_id_for("chat", "k1")
        others = {
            desk.run_id_for("slack", "k1"),
            desk.run_id_for("chat", "k2"),
            Desk(app, BOB).run_id_for("chat", "k1"),
        }
        assert len(others | {run_id}) == 4
        assert desk.run_id_for("chat", None) is None

        assert await desk.begun_before(run_id, same=lambda order: True) is None
        await app.start(agent, "Hi", principal=ADA, run_id=run_id)
        assert await desk.begun_before(run_id, same=lambda order: order.task.description == "Hi") is not None
        with pytest.raises(ConflictError, match="exists and is another one"):
            await desk.begun_before(run_id, same=lambda order: order.task.description == "Ho")
        for asking in (BOB, READER, WRITER):  # to others it is as if there were none
            assert await Desk(app, asking).begun_before(run_id, same=lambda order: False) is None
