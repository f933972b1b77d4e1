"""Approvals that outlive their process: decided in any order, by anybody, once; and what a session was allowed."""

from __future__ import annotations

import asyncio

import pytest

from journeyman import Agent, Policy, Principal, RunStatus, ToolLibrary
from journeyman.app.journeyman import Journeyman
from journeyman.core import ApprovalStatus
from journeyman.core.errors import ApprovalError
from journeyman.testing import FakeClock, ScriptedModel, call, say, together
from tests.app.conftest import Opens
from tests.app.shop import ADA, Ledger, clerk, deletes, shop


async def waiting_for_one(app: Journeyman, agent: Agent) -> str:
    """A run that waits for a person; the id of its only approval."""
    handle = await app.start(agent, "Delete W-1", principal=ADA)
    assert await handle.wait() == "awaiting_approval"
    [approval] = await app.approvals.pending()
    return approval.id


async def test_the_governed_program_runs_as_written(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-17")) as app:
        handle = await app.start(agent, "Delete order W-17", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        [approval] = await app.approvals.pending()
        assert (approval.arguments, approval.principal) == ({"order_id": "W-17"}, ADA)
        assert ledger.lines() == []
        await app.approvals.approve(approval.id, by="grace")
        response = await handle.result()
        assert (response.status, response.answer) == ("completed", "Done.")
        assert ledger.effects() == {("delete_order", "W-17"): 1}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_several_pending_approvals_are_decided_in_any_order(
    opens: Opens, agent: Agent, ledger: Ledger, order: tuple[int, ...]
) -> None:
    async with opens(deletes("W-1", "W-2", "W-3")) as app:
        handle = await app.start(agent, "Delete them", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        pending = await app.approvals.pending(run_id=handle.run_id)
        assert [approval.arguments["order_id"] for approval in pending] == ["W-1", "W-2", "W-3"]
        for place, number in enumerate(order):
            status = await handle.wait()
            assert status == "awaiting_approval"
            if place == 1:
                await app.approvals.deny(pending[number].id, by="grace", reason="not this one")
            else:
                await app.approvals.approve(pending[number].id, by="grace")
        response = await handle.result()
    statuses = {record.arguments["order_id"]: record.status for record in response.tool_calls}
    denied = f"W-{order[1] + 1}"
    assert statuses == {name: "denied" if name == denied else "success" for name in ("W-1", "W-2", "W-3")}
    assert all(count == 1 for count in ledger.effects().values())
    assert len(ledger.lines()) == 2


async def test_of_two_people_deciding_at_once_one_wins_and_the_other_is_told(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    async with opens(deletes("W-1")) as app, opens(deletes("W-1")) as elsewhere:
        approval_id = await waiting_for_one(app, agent)
        answers = await asyncio.gather(
            app.approvals.approve(approval_id, by="grace"),
            elsewhere.approvals.deny(approval_id, by="mallory", reason="no"),
            return_exceptions=True,
        )
        lost = [answer for answer in answers if isinstance(answer, ApprovalError)]
        [won] = [answer for answer in answers if not isinstance(answer, BaseException)]
        assert len(lost) == 1
        assert f"already by {won.decided_by!r}" in str(lost[0])
        await (await app.handle(won.run_id)).result()
    assert len(ledger.lines()) == (won.status is ApprovalStatus.APPROVED)


async def test_a_reason_for_denying_reaches_the_model(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    model = deletes("W-1")
    async with opens(model) as app:
        approval_id = await waiting_for_one(app, agent)
        denied = await app.approvals.deny(approval_id, by="grace", reason="the customer called")
        await (await app.handle(denied.run_id)).result()
    assert "the customer called" in model.requests[-1].messages[-1].content
    assert ledger.lines() == []


async def test_edited_arguments_run_instead_of_the_asked_ones(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-1")) as app:
        approval_id = await waiting_for_one(app, agent)
        with pytest.raises(ApprovalError, match="not valid"):
            await app.approvals.approve(approval_id, by="grace", arguments={"order_id": 7})
        approved = await app.approvals.approve(approval_id, by="grace", arguments={"order_id": "W-2"})
        response = await (await app.handle(approved.run_id)).result()
    assert response.tool_calls[0].arguments == {"order_id": "W-2"}
    assert ledger.effects() == {("delete_order", "W-2"): 1}


async def test_a_decision_taken_by_another_app_wakes_the_run(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-1")) as app, opens(deletes("W-1")) as desk:
        handle = await app.start(agent, "Delete W-1", principal=ADA)
        await handle.wait()
        [approval] = await desk.approvals.pending()
        await desk.approvals.approve(approval.id, by="grace")
        assert (await handle.result()).status == "completed"
    assert ledger.effects() == {("delete_order", "W-1"): 1}


async def test_a_decision_taken_while_no_process_lived_is_followed(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-1")) as app:
        approval_id = await waiting_for_one(app, agent)
    async with opens(deletes("W-1")) as desk:
        await desk.approvals.approve(approval_id, by="grace")
    async with opens(deletes("W-1")) as app:
        [handle] = await app.resume()
        assert (await handle.result()).status == "completed"
    assert ledger.effects() == {("delete_order", "W-1"): 1}


async def test_an_approval_expires_on_a_clock_that_survives_restarts(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    clock, policy = FakeClock(), Policy(stored_approval_seconds=300)
    async with opens(deletes("W-1"), clock=clock, policy=policy) as app:
        approval_id = await waiting_for_one(app, agent)
    clock.advance(299)
    async with opens(deletes("W-1"), clock=clock, policy=policy) as app:
        [handle] = await app.resume()
        assert await handle.wait() == "awaiting_approval"
        clock.advance(2)
        response = await handle.result()
        assert [record.error and record.error.code for record in response.tool_calls] == ["APPROVAL_EXPIRED"]
        assert response.status == "completed"
        with pytest.raises(ApprovalError, match="expired already"):
            await app.approvals.approve(approval_id, by="late")
    assert ledger.lines() == []


async def test_an_approval_given_in_time_holds_however_late_the_run_goes_on(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    clock = FakeClock()
    async with opens(deletes("W-1"), clock=clock) as app:
        approval_id = await waiting_for_one(app, agent)
    async with opens(deletes("W-1"), clock=clock) as desk:
        await desk.approvals.approve(approval_id, by="grace")
    clock.advance(100_000)
    async with opens(deletes("W-1"), clock=clock, retention_seconds=None) as app:
        [handle] = await app.resume()
        assert (await handle.result()).tool_calls[0].success
    assert ledger.effects() == {("delete_order", "W-1"): 1}


async def test_a_grant_for_a_session_is_listed_used_and_revoked(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    async with opens(deletes("W-1")) as app:
        session = app.session("s-1")
        first = await session.send(agent, "Delete W-1", principal=ADA)
        await first.wait()
        [approval] = await app.approvals.pending()
        await app.approvals.approve(approval.id, by="grace", for_session=True)
        assert await first.wait() == "completed"
        [grant] = await app.approvals.grants(session_id="s-1")
        assert (grant.tool_name, grant.granted_by) == ("delete_order", "grace")

        second = await session.send(agent, "Delete it once more", principal=ADA)
        assert await second.wait() == "completed"
        other = await app.session("s-2").send(agent, "Delete W-1", principal=ADA)
        assert await other.wait() == "awaiting_approval"

        assert await app.approvals.revoke(grant.id, by="grace")
        assert await app.approvals.grants(session_id="s-1") == ()
        third = await session.send(agent, "And again", principal=ADA)
        assert await third.wait() == "awaiting_approval"
    assert len(ledger.lines()) == 2


async def test_outside_a_session_nothing_can_be_granted_for_it(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-1")) as app:
        approval_id = await waiting_for_one(app, agent)
        with pytest.raises(ApprovalError, match="no chat session"):
            await app.approvals.approve(approval_id, by="grace", for_session=True)
        assert [approval.id for approval in await app.approvals.pending()] == [approval_id]


async def test_every_decision_and_refusal_leaves_an_audit_row_without_content(
    opens: Opens, agent: Agent, ledger: Ledger
) -> None:
    async with opens(deletes("W-1", "W-secret")) as app:
        handle = await app.start(agent, "Delete them", principal=ADA)
        await handle.wait()
        first, second = await app.approvals.pending()
        await app.approvals.approve(first.id, by="grace")
        await app.approvals.deny(second.id, by="grace", reason="W-secret stays")
        await handle.result()
        rows = await app.store.audit.list()
        assert await app.store.audit.verify() == len(rows)
    assert sorted(row.kind for row in rows) == ["approval_approved", "approval_denied", "call_refused", "call_started"]
    [made] = [row for row in rows if row.kind == "call_started"]
    assert (made.actor, made.run_id, made.details["tool"]) == ("ada", handle.run_id, "delete_order")
    assert "W-secret" not in "".join(row.model_dump_json() for row in rows)


async def test_a_cancelled_run_withdraws_its_questions(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-1")) as app:
        approval_id = await waiting_for_one(app, agent)
        approval = await app.approvals.get(approval_id)
        assert approval is not None
        handle = await app.handle(approval.run_id)
        await handle.cancel()
        assert await handle.status() is RunStatus.CANCELLED
        assert await app.approvals.pending() == ()
        with pytest.raises(ApprovalError, match="superseded already"):
            await app.approvals.approve(approval_id, by="grace")


async def test_a_call_beside_one_that_waits_is_not_held_up(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    model = ScriptedModel([together(call("stamp", order_id="W-1"), call("delete_order", order_id="W-1")), say("Done.")])
    async with opens(model) as app:
        handle = await app.start(agent, "Do both", principal=ADA)
        assert await handle.wait() == "awaiting_approval"
        assert ledger.effects() == {("stamp", "W-1"): 1}
        [approval] = await app.approvals.pending()
        await app.approvals.approve(approval.id, by="grace")
        await handle.result()
    assert ledger.effects() == {("stamp", "W-1"): 1, ("delete_order", "W-1"): 1}


async def test_an_answer_to_a_question_that_has_changed_since_is_not_waited_for(opens: Opens, ledger: Ledger) -> None:
    def library(version: str) -> ToolLibrary:
        tools = shop(ledger)
        tools.register(tools["delete_order"].with_changes(version=version), replace=True)
        return tools

    async with opens(deletes("W-1"), library=library("1")) as app:
        await waiting_for_one(app, clerk(library("1")))
    async with opens(deletes("W-1"), library=library("2")) as app:
        [old] = await app.approvals.pending()
        [handle] = await app.resume()
        await app.approvals.approve(old.id, by="grace")
        assert await handle.wait() == "awaiting_approval"
        [new] = await app.approvals.pending()
        assert new.id != old.id
        facts = len(await app.store.runs.facts(handle.run_id))
        assert await app.store.runs.due(among=[handle.run_id]) == ()
        assert len(await app.store.runs.facts(handle.run_id)) == facts
        await app.approvals.approve(new.id, by="grace")
        assert (await handle.result()).status == "completed"
    assert ledger.effects() == {("delete_order", "W-1"): 1}


async def test_a_grant_of_one_principal_is_of_no_use_to_another(opens: Opens, agent: Agent, ledger: Ledger) -> None:
    mallory = Principal("mallory", permissions={"orders:write", "runs:write"})
    async with opens(deletes("W-1")) as app:
        session = app.session("s")
        first = await session.send(agent, "Delete W-1", principal=ADA)
        assert await first.wait() == "awaiting_approval"
        [asked] = await app.approvals.pending()
        await app.approvals.approve(asked.id, by="grace", for_session=True)
        assert (await first.result()).status == "completed"
        second = await session.send(agent, "Delete W-1", principal=mallory)
        assert await second.wait() == "awaiting_approval"
        third = await app.session("t").send(agent, "Delete W-1", principal=ADA)
        assert await third.wait() == "awaiting_approval"
    assert ledger.effects() == {("delete_order", "W-1"): 1}


async def test_edited_arguments_are_checked_where_the_tool_is_only_described(opens: Opens, agent: Agent) -> None:
    async with opens(deletes("W-1")) as app:
        approval_id = await waiting_for_one(app, agent)
    async with opens(deletes("W-1"), library=ToolLibrary()) as desk:
        with pytest.raises(ApprovalError, match="order_id"):
            await desk.approvals.approve(approval_id, by="grace", arguments={"order": 3})
        await desk.approvals.approve(approval_id, by="grace", arguments={"order_id": "W-2"})
