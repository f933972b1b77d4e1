"""What processes on one database tell each other: who is at work, what became of calls whose run was taken over, and
signals (deltas, progress) for whoever shows a run, duties of one at a time, requests that were made before.

Signals are rows for a moment, which readers poll: that works on SQLite, and through a connection pool that a
notification would not pass. Where one does, they are told when to look.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from journeyman.core.data import FORMAT
from journeyman.core.runs import RunStatus
from journeyman.core.storing import Lease, NotedRequest, SignalBatch
from journeyman.stores.connection import Connection, columns, entities
from journeyman.stores.database import DUTY_LEASES, Aggregate, Database, writes

# --- calls that were under way when their run was taken over


def note_former_owner(
    connection: Connection, run_id: str, owner: str, *, lease_until: float, facts: tuple[int, int]
) -> None:
    """A run was taken over from somebody who counts as one of its deaths, and may be alive all the same.

    Under its lease the ``facts`` after one up to the other were written. Of an earlier lease of the same owner nothing
    is under way any more: it takes a run again only when it is done with it.
    """
    connection.execute(
        "INSERT INTO former_owners (run_id, owner, since, counted, after_seq, until_seq) "
        "VALUES (?, ?, @now, 1, ?, ?) ON CONFLICT (run_id, owner) DO UPDATE SET "
        "since = excluded.since, counted = 1, after_seq = excluded.after_seq, until_seq = excluded.until_seq",
        *(run_id, owner, *facts),
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


# --- programs at work


class SqlPrograms(Aggregate):
    """Programs in a database. Each announces itself again and again; one that stops is forgotten after a while."""

    def __init__(self, database: Database, *, format: int = FORMAT) -> None:
        super().__init__(database)
        self._own = format

    @writes(sync=False)
    def announce(self, connection: Connection, owner: str, *, silent_seconds: float, executes: bool = True) -> int:
        """Say that this program is at work; returns the lowest format version of those that are.

        One that was silent for so long is not. All by the database's clock.
        """
        heard_of(connection, owner)
        connection.execute(
            "INSERT INTO programs (owner, format, executes, seen_at) VALUES (?, ?, ?, @now) "
            "ON CONFLICT (owner) DO UPDATE SET format = excluded.format, seen_at = excluded.seen_at",
            *(owner, self._own, int(executes)),
        )
        connection.execute("DELETE FROM programs WHERE owner <> ? AND seen_at < @now - ?", owner, silent_seconds)
        [(lowest,)] = connection.query("SELECT MIN(format) FROM programs")
        return int(lowest)

    async def executing(self, *, silent_seconds: float) -> Sequence[str]:
        """The programs seen lately that carry out runs."""
        rows = await self._query(
            "SELECT owner FROM programs WHERE executes = 1 AND seen_at >= @now - ?", silent_seconds
        )
        return tuple(owner for (owner,) in rows)

    @writes(sync=False)
    def leave(self, connection: Connection, owner: str) -> None:
        heard_of(connection, owner)
        connection.execute("DELETE FROM programs WHERE owner = ?", owner)
        # Nor has it anything left to report.
        connection.execute("DELETE FROM former_owners WHERE owner = ?", owner)


# --- signals

RUN_CHANNEL = "journeyman_runs"
"""On which PostgreSQL tells of runs."""


class SqlSignals(Aggregate):
    """Signals in a database."""

    @writes(sync=False)
    def read(self, connection: Connection, run_id: str, *, seconds: float) -> None:
        """Say that somebody reads a run's signals, for so long at least."""
        connection.execute(
            "INSERT INTO signal_readers (run_id, reads_until) VALUES (?, @now + ?) "
            "ON CONFLICT (run_id) DO UPDATE SET reads_until = excluded.reads_until "
            "WHERE signal_readers.reads_until < excluded.reads_until",
            *(run_id, seconds),
        )

    async def readers(self) -> Collection[str]:
        """The runs of which somebody reads the signals."""
        rows = await self._query("SELECT run_id FROM signal_readers WHERE reads_until > @now")
        return {run_id for (run_id,) in rows}

    @writes(sync=False)
    def put(self, connection: Connection, batches: Sequence[SignalBatch], *, changed: Collection[str] = ()) -> None:
        """Send signals. Those of the same run that came before an earlier fact are dropped.

        Whoever listens is told of these runs, and of those that have ``changed``.
        """
        for batch in batches:
            # What came before an earlier fact is in that fact, or of no more use.
            connection.execute("DELETE FROM signals WHERE run_id = ? AND after_seq < ?", batch.run_id, batch.after_seq)
            connection.execute(
                f"INSERT INTO signals ({columns(SignalBatch)}, written_at) VALUES (?, ?, ?, ?, @now) "
                "ON CONFLICT (run_id, after_seq, number) DO NOTHING",
                *(batch.run_id, batch.after_seq, batch.number, batch.content),
            )
        if connection.dialect == "postgresql":
            # Commits that notify wait for each other: a few a second of each process, and no journal's.
            for run_id in {*changed, *(batch.run_id for batch in batches)}:
                connection.query("SELECT pg_notify(?, ?)", RUN_CHANNEL, run_id)

    async def after(self, run_id: str, after_seq: int, number: int) -> Sequence[SignalBatch]:
        """What was sent after a batch, in order."""
        sql = f"""
            SELECT {columns(SignalBatch)} FROM signals
            WHERE run_id = ? AND (after_seq > ? OR (after_seq = ? AND number > ?)) ORDER BY after_seq, number
        """
        rows = await self._query(sql, run_id, after_seq, after_seq, number)
        return entities(SignalBatch, rows)

    @writes(sync=False)
    def purge(self, connection: Connection, *, before: float) -> None:
        """Drop what was sent, and who has read, before this time."""
        connection.execute("DELETE FROM signals WHERE written_at < ?", before)
        connection.execute("DELETE FROM signal_readers WHERE reads_until < ?", before)


# --- duties


class SqlLeases(Aggregate):
    """Duties: leases of which nothing else is stored."""

    @writes(sync=False)
    def take(
        self, connection: Connection, name: str, *, owner: str, lease_seconds: float, dead: Collection[str] = ()
    ) -> Lease:
        """Take a duty, or keep it for so much longer, unless another process has it that is not ``dead``.

        Returns who has it now. Leases begin and end by the database's clock.
        """
        DUTY_LEASES.take(connection, name, owner=owner, seconds=lease_seconds, dead=dead)
        [row] = connection.query("SELECT owner, epoch FROM leases WHERE kind = 'duty' AND name = ?", name)
        return Lease(owner=row[0], epoch=row[1])

    @writes(sync=False)
    def release(self, connection: Connection, name: str, *, epoch: int) -> None:
        """Give a duty back, if it is still the one of this epoch."""
        DUTY_LEASES.release(connection, name, epoch=epoch)


# --- requests that clients may send again, and the runs that answer them


REQUEST_SECONDS = 2 * 24 * 3600.0
"""Longer than any client goes on trying."""
UNANSWERED_SECONDS = 60 * 24 * 3600.0
"""How long one is kept whose client was told to ask again: longer than people take to decide."""

_NEVER = 1e18
"""Later than any request."""


class SqlIdempotency(Aggregate):
    """Requests in a database, by digest."""

    @writes(sync=False)
    def note(self, connection: Connection, request: NotedRequest, *, unless_since: float | None = None) -> NotedRequest:
        """Note a request, unless the same was noted since then; returns the one that counts."""
        # By the database's clock: a process whose own is ahead would forget what others are asked again.
        connection.execute(
            "DELETE FROM idempotency WHERE asked_at < @now - ? AND (unanswered = 0 OR asked_at < @now - ?)",
            *(REQUEST_SECONDS, UNANSWERED_SECONDS),
        )
        # Of requests that come at once, only the first is new: the update waits for whoever writes the same row.
        connection.execute(
            f"INSERT INTO idempotency ({columns(NotedRequest)}) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET "
            "run_id = excluded.run_id, asked_at = excluded.asked_at, unanswered = excluded.unanswered "
            "WHERE idempotency.asked_at < ?",
            *(
                request.digest,
                request.run_id,
                request.asked_at,
                int(request.unanswered),
                _NEVER if unless_since is None else unless_since,
            ),
        )
        sql = f"SELECT {columns(NotedRequest)} FROM idempotency WHERE digest = ?"
        return entities(NotedRequest, connection.query(sql, request.digest))[0]

    async def find(self, digest: str) -> NotedRequest | None:
        sql = f"SELECT {columns(NotedRequest)} FROM idempotency WHERE digest = ?"
        rows = await self._query(sql, digest)
        return entities(NotedRequest, rows)[0] if rows else None

    async def mark(self, digest: str, run_id: str, *, unanswered: bool) -> None:
        """Say whether its client still has an answer to come, if this run is still the one that gives it."""
        sql = "UPDATE idempotency SET unanswered = ? WHERE digest = ? AND run_id = ?"
        await self._database.write(lambda connection: connection.execute(sql, int(unanswered), digest, run_id))

    async def forget(self, digest: str, run_id: str) -> None:
        """Its client has its answer, and would mean another request by the same words."""
        sql = "DELETE FROM idempotency WHERE digest = ? AND run_id = ?"
        await self._database.write(lambda connection: connection.execute(sql, digest, run_id), sync=False)
