"""Runs, facts and questions for the store tests."""

from __future__ import annotations

from typing import Any

from journeyman.core.approvals import Approval
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import moment
from journeyman.core.errors import ErrorInfo
from journeyman.core.events import (
    CallFinished,
    CallsPlanned,
    CallStarted,
    Fact,
    MessageReceived,
    RunFinished,
    RunStarted,
    RunSuspended,
    StepFinished,
)
from journeyman.core.policy import Principal, RiskLevel
from journeyman.core.protocols import Journal
from journeyman.core.runs import AgentResponse, Message, RunStatus, TaskInput, ToolCall
from journeyman.core.storing import RunOrder
from journeyman.stores.migrations import MIGRATIONS
from journeyman.stores.store import SqlStore
from journeyman.testing.clock import START

NOW = START
LATER = NOW + 60


def order(
    run_id: str,
    *,
    session: str | None = None,
    at: float = NOW,
    priority: int = 0,
    principal: str | None = "ada",
    description: str = "Do it",
) -> RunOrder:
    return RunOrder(
        run_id=run_id,
        agent={"name": "support"},
        task=TaskInput(task_id=f"task-{run_id}", description=description, session_id=session),
        principal=None if principal is None else Principal(principal),
        priority=priority,
        created_at=at,
    )


def numbered(run_id: str, *facts: Fact, first: int = 1) -> tuple[Fact, ...]:
    for seq, fact in enumerate(facts, start=first):
        fact.stamp(run_id, seq, NOW + seq)
    return facts


def started(*, history: tuple[Message, ...] = ()) -> RunStarted:
    return RunStarted(agent={"name": "support"}, task=TaskInput(description="Do it"), history=history)


def message(text: str = "hm") -> MessageReceived:
    return MessageReceived(iteration=1, text=text)


def suspended(status: RunStatus = RunStatus.AWAITING_APPROVAL) -> RunSuspended:
    return RunSuspended(status=status, waiting_for=("a-1",))


def finished(status: RunStatus = RunStatus.COMPLETED, *, messages: tuple[Message, ...] = ()) -> RunFinished:
    response = AgentResponse(
        task_id="t", run_id="r", status=status, answer="done", reasoning="because", confidence=1, messages=messages
    )
    return RunFinished(status=status, response=response)


def record(
    execution_id: str, *, status: CallStatus = CallStatus.SUCCESS, tool: str = "pay", **more: Any
) -> CallFinished:
    error = None if status is CallStatus.SUCCESS else ErrorInfo(code="NO_WAY", message="the secret is 42")
    return CallFinished(
        record=ToolCallRecord(
            execution_id=execution_id,
            call_id=f"call-{execution_id}",
            tool_name=tool,
            arguments={"amount": 42},
            status=status,
            error=error,
            start_time=moment(NOW),
            end_time=moment(NOW + 0.25),
            attempts=1,
            risk=RiskLevel.IRREVERSIBLE,
            **more,
        )
    )


def call_started(execution_id: str) -> CallStarted:
    return CallStarted(
        call_id=f"call-{execution_id}",
        execution_id=execution_id,
        tool_name="pay",
        attempt=1,
        arguments={"amount": 42},
    )


def step(run_id: str, execution_id: str, *, first: int) -> tuple[Fact, ...]:
    """The five facts of one step, as the loop records them."""
    call = ToolCall(id=f"call-{execution_id}", tool_name="pay", arguments={"amount": 42})
    return numbered(
        run_id,
        MessageReceived(iteration=1, text="I will pay", calls=(call,)),
        CallsPlanned(iteration=1, calls=(call,)),
        call_started(execution_id),
        record(execution_id),
        StepFinished(iteration=1, thought="I will pay", duration_ms=1.0),
        first=first,
    )


def question(
    approval_id: str, *, run_id: str = "r1", expires_at: float = LATER, principal: str | None = "ada", at: float = NOW
) -> Approval:
    return Approval(
        id=approval_id,
        run_id=run_id,
        call_id=f"call-{approval_id}",
        tool_name="pay",
        arguments={"amount": 42},
        digest="d" * 32,
        risk=RiskLevel.IRREVERSIBLE,
        principal=None if principal is None else Principal(principal),
        requested_at=moment(at),
        expires_at=moment(expires_at),
    )


def version_before(name: str) -> int:
    """The version of the schema that a migration was applied to."""
    return [migration.name for migration in MIGRATIONS].index(name)


async def due(store: SqlStore, **options: Any) -> tuple[str, ...]:
    """Which runs can go on, in the order in which they will."""
    return tuple(found.id for found in await store.runs.due(**options))


async def claimed(store: SqlStore, run_id: str, *, owner: str = "w1", session: str | None = None) -> Journal:
    """A new run, held by a worker; its journal."""
    await store.runs.create(order(run_id, session=session))
    epoch = await store.runs.claim(run_id, owner=owner, lease_seconds=60)
    assert epoch is not None
    return store.runs.journal(run_id, epoch=epoch)
