"""Runs: who holds which, what is due, what has ended. Their facts are written by ``journal``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import SessionTakenError
from journeyman.core.events import CallStarted, Fact
from journeyman.core.principals import ANY_PRINCIPAL, PrincipalFilter
from journeyman.core.protocols import Journal
from journeyman.core.runs import RunStatus
from journeyman.core.storing import LONGEST_LEASE, ON_PROBATION, CallReport, DueRun, RunOrder, RunRow
from journeyman.stores.connection import (
    Connection,
    Row,
    belongs_to,
    entities,
    equals,
    json_text,
    marks,
    where,
)
from journeyman.stores.conversations import drop_unused_session, touch_session
from journeyman.stores.database import Database
from journeyman.stores.journal import SqlJournal, read_facts
from journeyman.stores.reports import add_report, forget_deaths, heard_of, note_former_owner, read_report
from journeyman.stores.retention import purge_runs

IDS_AT_ONCE = 200
_ASKED = """
    EXISTS (SELECT 1 FROM approvals WHERE approvals.run_id = runs.id AND approvals.status = 'pending')
"""
_WAITS_FOR_A_PERSON = f"status = '{RunStatus.AWAITING_APPROVAL.value}'"
_STATUS = f"""
    CASE WHEN runs.{_WAITS_FOR_A_PERSON} AND NOT {_ASKED} THEN '{RunStatus.RUNNING.value}' ELSE runs.status END
"""
"""A run whose questions are all answered, or have expired, waits for nobody: some process may go on with it."""
_COLUMNS = ", ".join(_STATUS if name == "status" else name for name in RunRow.model_fields)
_SESSION_FREE = """
    NOT EXISTS (
        SELECT 1 FROM runs AS earlier
        WHERE earlier.session_id = runs.session_id AND earlier.turn < runs.turn AND earlier.ended_at IS NULL
    )
"""
_AHEAD = f"""
    SELECT {_COLUMNS} FROM runs
    WHERE session_id = (SELECT session_id FROM runs WHERE id = ? AND status = ?)
    AND turn < (SELECT turn FROM runs WHERE id = ?) AND ended_at IS NULL
    ORDER BY turn LIMIT 1
"""
_PRINCIPAL_FREE = """
    AND (
        runs.principal_id IS NULL
        OR (
            SELECT COUNT(*) FROM runs AS other
            WHERE other.principal_id = runs.principal_id AND other.id <> runs.id
            AND other.owner IS NOT NULL AND other.lease_until > {clock} AND other.ended_at IS NULL
        ) < ?
    )
"""
_PROGRESS = ("message", "call_finished", "call_resolved", "step_finished", "approval_requested", "run_suspended")
"""Facts that say that a run got further. Being resumed and starting a call again is none."""
_DEATHS = f"""
    CASE
        WHEN owner IS NULL OR owner = ? THEN deaths
        WHEN EXISTS (
            SELECT 1 FROM facts WHERE facts.run_id = runs.id AND facts.seq > runs.claimed_seq
            AND facts.type IN ({", ".join(f"'{kind}'" for kind in _PROGRESS)})
        ) THEN 1
        ELSE deaths + 1
    END
"""
_ONLY_SUSPECT = f"""
    AND (
        {_DEATHS} < {ON_PROBATION}
        OR NOT EXISTS (
            SELECT 1 FROM runs AS other
            WHERE other.owner = ? AND other.id <> runs.id AND other.deaths >= {ON_PROBATION} AND other.ended_at IS NULL
        )
    )
"""
FIRST_REST, LONGEST_REST = 1.0, 300.0
"""Seconds before a run is tried again that processes could not go on with."""
_UNFINISHED = f"""
    ended_at IS NULL AND status IN ({", ".join(f"'{status.value}'" for status in RunStatus if not status.ended)})
"""
"""With a status that this version knows: a newer one may have runs that only it can go on with."""
_DECIDED = """
    EXISTS (
        SELECT 1 FROM approvals
        WHERE approvals.run_id = runs.id AND approvals.consumed = 0
        AND (approvals.status <> 'pending' OR approvals.expires_at <= ?)
    )
"""

_WAITING = f"runs.ended_at IS NULL AND status = '{RunStatus.QUEUED.value}' AND owner IS NULL"


_REPORTED = """
    EXISTS (
        SELECT 1 FROM call_reports JOIN calls ON calls.execution_id = call_reports.execution_id
        WHERE call_reports.run_id = runs.id AND calls.status = 'unknown'
    )
"""


class SqlRuns:
    """Runs in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, order: RunOrder, *, any_session: bool = False) -> bool:
        created = await self._database.write(partial(_create, order=order, any_session=any_session))
        if created is None:
            raise SessionTakenError(order.task.session_id or "")
        return created

    async def order(self, run_id: str) -> RunOrder | None:
        rows = await self._database.read(
            lambda connection: connection.query("SELECT asked FROM runs WHERE id = ?", run_id)
        )
        return RunOrder.stored(rows[0][0]) if rows else None

    async def get(self, run_id: str) -> RunRow | None:
        rows = await self._database.read(
            lambda connection: connection.query(f"SELECT {_COLUMNS} FROM runs WHERE id = ?", run_id)
        )
        return entities(RunRow, rows)[0] if rows else None

    async def list(
        self,
        *,
        statuses: Collection[RunStatus] | None = None,
        session_id: str | None = None,
        principal_id: PrincipalFilter = ANY_PRINCIPAL,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[RunRow]:
        if statuses is not None and not statuses:
            return ()
        clause, values = where(
            *_with_status(statuses),
            equals("session_id", session_id),
            belongs_to(principal_id),
        )
        order = "created_at DESC, id DESC" if session_id is None else "turn DESC"
        sql = f"SELECT {_COLUMNS} FROM runs {clause} ORDER BY {order} LIMIT ? OFFSET ?"
        return entities(
            RunRow, await self._database.read(lambda connection: connection.query(sql, *values, limit, offset))
        )

    async def count(self, *, statuses: Collection[RunStatus], principal_id: PrincipalFilter = ANY_PRINCIPAL) -> int:
        clause, values = where(*_with_status(statuses), belongs_to(principal_id))
        sql = f"SELECT COUNT(*) FROM runs {clause}"
        [(count,)] = await self._database.read(lambda connection: connection.query(sql, *values))
        return int(count)

    async def unfinished(self, run_ids: Collection[str]) -> Collection[str]:
        wanted, found = sorted(run_ids), set[str]()
        sql = f"SELECT id FROM runs WHERE id IN ({marks(range(IDS_AT_ONCE))}) AND ended_at IS NULL"
        for start in range(0, len(wanted), IDS_AT_ONCE):
            some = wanted[start : start + IDS_AT_ONCE]
            some += some[-1:] * (IDS_AT_ONCE - len(some))  # always as many, so that there is one statement
            rows = await self._database.read(partial(_query, sql=sql, values=some))
            found.update(run_id for (run_id,) in rows)
        return found

    async def ahead_of(self, run_id: str) -> RunRow | None:
        rows = await self._database.read(
            lambda connection: connection.query(_AHEAD, run_id, RunStatus.QUEUED.value, run_id)
        )
        return entities(RunRow, rows)[0] if rows else None

    async def claim(
        self,
        run_id: str,
        *,
        owner: str,
        lease_seconds: float,
        dead: Collection[str] = (),
        principal_limit: int | None = None,
        in_turn: bool = True,
    ) -> int | None:
        # Synced: a server that forgot an epoch would give the same one to two holders.
        return await self._database.write(
            partial(
                _claim,
                run_id=run_id,
                owner=owner,
                lease_seconds=lease_seconds,
                dead=dead,
                principal_limit=principal_limit,
                in_turn=in_turn,
            )
        )

    async def heard_of(self, owner: str) -> None:
        await self._database.write(partial(heard_of, owner=owner), sync=False)

    async def proved(self, run_id: str, *, epoch: int) -> None:
        def forget(connection: Connection) -> None:
            sql = (
                "UPDATE runs SET deaths = 0, trouble = NULL, trouble_since = NULL, retry_at = 0 "
                "WHERE id = ? AND epoch = ?"
            )
            if connection.execute(sql, run_id, epoch):
                forget_deaths(connection, run_id)

        await self._database.write(forget, sync=False)

    async def revive(self, run_id: str) -> None:
        def again(connection: Connection) -> None:
            connection.execute(
                f"UPDATE runs SET deaths = 0, trouble = NULL, trouble_since = NULL, "
                f"status = '{RunStatus.RUNNING.value}' WHERE id = ? AND status = '{RunStatus.STUCK.value}'",
                run_id,
            )
            connection.execute("UPDATE runs SET retry_at = 0 WHERE id = ? AND retry_at > 0", run_id)
            forget_deaths(connection, run_id)

        await self._database.write(again)

    async def note_trouble(self, run_id: str, text: str, *, now: float) -> None:
        await self._database.write(partial(_note_trouble, run_id=run_id, text=text, now=now), sync=False)

    async def renew(self, owner: str, *, lease_seconds: float) -> Sequence[str]:
        rows = await self._database.write(
            lambda connection: connection.query(
                f"UPDATE runs SET lease_until = {connection.clock} + ? WHERE owner = ? RETURNING id, cancel_wanted",
                *(lease_seconds, owner),
            ),
            sync=False,
        )
        return tuple(run_id for run_id, wanted in rows if wanted)

    async def request_cancel(self, run_id: str, *, by: str | None = None) -> bool:
        rows = await self._database.write(
            lambda connection: connection.query(
                "UPDATE runs SET cancel_wanted = 1, cancelled_by = COALESCE(cancelled_by, ?) "
                "WHERE id = ? AND ended_at IS NULL RETURNING id",
                *(by, run_id),
            )
        )
        return bool(rows)

    async def owners(self) -> Sequence[str]:
        sql = "SELECT DISTINCT owner FROM runs WHERE owner IS NOT NULL AND ended_at IS NULL"
        rows = await self._database.read(lambda connection: connection.query(sql))
        return tuple(owner for (owner,) in rows)

    async def release(self, run_id: str, *, owner: str, epoch: int) -> None:
        await self._database.write(partial(_release, run_id=run_id, owner=owner, epoch=epoch), sync=False)

    async def report(self, started: CallStarted, record: ToolCallRecord | None) -> None:
        await self._database.write(partial(add_report, started=started, record=record))

    async def reported(self, started: CallStarted) -> CallReport:
        return await self._database.read(partial(read_report, started=started))

    async def due(
        self,
        *,
        now: float,
        dead: Collection[str] = (),
        run_id: str | None = None,
        suspects: bool = False,
        rested: bool = True,
        limit: int = 100,
        offset: int = 0,
    ) -> Sequence[DueRun]:
        which, named = ("", ()) if run_id is None else ("id = ? AND", (run_id,))
        tried, at = ("retry_at <= ? AND", (now,)) if rested else ("", ())

        def condition(connection: Connection) -> str:
            return f"""
                {which} {tried} deaths {">" if suspects else "="} 0 AND ended_at IS NULL
                AND {_unheld(connection, dead)} AND (
                    status = '{RunStatus.RUNNING.value}'
                    OR (status = '{RunStatus.QUEUED.value}' AND {_SESSION_FREE})
                    OR (status = '{RunStatus.AWAITING_APPROVAL.value}' AND {_DECIDED})
                    OR (status = '{RunStatus.AWAITING_RESOLUTION.value}' AND {_REPORTED})
                )
            """

        rows = await self._database.read(
            lambda connection: connection.query(
                f"{_by_turns(condition(connection), first='deaths' if suspects else '0')} LIMIT ? OFFSET ?",
                *(*named, *at, LONGEST_LEASE, *dead, now, limit, offset),
            )
        )
        return tuple(DueRun(*row) for row in rows)

    async def waiting(self) -> Sequence[str]:
        rows = await self._database.read(lambda connection: connection.query(_by_turns(_WAITING)))
        return tuple(found for found, _ in rows)

    async def place(self, run_id: str) -> int:
        sql = f"""
            SELECT COUNT(*) FROM runs, (SELECT principal_id, created_at FROM runs WHERE id = ?) AS mine
            WHERE {_WAITING} AND runs.created_at <= mine.created_at
            AND COALESCE(runs.principal_id, '') = COALESCE(mine.principal_id, '')
        """
        [(count,)] = await self._database.read(lambda connection: connection.query(sql, run_id))
        return int(count)

    def journal(self, run_id: str, *, epoch: int) -> Journal:
        return SqlJournal(self._database, run_id, epoch)

    async def facts(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[Fact]:
        return await self._database.read(partial(read_facts, run_id=run_id, after=after, limit=limit))

    async def purge(self, *, ended_before: float) -> int:
        """Forget ended runs that are older, with their facts, artifacts and approvals; returns how many.

        Conversations, the call log and the audit stay.
        """
        counts: dict[str, int] = {}
        await purge_runs(self._database, ended_before=ended_before, counts=counts)
        return counts.get("runs", 0)


def _with_status(statuses: Collection[RunStatus] | None) -> Iterator[tuple[str, Sequence[Any]]]:
    if statuses is None:
        return
    wanted = tuple(status.value for status in statuses)
    condition = f"status IN ({marks(wanted)})"
    asked, running = RunStatus.AWAITING_APPROVAL in statuses, RunStatus.RUNNING in statuses
    if asked and not running:
        condition = f"({condition} AND (NOT {_WAITS_FOR_A_PERSON} OR {_ASKED}))"
    elif running and not asked:
        condition = f"({condition} OR ({_WAITS_FOR_A_PERSON} AND NOT {_ASKED}))"
    yield condition, wanted
    if not any(status.ended for status in statuses):
        # Says nothing new, but lets the indexes over unfinished runs be used.
        yield "ended_at IS NULL", ()


def _create(connection: Connection, *, order: RunOrder, any_session: bool) -> bool | None:
    """Whether the run is new; None, and nothing is written, where its session is another principal's."""
    principal_id, session_id, turn = order.principal_id, order.task.session_id, None
    if session_id is not None:
        opened = touch_session(
            connection,
            session_id,
            principal_id=principal_id,
            now=order.created_at,
            said=order.task.description,
            anybodys=any_session,
        )
        if not opened:
            return None
        [(turn,)] = connection.query("SELECT COALESCE(MAX(turn), 0) + 1 FROM runs WHERE session_id = ?", session_id)
    values = {
        "id": order.run_id,
        "task_id": order.task.task_id,
        "agent_name": str(order.agent.get("name", "")),
        "session_id": session_id,
        "turn": turn,
        "principal_id": principal_id,
        "status": RunStatus.QUEUED.value,
        "priority": order.priority,
        "epoch": 0,
        "lease_until": 0.0,
        "last_seq": 0,
        "history_length": 0,
        "created_at": order.created_at,
        "updated_at": order.created_at,
        "asked": json_text(order),
    }
    sql = f"INSERT INTO runs ({', '.join(values)}) VALUES ({marks(tuple(values))}) ON CONFLICT (id) DO NOTHING"
    created = connection.execute(sql, *values.values()) == 1
    if not created and session_id is not None:
        drop_unused_session(connection, session_id)
    return created


def _note_trouble(connection: Connection, *, run_id: str, text: str, now: float) -> None:
    """Each rest is as long as the trouble has lasted, so that the pauses double."""
    rows = connection.query("SELECT trouble_since FROM runs WHERE id = ? AND ended_at IS NULL", run_id)
    since = now if not rows or rows[0][0] is None else rows[0][0]
    rest = min(LONGEST_REST, max(FIRST_REST, now - since))
    connection.execute(
        "UPDATE runs SET trouble = ?, trouble_since = ?, retry_at = ? WHERE id = ? AND ended_at IS NULL",
        *(text, since, now + rest, run_id),
    )


def _by_turns(condition: str, *, first: str = "0") -> str:
    """The runs that fulfil a condition: the most urgent first, then the first of each principal, then the second…

    ``first`` counts before all that.
    """
    return f"""
        SELECT id, principal_id FROM (
            SELECT id, principal_id, {first} AS rank, priority, created_at, ROW_NUMBER() OVER (
                PARTITION BY {first}, priority, COALESCE(principal_id, '') ORDER BY created_at, id
            ) AS place FROM runs WHERE {condition}
        ) AS found ORDER BY rank, priority DESC, place, created_at, id
    """


def _claim(
    connection: Connection,
    *,
    run_id: str,
    owner: str,
    lease_seconds: float,
    dead: Collection[str],
    principal_limit: int | None,
    in_turn: bool,
) -> int | None:
    takeable, conditions = [owner, *dead], ""
    counted: tuple[Any, ...] = ()
    if in_turn:
        conditions += f" AND status <> '{RunStatus.STUCK.value}' AND {_SESSION_FREE} {_ONLY_SUSPECT}"
        counted = (owner, owner)
    if principal_limit is not None:
        conditions += _PRINCIPAL_FREE.format(clock=connection.clock)
        counted = (*counted, principal_limit)
        # Two who count at the same time would both find a free place.
        for (principal_id,) in connection.query("SELECT principal_id FROM runs WHERE id = ?", run_id):
            connection.lock(f"principal {principal_id}")
    rows = connection.query(
        f"UPDATE runs SET epoch = epoch + 1, deaths = {_DEATHS}, claimed_seq = last_seq, taken_from = owner, "
        f"taken_lease = lease_until, owner = ?, lease_until = {connection.clock} + ?, updated_at = {connection.clock} "
        f"WHERE id = ? AND {_UNFINISHED} AND {_unheld(connection, takeable)} {conditions} "
        "RETURNING epoch, taken_from, taken_lease, deaths",
        *(owner, owner, lease_seconds, run_id, LONGEST_LEASE, *takeable, *counted),
    )
    if not rows:
        return None
    [(epoch, taken_from, taken_lease, deaths)] = rows
    if taken_from is not None and deaths == 1:
        forget_deaths(connection, run_id)  # it got further since the others
    if taken_from is not None and taken_from not in takeable:
        # It may be alive all the same, and have the outcome of a call to report.
        note_former_owner(connection, run_id, taken_from, lease_until=taken_lease)
    return int(epoch)


def _release(connection: Connection, *, run_id: str, owner: str, epoch: int) -> None:
    sql = "UPDATE runs SET owner = NULL, lease_until = 0 WHERE id = ? AND epoch = ?"
    if not connection.execute(sql, run_id, epoch):
        heard_of(connection, owner)
        connection.execute("DELETE FROM former_owners WHERE run_id = ? AND owner = ?", run_id, owner)


def _unheld(connection: Connection, takeable: Collection[str]) -> str:
    """The condition that nobody holds a run, or one of these does; wants ``LONGEST_LEASE``, then the names."""
    now = connection.clock
    condition = f"owner IS NULL OR lease_until <= {now} OR lease_until > {now} + ?"
    if takeable:
        condition += f" OR owner IN ({marks(tuple(takeable))})"
    return f"({condition})"


def _query(connection: Connection, *, sql: str, values: Sequence[Any]) -> Sequence[Row]:
    return connection.query(sql, *values)
