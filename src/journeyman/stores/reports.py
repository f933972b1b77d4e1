"""What processes report of calls they had begun when their run was taken over, and who may still report something."""

from __future__ import annotations

import json

from journeyman.core.calls import ToolCallRecord
from journeyman.core.events import CallStarted
from journeyman.core.runs import RunStatus
from journeyman.core.storing import CallReport, FormerOwner
from journeyman.stores.connection import Connection, json_text


def add_report(connection: Connection, *, started: CallStarted, record: ToolCallRecord | None) -> None:
    """Keep a report, if it is about the latest start of the call in the journal, and nobody has settled it since."""
    run_id, seq = started.run_id, started.seq
    known = connection.query("SELECT body FROM facts WHERE run_id = ? AND seq = ?", run_id, seq)
    if [body for (body,) in known] != [json_text(started)]:
        return  # it never got into the journal, so nobody can take it for begun
    later = connection.query(
        "SELECT body FROM facts WHERE run_id = ? AND seq > ? AND type IN ('call_started', 'call_resolved')", run_id, seq
    )
    if any(json.loads(body)["call_id"] == started.call_id for (body,) in later):
        return
    connection.execute(
        "INSERT INTO call_reports (run_id, seq, execution_id, body) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (run_id, seq) DO NOTHING",
        *(run_id, seq, started.execution_id, None if record is None else json_text(record)),
    )


def read_report(connection: Connection, *, started: CallStarted) -> CallReport:
    """The report on this start of a call, and the former owners of its run."""
    rows = connection.query("SELECT body FROM call_reports WHERE run_id = ? AND seq = ?", started.run_id, started.seq)
    if rows:
        [(body,)] = rows
        return CallReport(reported=True, record=None if body is None else ToolCallRecord.stored(body))
    # What was heard last: that it held the run, or that it was at work on the database at all.
    found = connection.query(
        f"""
        SELECT former_owners.owner, {connection.clock} - CASE
            WHEN programs.seen_at > former_owners.since THEN programs.seen_at ELSE former_owners.since END
        FROM former_owners LEFT JOIN programs ON programs.owner = former_owners.owner
        WHERE former_owners.run_id = ?
        """,
        started.run_id,
    )
    return CallReport(at_work=tuple(FormerOwner(owner=owner, silent_seconds=silent) for owner, silent in found))


def note_former_owner(connection: Connection, run_id: str, owner: str, *, lease_until: float) -> None:
    """A run was taken over from somebody who counts as one of its deaths, and may be alive all the same."""
    connection.execute(
        f"INSERT INTO former_owners (run_id, owner, since, counted) VALUES (?, ?, {connection.clock}, 1) "
        "ON CONFLICT (run_id, owner) DO UPDATE SET since = excluded.since, counted = 1",
        *(run_id, owner),
    )
    sql = "SELECT 1 FROM programs WHERE owner = ? AND seen_at > ?"
    if connection.query(sql, owner, lease_until):  # it has announced itself since, as no dead process does
        heard_of(connection, owner)


def heard_of(connection: Connection, owner: str) -> None:
    """A process is alive: that runs were taken over from it is none of their deaths."""
    sql = "UPDATE former_owners SET counted = 0 WHERE owner = ? AND counted = 1 RETURNING run_id"
    for (run_id,) in connection.query(sql, owner):
        connection.execute("UPDATE runs SET deaths = deaths - 1 WHERE id = ? AND deaths > 0", run_id)
        # It was given up for a death that was none.
        connection.execute(
            f"UPDATE runs SET status = '{RunStatus.RUNNING.value}', trouble = NULL, trouble_since = NULL, retry_at = 0 "
            f"WHERE id = ? AND status = '{RunStatus.STUCK.value}'",
            run_id,
        )


def forget_deaths(connection: Connection, run_id: str) -> None:
    """Nobody is among a run's deaths any more."""
    connection.execute("UPDATE former_owners SET counted = 0 WHERE run_id = ? AND counted = 1", run_id)


def drop_reports(connection: Connection, run_id: str, call_id: str) -> None:
    """A person has settled the call."""
    connection.execute("DELETE FROM call_reports WHERE run_id = ? AND execution_id = ?", run_id, f"{run_id}.{call_id}")
