"""Runs: who holds which, what is due, what has ended. Their facts are written by ``journal``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypedDict, Unpack

from journeyman.core.calls import ToolCallRecord
from journeyman.core.errors import SessionTakenError
from journeyman.core.events import CallStarted, Fact
from journeyman.core.policy import ANY_PRINCIPAL, PrincipalFilter
from journeyman.core.protocols import Journal
from journeyman.core.runs import Outcome, RunStatus
from journeyman.core.storing import ON_PROBATION, CallReport, DueRun, FormerOwner, RunOrder, RunRow
from journeyman.stores.calls import add_chunks, chunked
from journeyman.stores.connection import EVERY, Connection, Where, entities, is_among, json_text, marks, storable
from journeyman.stores.conversations import drop_unused_session, touch_session
from journeyman.stores.database import RUN_LEASES, Aggregate, lease_is_free, reads, writes
from journeyman.stores.journal import SqlJournal, read_facts
from journeyman.stores.processes import forget_deaths, heard_of, note_former_owner
from journeyman.stores.retention import purge_runs

FACTS_AT_ONCE = 500
_ASKED = """
    EXISTS (SELECT 1 FROM approvals WHERE approvals.run_id = runs.id AND approvals.status = 'pending')
"""
_FIRST_EXPIRY = """
    SELECT MIN(expires_at) FROM approvals WHERE approvals.run_id = runs.id AND approvals.status = 'pending'
"""
_WAITS_FOR_A_PERSON = f"status = '{RunStatus.AWAITING_APPROVAL.value}'"
_STATUS = f"""
    CASE WHEN runs.{_WAITS_FOR_A_PERSON} AND NOT {_ASKED} THEN '{RunStatus.RUNNING.value}' ELSE runs.status END
"""
"""A run whose questions are all answered, or have expired, waits for nobody: some process may go on with it."""
RUNS_AND_LEASES = "runs LEFT JOIN leases AS held ON held.kind = 'run' AND held.name = runs.id"
_LINE = "priority DESC, place, created_at, id"
"""In which runs are begun; see ``_place``."""
_DUE = f"SELECT id, principal_id, held.owner AS left_by, deaths, priority, place, created_at FROM {RUNS_AND_LEASES}"
_TO_CANCEL = "id IN (SELECT id FROM runs WHERE ended_at IS NULL AND cancel_wanted = 1)"
_SUSPECT = "id IN (SELECT id FROM runs WHERE ended_at IS NULL AND deaths > 0)"
_SESSION_FREE = """
    NOT EXISTS (
        SELECT 1 FROM runs AS earlier
        WHERE earlier.session_id = runs.session_id AND earlier.turn < runs.turn AND earlier.ended_at IS NULL
    )
"""
_AHEAD = """
    WHERE session_id = (SELECT session_id FROM runs WHERE id = ? AND status = ?)
    AND turn < (SELECT turn FROM runs WHERE id = ?) AND ended_at IS NULL
    ORDER BY turn LIMIT 1
"""
_PRINCIPAL_FREE = """
    AND (
        runs.principal_id IS NULL
        OR (
            SELECT COUNT(*) FROM runs AS other JOIN leases AS theirs ON theirs.kind = 'run' AND theirs.name = other.id
            WHERE other.principal_id = runs.principal_id AND other.id <> runs.id
            AND theirs.owner IS NOT NULL AND theirs.until > @now AND other.ended_at IS NULL
        ) < ?
    )
"""
_PROGRESS = ("message", "call_finished", "call_resolved", "step_finished", "approval_requested", "run_suspended")
"""Facts that say that a run got further. Being resumed and starting a call again is none."""
_ANOTHER_DEATH = f"""
    CASE
        WHEN EXISTS (
            SELECT 1 FROM facts WHERE facts.run_id = runs.id AND facts.seq > runs.claimed_seq
            AND facts.type IN ({", ".join(f"'{kind}'" for kind in _PROGRESS)})
        ) THEN 1
        ELSE deaths + 1
    END
"""
_ONLY_SUSPECT = f"""
    AND (
        CASE WHEN held.owner IS NULL OR held.owner = ? THEN deaths ELSE {_ANOTHER_DEATH} END < {ON_PROBATION}
        OR NOT EXISTS (
            SELECT 1 FROM runs AS other JOIN leases AS theirs ON theirs.kind = 'run' AND theirs.name = other.id
            WHERE theirs.owner = ? AND other.id <> runs.id AND other.deaths >= {ON_PROBATION}
            AND other.ended_at IS NULL
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
    id IN (
        SELECT run_id FROM approvals WHERE consumed = 0 AND approvals.status <> 'pending'
        UNION ALL SELECT run_id FROM approvals WHERE approvals.status = 'pending' AND expires_at <= @now
        AND consumed = 0
    )
"""

_QUEUED = f"runs.ended_at IS NULL AND status = '{RunStatus.QUEUED.value}'"
_WAITING = f"{_QUEUED} AND held.owner IS NULL"


_REPORTED = """
    EXISTS (
        SELECT 1 FROM call_reports JOIN calls ON calls.execution_id = call_reports.execution_id
        WHERE call_reports.run_id = runs.id AND calls.status = 'unknown'
    )
"""


_SPECIAL_COLUMNS = {
    "status": _STATUS,
    "epoch": "runs.epoch",
    "owner": "CASE WHEN held.until > @now THEN held.owner END",
    "taken_from": "held.taken_from",
    "trouble_seconds": "@now - trouble_since",
    "waits_until": f"CASE WHEN runs.{_WAITS_FOR_A_PERSON} THEN ({_FIRST_EXPIRY}) END",
}
ROW_COLUMNS = ", ".join(_SPECIAL_COLUMNS.get(name, name) for name in RunRow.model_fields)
"""The fields of a RunRow out of ``RUNS_AND_LEASES``. Who held it until a lease was over does not hold it."""


class RunFilter(TypedDict, total=False):
    """Which runs are listed; what is left out tests nothing."""

    statuses: Collection[RunStatus] | None
    session_id: str | None
    principal_id: PrincipalFilter
    agent: str | None
    tool: str | None
    """One that was called, whatever came of it."""
    outcome: Outcome | None
    text: str
    """Each of its words occurs in the request, or in the name of the run, its agent or its principal."""
    since: float | None
    until: float | None
    """When it was created: from the one, and before the other."""


LONGEST_REQUEST = 300
MOST_WORDS_KEPT = 2_000
"""Characters of a request that its row shows, and in which it is found."""


class SqlRuns(Aggregate):
    """Runs in a database."""

    @writes(sync=True)
    def create(
        self,
        connection: Connection,
        order: RunOrder,
        *,
        any_session: bool = False,
        artifacts: Mapping[str, str] | None = None,
    ) -> bool:
        """Keep a new run as queued, with what it refers to. False when there is one of that id: the first order counts.

        A session belongs to the principal of its first run. Raises SessionTakenError for anybody else's, unless
        ``any_session`` will do.
        """
        row = _row(connection, order, any_session=any_session)
        created = connection.put("runs", row, key="id") == 1
        if created:
            for artifact_id, text in (artifacts or {}).items():
                add_chunks(connection, run_id=order.run_id, artifact_id=artifact_id, chunks=list(chunked(text)))
        elif row["session_id"] is not None:
            drop_unused_session(connection, row["session_id"])
        return created

    async def order(self, run_id: str) -> RunOrder | None:
        rows = await self._query("SELECT asked FROM runs WHERE id = ?", run_id)
        return RunOrder.stored(rows[0][0]) if rows else None

    async def get(self, run_id: str) -> RunRow | None:
        rows = await self._rows("WHERE id = ?", run_id)
        return rows[0] if rows else None

    async def list(
        self, *, after: str | None = None, limit: int = 50, offset: int = 0, **only: Unpack[RunFilter]
    ) -> Sequence[RunRow]:
        """Newest first: those of one session by turn, others by when they were created."""
        statuses = only.get("statuses")
        if statuses is not None and not statuses:
            return ()
        in_session = only.get("session_id") is not None
        where = _only(only).after("runs", "turn" if in_session else "created_at, id", after, newest_first=True)
        order = "turn DESC" if in_session else "created_at DESC, id DESC"
        return await self._rows(f"{where.clause} ORDER BY {order} LIMIT ? OFFSET ?", *where.values, limit, offset)

    async def count(self, **only: Unpack[RunFilter]) -> int:
        return await self._count("runs", _only(only))

    async def unfinished(self, run_ids: Collection[str]) -> Collection[str]:
        """Those of these runs that are there and have not ended."""
        sql = f"SELECT id FROM runs WHERE {is_among('id')} AND ended_at IS NULL"
        return {run_id for (run_id,) in await self._query(sql, json.dumps([*run_ids]))}

    async def named(self, run_ids: Collection[str]) -> Mapping[str, RunRow]:
        """These runs by their ids; those that are gone are left out."""
        return {row.id: row for row in await self._rows(f"WHERE {is_among('id')}", json.dumps([*run_ids]))}

    async def ahead_of(self, run_id: str) -> RunRow | None:
        """The first unfinished run of the same session before this one; None when the run is next or has begun."""
        rows = await self._rows(_AHEAD, run_id, RunStatus.QUEUED.value, run_id)
        return rows[0] if rows else None

    async def _rows(self, which: str, *values: Any) -> Sequence[RunRow]:
        return entities(RunRow, await self._query(f"SELECT {ROW_COLUMNS} FROM {RUNS_AND_LEASES} {which}", *values))

    @writes(sync=True)
    def claim(
        self,
        connection: Connection,
        run_id: str,
        *,
        owner: str,
        lease_seconds: float,
        dead: Collection[str] = (),
        principal_limit: int | None = None,
        in_turn: bool = True,
    ) -> int | None:
        """Take a run over and return its new epoch, or None when it cannot be had.

        Leases begin and end by the database's clock: the clocks of its programs may differ.
        It can be had when it has not ended, nobody holds a lease on it (or the holder is among ``dead``, or is the
        claimer itself), no earlier run of its session is unfinished (unless it need not be ``in_turn``), and its
        principal has fewer than ``principal_limit`` runs under way. One that waits for a person to say that it may
        be tried again (``stuck``) only where it need not be ``in_turn``.

        Taking over from somebody who has died, or is lost, counts as one of its ``deaths``, unless it turns out to be
        alive: it announces itself, or gives the run back. A run with ``ON_PROBATION`` of them is
        had by an owner only while it holds no other such run: so it is known whose fault the next death is.
        """
        conditions, counted = "", list[Any]([run_id])
        if in_turn:
            turn = f"status <> '{RunStatus.STUCK.value}' AND {_SESSION_FREE} {_ONLY_SUSPECT}"
            conditions += f" AND (cancel_wanted = 1 OR ({turn}))"
            counted += [owner, owner]
        if principal_limit is not None:
            conditions += _PRINCIPAL_FREE
            counted.append(principal_limit)
            # Two who count at the same time would both find a free place.
            for (principal_id,) in connection.query("SELECT principal_id FROM runs WHERE id = ?", run_id):
                connection.lock(f"principal {principal_id}")
        only = f"SELECT 1 FROM {RUNS_AND_LEASES} WHERE id = ? AND {_UNFINISHED} {conditions}"
        taken = RUN_LEASES.take(connection, run_id, owner=owner, seconds=lease_seconds, dead=dead, only=(only, counted))
        if taken is None:
            return None
        lost = None if taken.taken_from == owner else taken.taken_from
        claimed = connection.query("SELECT claimed_seq FROM runs WHERE id = ?", run_id)
        rows = connection.query(
            f"UPDATE runs SET epoch = ?, deaths = {_ANOTHER_DEATH if lost else 'deaths'}, claimed_seq = last_seq, "
            f"updated_at = @now WHERE id = ? AND {_UNFINISHED} RETURNING deaths, last_seq",
            *(taken.epoch, run_id),
        )
        if not rows:  # whoever had it has ended it meanwhile
            RUN_LEASES.end(connection, run_id, epoch=taken.epoch)
            return None
        if taken.taken_from is not None and rows[0][0] == 1:
            forget_deaths(connection, run_id)  # it got further since the others
        if lost is not None and lost not in dead:
            # It may be alive all the same, and have the outcome of a call to report.
            facts = (claimed[0][0] or 0, rows[0][1])
            note_former_owner(connection, run_id, lost, lease_until=taken.taken_until, facts=facts)
        return taken.epoch

    async def heard_of(self, owner: str) -> None:
        """This owner is alive: what was taken over from it did not kill it. Revives what was given up for that."""
        await self._database.write(lambda connection: heard_of(connection, owner), sync=False)

    @writes(sync=False)
    def proved(self, connection: Connection, run_id: str, *, epoch: int) -> None:
        """A run has got further than the processes that died on it or could not go on with it: forget these."""
        sql = (
            "UPDATE runs SET deaths = 0, trouble = NULL, trouble_since = NULL, retry_at = 0 WHERE id = ? AND epoch = ?"
        )
        if connection.execute(sql, run_id, epoch):
            forget_deaths(connection, run_id)

    @writes(sync=True)
    def revive(self, connection: Connection, run_id: str) -> None:
        """Let a run that is stuck, or that nobody could go on with, be tried again at once. A person's word."""
        connection.execute(
            f"UPDATE runs SET deaths = 0, trouble = NULL, trouble_since = NULL, "
            f"status = '{RunStatus.RUNNING.value}' WHERE id = ? AND status = '{RunStatus.STUCK.value}'",
            run_id,
        )
        connection.execute("UPDATE runs SET retry_at = 0 WHERE id = ? AND retry_at > 0", run_id)
        forget_deaths(connection, run_id)

    @writes(sync=False)
    def note_trouble(self, connection: Connection, run_id: str, text: str) -> None:
        """Say why a process cannot go on with a run. It is due again later, and each time later still."""
        sql = "SELECT @now, trouble_since FROM runs WHERE id = ? AND ended_at IS NULL"
        for now, since in connection.query(sql, run_id):
            rest = min(LONGEST_REST, max(FIRST_REST, 0.0 if since is None else now - since))
            connection.execute(
                "UPDATE runs SET trouble = ?, trouble_since = COALESCE(trouble_since, ?), retry_at = ? WHERE id = ?",
                *(text, now, now + rest, run_id),
            )

    @writes(sync=False)
    def renew(self, connection: Connection, owner: str, *, lease_seconds: float) -> Sequence[str]:
        """Prolong the leases of everything this owner holds; returns the runs somebody wants cancelled."""
        returning = "name, (SELECT cancel_wanted FROM runs WHERE runs.id = leases.name)"
        rows = RUN_LEASES.renew(connection, owner=owner, seconds=lease_seconds, returning=returning)
        return tuple(run_id for run_id, wanted in rows if wanted)

    @writes(sync=True)
    def request_cancel(self, connection: Connection, run_id: str, *, by: str | None = None) -> bool:
        """Ask whoever holds the run to cancel it; False when it has ended or does not exist.

        The first who is named is the one of whom the audit tells.
        """
        changed = connection.execute(
            "UPDATE runs SET cancel_wanted = 1, cancelled_by = COALESCE(cancelled_by, ?) "
            "WHERE id = ? AND ended_at IS NULL",
            *(by, run_id),
        )
        return changed > 0

    async def owners(self) -> Sequence[str]:
        """Everybody who holds an unfinished run."""
        sql = "SELECT DISTINCT owner FROM leases WHERE kind = 'run' AND owner IS NOT NULL"
        rows = await self._query(sql)
        return tuple(owner for (owner,) in rows)

    @writes(sync=False)
    def release(self, connection: Connection, run_id: str, *, owner: str, epoch: int) -> None:
        """Give a run back without ending it. One that was taken over: say that nothing of it is under way here."""
        if not RUN_LEASES.release(connection, run_id, epoch=epoch):
            heard_of(connection, owner)
            connection.execute("DELETE FROM former_owners WHERE run_id = ? AND owner = ?", run_id, owner)

    @writes(sync=True)
    def report(self, connection: Connection, started: CallStarted, record: ToolCallRecord | None) -> None:
        """What became of a call that was begun here, where the run was taken over meanwhile.

        None: it did not begin, or may begin again. Counts as long as nobody has settled or repeated the call.
        """
        run_id, seq = started.run_id, started.seq
        known = connection.query("SELECT body FROM facts WHERE run_id = ? AND seq = ?", run_id, seq)
        if [body for (body,) in known] != [json_text(started)]:
            return  # it never got into the journal, so nobody can take it for begun
        later = connection.query(
            "SELECT body FROM facts WHERE run_id = ? AND seq > ? AND type IN ('call_started', 'call_resolved')",
            *(run_id, seq),
        )
        if any(json.loads(body)["call_id"] == started.call_id for (body,) in later):
            return
        row = {"run_id": run_id, "seq": seq, "execution_id": started.execution_id}
        connection.put("call_reports", {**row, "body": record and json_text(record)}, key="run_id, seq")

    @reads
    def reported(self, connection: Connection, started: CallStarted) -> CallReport:
        """The report on this start of a call, and who had the run then: nobody else can have begun it."""
        run_id, seq = started.run_id, started.seq
        rows = connection.query("SELECT body FROM call_reports WHERE run_id = ? AND seq = ?", run_id, seq)
        if rows:
            [(body,)] = rows
            return CallReport(reported=True, record=None if body is None else ToolCallRecord.stored(body))
        # What was heard last: that it held the run, or that it was at work on the database at all.
        found = connection.query(
            """
            SELECT former_owners.owner, @now - CASE
                WHEN programs.seen_at > former_owners.since THEN programs.seen_at ELSE former_owners.since END
            FROM former_owners LEFT JOIN programs ON programs.owner = former_owners.owner
            WHERE former_owners.run_id = ? AND (after_seq IS NULL OR (after_seq < ? AND until_seq >= ?))
            """,
            *(run_id, seq, seq),
        )
        return CallReport(at_work=tuple(FormerOwner(owner=owner, silent_seconds=silent) for owner, silent in found))

    async def due(
        self,
        *,
        dead: Sequence[str] = (),
        among: Collection[str] | None = None,
        suspects: bool = False,
        rested: bool = True,
        limit: int = 1_000,
    ) -> Sequence[DueRun]:
        """Unheld runs that can go on now, or those ``among`` some that can.

        The highest priority first; of one priority the oldest of each principal, then the second of each, and so on.
        Queued ones whose session is free, running ones whose holder is gone, and waiting ones of which an approval
        was decided, or has expired, or the outcome of an unknown call was reported, since. With ``suspects`` those,
        and else only others, on which a process has died; the fewest deaths first. Runs that processes could not go on
        with lately are left out where they must be ``rested``.
        """
        tried = "retry_at <= @now AND" if rested else ""
        common = f"{tried} deaths {'>' if suspects else '='} 0 AND {lease_is_free('held', dead)}"
        cases = (
            f"status = '{RunStatus.QUEUED.value}' AND {_SESSION_FREE}",
            f"status = '{RunStatus.RUNNING.value}'",
            f"status = '{RunStatus.AWAITING_APPROVAL.value}' AND {_DECIDED}",
            f"status = '{RunStatus.AWAITING_RESOLUTION.value}' AND {_REPORTED}",
            _TO_CANCEL,
        )
        if among is not None or suspects:  # few: each of them is looked at
            which, names = (_SUSPECT, ()) if among is None else (is_among("id"), (json.dumps([*among]),))
            wanted = f"{_DUE} WHERE ended_at IS NULL AND {common} AND {which} AND ({' OR '.join(cases)})"
            values = (*dead, *names)
        else:  # each case by an index of its own: of a hundred thousand that wait, only the first are read
            queued, *others = (f"{_DUE} WHERE ended_at IS NULL AND {common} AND {case}" for case in cases)
            wanted = " UNION ".join((f"SELECT * FROM ({queued} ORDER BY {_LINE} LIMIT ?) AS queued", *others))
            values = (*dead, limit, *[*dead] * len(others))
        order = f"deaths, {_LINE}" if suspects else _LINE
        sql = f"SELECT id, principal_id, left_by FROM ({wanted}) AS due ORDER BY {order} LIMIT ?"
        return tuple(DueRun(*row) for row in await self._query(sql, *values, limit))

    async def waiting(self) -> Sequence[str]:
        """Queued runs that nobody holds, in the order in which they will be begun."""
        rows = await self._query(f"SELECT id FROM {RUNS_AND_LEASES} WHERE {_WAITING} ORDER BY {_LINE}")
        return tuple(run_id for (run_id,) in rows)

    async def place(self, run_id: str) -> int:
        """How many of its principal's queued runs are as old or older, itself included."""
        sql = f"""
            SELECT COUNT(*) FROM {RUNS_AND_LEASES}, (SELECT principal_id, created_at FROM runs WHERE id = ?) AS mine
            WHERE {_WAITING} AND runs.created_at <= mine.created_at
            AND COALESCE(runs.principal_id, '') = COALESCE(mine.principal_id, '')
        """
        [(count,)] = await self._query(sql, run_id)
        return int(count)

    def journal(self, run_id: str, *, epoch: int) -> Journal:
        """The run's journal for the holder of this epoch: anybody else's writes raise JournalConflictError.

        In one transaction with the facts: the run's status and last_seq; suspended and ended runs are released; calls
        go to the call log; refusals to the audit; decided approvals are marked as consumed; an ended session run
        leaves its messages in the conversation. A CallStarted is committed when ``append`` returns, synced or not: it
        is where the fence stands.
        """
        return SqlJournal(self._database, run_id, epoch)

    async def forks(self, run_id: str) -> Sequence[RunRow]:
        """The runs that share the past of this one, the oldest first."""
        return await self._rows("WHERE parent_id = ? ORDER BY created_at, id", run_id)

    async def facts(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[Fact]:
        most = EVERY if limit is None else limit
        return await self._database.read(partial(read_facts, run_id=run_id, after=after, limit=most))

    async def all_facts(self, run_id: str) -> AsyncIterator[Fact]:
        """A run may have a hundred thousand. Read in pages: others go on in between."""
        after = 0
        while page := await self.facts(run_id, after=after, limit=FACTS_AT_ONCE):
            for fact in page:
                yield fact
            after = page[-1].seq or after
            if len(page) < FACTS_AT_ONCE:
                break

    async def purge(self, *, ended_before: float) -> int:
        """Forget ended runs that are older, with their facts, artifacts and approvals; returns how many.

        Conversations, the call log and the audit stay.
        """
        counts: Counter[str] = Counter()
        await purge_runs(self._database, ended_before=ended_before, counts=counts)
        return counts["runs"]


def _only(only: RunFilter) -> Where:
    where = Where().equals(session_id=only.get("session_id"), agent_name=only.get("agent"), outcome=only.get("outcome"))
    where.of(only.get("principal_id", ANY_PRINCIPAL)).within("created_at", only.get("since"), only.get("until"))
    if (tool := only.get("tool")) is not None:
        where.holds("EXISTS (SELECT 1 FROM calls WHERE calls.run_id = runs.id AND calls.tool_name = ?)", tool)
    if (statuses := only.get("statuses")) is not None:
        _with_status(where, statuses)
    return where.words("words", only.get("text", ""))


def _with_status(where: Where, statuses: Collection[RunStatus]) -> None:
    wanted = tuple(status.value for status in statuses)
    condition = f"status IN ({marks(wanted)})"
    asked, running = RunStatus.AWAITING_APPROVAL in statuses, RunStatus.RUNNING in statuses
    if asked and not running:
        condition = f"({condition} AND (NOT {_WAITS_FOR_A_PERSON} OR {_ASKED}))"
    elif running and not asked:
        condition = f"({condition} OR ({_WAITS_FOR_A_PERSON} AND NOT {_ASKED}))"
    where.holds(condition, *wanted)
    if not any(status.ended for status in statuses):
        # Says nothing new, but lets the indexes over unfinished runs be used.
        where.holds("ended_at IS NULL")


def _row(connection: Connection, order: RunOrder, *, any_session: bool) -> dict[str, Any]:
    """What a run begins as."""
    principal_id, session_id, turn = order.principal_id, order.task.session_id, None
    if session_id is not None:
        began: dict[str, Any] = {"principal_id": principal_id, "now": order.created_at, "said": order.task.description}
        if not touch_session(connection, session_id, **began, anybodys=any_session):
            raise SessionTakenError(session_id)
        [(turn,)] = connection.query("SELECT COALESCE(MAX(turn), 0) + 1 FROM runs WHERE session_id = ?", session_id)
    return {
        "id": order.run_id,
        "task_id": order.task.task_id,
        "agent_name": str(order.agent.get("name", "")),
        "session_id": session_id,
        "turn": turn,
        "principal_id": principal_id,
        "status": RunStatus.QUEUED.value,
        "priority": order.priority,
        "place": _place(connection, order),
        "epoch": 0,
        "last_seq": 0 if order.fork is None else order.fork.seq,
        "parent_id": None if order.fork is None else order.fork.run_id,
        "parent_seq": None if order.fork is None else order.fork.seq,
        "history_length": 0,
        "created_at": order.created_at,
        "updated_at": order.created_at,
        "asked": json_text(order),
        "request": storable(shortened(order.task.description)),
        "words": storable(_words(order)),
    }


def _place(connection: Connection, order: RunOrder) -> int:
    """Where a new run comes among those of its priority: after its principal's own, and level with who is next.

    So of each principal the oldest is begun first, then the second of each, and so on; and nothing is sorted for that.
    """
    whose = Where().of(order.principal_id)
    [(first, last)] = connection.query(
        f"SELECT (SELECT place FROM runs WHERE {_QUEUED} AND priority = ? ORDER BY {_LINE} LIMIT 1), "
        f"(SELECT place FROM runs WHERE {_QUEUED} AND priority = ? AND created_at <= ? AND {whose.tests[0]} "
        "ORDER BY created_at DESC, id DESC LIMIT 1)",
        *(order.priority, order.priority, order.created_at, *whose.values),
    )
    return max(first or 1, (last or 0) + 1)


def shortened(text: str) -> str:
    """How a request begins, on one line."""
    line = " ".join(text[: 4 * LONGEST_REQUEST].split())
    return line if len(line) <= LONGEST_REQUEST else f"{line[: LONGEST_REQUEST - 1]}…"


def _words(order: RunOrder) -> str:
    names = (order.run_id, str(order.agent.get("name", "")), order.principal_id or "")
    return " ".join((order.task.description[:MOST_WORDS_KEPT], *names)).casefold()
