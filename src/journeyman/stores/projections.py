"""What a fact changes beside the journal, in the same transaction: calls, audit, approvals, gaps, the conversation."""

from __future__ import annotations

from typing import Any

from journeyman.core.approvals import ApprovalStatus
from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.events import (
    ApprovalDecided,
    CallFinished,
    CallResolved,
    CallStarted,
    Fact,
    RunFailed,
    RunFinished,
    RunStarted,
    RunSuspended,
)
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.stores.approvals import supersede, withdraw
from journeyman.stores.audit import add_audit
from journeyman.stores.calls import log_call
from journeyman.stores.connection import Connection
from journeyman.stores.conversations import add_messages, touch_session
from journeyman.stores.cursors import number_end
from journeyman.stores.gaps import add_gap
from journeyman.stores.labels import put_label
from journeyman.stores.reports import drop_reports


def status_after(fact: Fact) -> RunStatus:
    """Where a run stands whose latest fact this is."""
    match fact:
        case RunSuspended() | RunFinished():
            return fact.status
        case RunFailed():
            return RunStatus.FAILED
        case _:
            return RunStatus.RUNNING


def project(connection: Connection, run_id: str, fact: Fact, *, effect: bool = False) -> None:
    """Do what follows from a fact that has just been written; ``effect``: it is the start of a call that has one."""
    match fact:
        case CallStarted() if effect:
            # Before the effect: nothing is done that is not in the audit.
            details = {"tool": fact.tool_name, "execution_id": fact.execution_id, "attempt": fact.attempt}
            _audit_call(connection, "call_started", run_id, fact.call_id, details, now=fact.time)
        case CallFinished(record=record):
            log_call(connection, run_id, record)
            if record.status is CallStatus.DENIED:
                _audit_refusal(connection, run_id, record, now=fact.time)
        case CallResolved():
            drop_reports(connection, run_id, fact.call_id)
            add_audit(
                connection,
                "resolved",
                actor=fact.by,
                run_id=run_id,
                subject=fact.call_id,
                details={"action": fact.action},
                now=fact.time,
            )
        case ApprovalDecided(status=ApprovalStatus.SUPERSEDED):
            supersede(connection, fact.approval_id, now=fact.time)
        case ApprovalDecided():
            connection.execute("UPDATE approvals SET consumed = 1 WHERE id = ?", fact.approval_id)
        case RunStarted(history=history) if history:
            connection.execute("UPDATE runs SET history_length = ? WHERE id = ?", len(history), run_id)
        case RunSuspended():
            withdraw(connection, run_id, keep=fact.waiting_for, now=fact.time)
        case RunFinished() | RunFailed():
            number_end(connection, run_id)
            for label in fact.labels:
                put_label(connection, run_id, label)
            if status_after(fact) is RunStatus.CANCELLED:
                _audit_cancellation(connection, run_id, now=fact.time)
            if isinstance(fact, RunFinished) and fact.gap is not None:
                [(principal_id,)] = connection.query("SELECT principal_id FROM runs WHERE id = ?", run_id)
                add_gap(connection, fact.gap, now=fact.time, run_id=run_id, principal_id=principal_id)
            _keep_conversation(connection, run_id, fact.response, now=fact.time)
            withdraw(connection, run_id, now=fact.time)
        case _:
            pass


def _audit_refusal(connection: Connection, run_id: str, record: ToolCallRecord, *, now: float) -> None:
    details = {"tool": record.tool_name, "execution_id": record.execution_id}
    if record.error is not None:
        details["code"] = record.error.code
    _audit_call(connection, "call_refused", run_id, record.call_id, details, now=now)


def _audit_call(
    connection: Connection, kind: str, run_id: str, call_id: str, details: dict[str, Any], *, now: float
) -> None:
    [(actor,)] = connection.query("SELECT principal_id FROM runs WHERE id = ?", run_id)
    add_audit(connection, kind, actor=actor, run_id=run_id, subject=call_id, details=details, now=now)


def _audit_cancellation(connection: Connection, run_id: str, *, now: float) -> None:
    [(by,)] = connection.query("SELECT cancelled_by FROM runs WHERE id = ?", run_id)
    add_audit(connection, "run_cancelled", actor=by, run_id=run_id, subject=run_id, details={}, now=now)


def _keep_conversation(connection: Connection, run_id: str, response: AgentResponse | None, *, now: float) -> None:
    [(session_id, principal_id, history)] = connection.query(
        "SELECT session_id, principal_id, history_length FROM runs WHERE id = ?", run_id
    )
    if session_id is None or response is None:
        return
    touch_session(connection, session_id, principal_id=principal_id, now=now, anybodys=True)
    add_messages(connection, session_id, run_id, response.messages[history:])
