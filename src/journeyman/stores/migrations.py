"""The schema, as numbered steps up and down. Both databases run the same statements."""

from __future__ import annotations

from dataclasses import dataclass

from journeyman.core.errors import ConfigurationError
from journeyman.stores.connection import Connection


@dataclass(frozen=True, slots=True)
class Migration:
    """One step. ``down`` undoes ``up``, data included.

    Programs of an older version go on working on the database while it is upgraded. So a step only adds tables,
    indexes, and columns that may be left out. One that cannot keep to that is ``breaking``: programs that do not know
    it refuse the database.
    """

    name: str
    up: tuple[str, ...]
    down: tuple[str, ...]
    breaking: bool = False


RUNS = Migration(
    "runs",
    up=(
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY, task_id TEXT NOT NULL, agent_name TEXT NOT NULL, session_id TEXT,
            turn INTEGER, principal_id TEXT, status TEXT NOT NULL, priority INTEGER NOT NULL,
            epoch INTEGER NOT NULL, owner TEXT, lease_until DOUBLE PRECISION NOT NULL,
            cancel_wanted INTEGER NOT NULL DEFAULT 0, last_seq INTEGER NOT NULL,
            history_length INTEGER NOT NULL, created_at DOUBLE PRECISION NOT NULL,
            updated_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION, asked TEXT NOT NULL
        )
        """,
        "CREATE INDEX runs_unfinished ON runs (priority DESC, created_at) WHERE ended_at IS NULL",
        "CREATE INDEX runs_held ON runs (owner) WHERE owner IS NOT NULL",
        "CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL",
        "CREATE INDEX runs_created ON runs (created_at)",
        "CREATE INDEX runs_of_session ON runs (session_id, turn)",
        """
        CREATE TABLE facts (
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, seq INTEGER NOT NULL,
            type TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run_id, seq)
        )
        """,
    ),
    down=("DROP TABLE facts", "DROP TABLE runs"),
)

CONVERSATIONS = Migration(
    "conversations",
    up=(
        """
        CREATE TABLE sessions (
            id TEXT PRIMARY KEY, principal_id TEXT, created_at DOUBLE PRECISION NOT NULL,
            updated_at DOUBLE PRECISION NOT NULL
        )
        """,
        "CREATE INDEX sessions_used ON sessions (updated_at)",
        """
        CREATE TABLE messages (
            session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE, number INTEGER NOT NULL,
            run_id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (session_id, number)
        )
        """,
    ),
    down=("DROP TABLE messages", "DROP TABLE sessions"),
)

APPROVALS = Migration(
    "approvals",
    up=(
        """
        CREATE TABLE approvals (
            id TEXT PRIMARY KEY, run_id TEXT NOT NULL, status TEXT NOT NULL,
            requested_at DOUBLE PRECISION NOT NULL, expires_at DOUBLE PRECISION NOT NULL,
            decided_at DOUBLE PRECISION, decided_by TEXT, reason TEXT, edited TEXT, consumed INTEGER NOT NULL,
            question TEXT NOT NULL
        )
        """,
        "CREATE INDEX approvals_of_run ON approvals (run_id)",
        "CREATE INDEX approvals_pending ON approvals (expires_at) WHERE status = 'pending'",
        """
        CREATE TABLE grants (
            id TEXT PRIMARY KEY, session_id TEXT NOT NULL, tool_name TEXT NOT NULL, granted_by TEXT NOT NULL,
            granted_at DOUBLE PRECISION NOT NULL, revoked_at DOUBLE PRECISION, revoked_by TEXT
        )
        """,
        "CREATE INDEX grants_of_session ON grants (session_id, tool_name)",
    ),
    down=("DROP TABLE grants", "DROP TABLE approvals"),
)

CALLS = Migration(
    "calls",
    up=(
        """
        CREATE TABLE calls (
            execution_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, call_id TEXT NOT NULL,
            tool_name TEXT NOT NULL, status TEXT NOT NULL, risk TEXT, attempts INTEGER NOT NULL,
            cached INTEGER NOT NULL, error_code TEXT, started_at DOUBLE PRECISION NOT NULL,
            duration_ms DOUBLE PRECISION NOT NULL
        )
        """,
        "CREATE INDEX calls_started ON calls (started_at)",
        "CREATE INDEX calls_of_run ON calls (run_id)",
    ),
    down=("DROP TABLE calls",),
)

AUDIT = Migration(
    "audit",
    up=(
        """
        CREATE TABLE audit (
            seq BIGINT PRIMARY KEY, time DOUBLE PRECISION NOT NULL, kind TEXT NOT NULL, actor TEXT,
            run_id TEXT, subject TEXT NOT NULL, details TEXT NOT NULL, previous TEXT NOT NULL,
            hash TEXT NOT NULL
        )
        """,
        "CREATE TABLE audit_head (id INTEGER PRIMARY KEY, seq BIGINT NOT NULL, hash TEXT NOT NULL)",
        "INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, '')",
    ),
    down=("DROP TABLE audit_head", "DROP TABLE audit"),
)

LIMITS = Migration(
    "limits",
    up=(
        """
        CREATE TABLE buckets (
            bucket TEXT PRIMARY KEY, tokens DOUBLE PRECISION NOT NULL, since DOUBLE PRECISION NOT NULL
        )
        """,
        "CREATE TABLE breakers (tool_name TEXT PRIMARY KEY, failures INTEGER NOT NULL, open_until DOUBLE PRECISION)",
    ),
    down=("DROP TABLE breakers", "DROP TABLE buckets"),
)

TASKS = Migration(
    "tasks",
    up=(
        """
        CREATE TABLE tasks (
            id TEXT PRIMARY KEY, status TEXT NOT NULL, urgency INTEGER NOT NULL, eta DOUBLE PRECISION,
            created_at DOUBLE PRECISION NOT NULL, updated_at DOUBLE PRECISION NOT NULL,
            version INTEGER NOT NULL, title TEXT NOT NULL, words TEXT NOT NULL, body TEXT NOT NULL
        )
        """,
        "CREATE INDEX tasks_created ON tasks (created_at)",
        "CREATE INDEX tasks_due ON tasks (eta)",
        """
        CREATE TABLE task_tags (
            task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE, tag TEXT NOT NULL,
            PRIMARY KEY (task_id, tag)
        )
        """,
        "CREATE INDEX task_tags_tag ON task_tags (tag)",
        """
        CREATE TABLE task_versions (
            task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE, number INTEGER NOT NULL,
            replaced_at DOUBLE PRECISION NOT NULL, body TEXT NOT NULL, PRIMARY KEY (task_id, number)
        )
        """,
        """
        CREATE TABLE attachments (
            id TEXT PRIMARY KEY, task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
            number INTEGER NOT NULL, reference TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (task_id, reference)
        )
        """,
    ),
    down=("DROP TABLE attachments", "DROP TABLE task_versions", "DROP TABLE task_tags", "DROP TABLE tasks"),
)

GAPS = Migration(
    "gaps",
    up=(
        """
        CREATE TABLE gaps (
            id TEXT PRIMARY KEY, created_at DOUBLE PRECISION NOT NULL, run_id TEXT, report TEXT NOT NULL
        )
        """,
        "CREATE INDEX gaps_created ON gaps (created_at)",
    ),
    down=("DROP TABLE gaps",),
)

EXPERIMENTS = Migration(
    "experiments",
    up=(
        """
        CREATE TABLE experiments (
            id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at DOUBLE PRECISION NOT NULL, winner TEXT,
            report TEXT NOT NULL
        )
        """,
        "CREATE INDEX experiments_created ON experiments (created_at)",
    ),
    down=("DROP TABLE experiments",),
)

GRANTS_BY_PRINCIPAL = Migration(
    "grants by principal",
    up=("ALTER TABLE grants ADD COLUMN principal_id TEXT",),
    down=("ALTER TABLE grants DROP COLUMN principal_id",),
)

CURSORS = Migration(
    "cursors over ended runs, programs at work",
    up=(
        "ALTER TABLE runs ADD COLUMN end_number BIGINT",
        """
        UPDATE runs SET end_number = numbered.number FROM (
            SELECT id, ROW_NUMBER() OVER (ORDER BY ended_at, id) AS number FROM runs WHERE ended_at IS NOT NULL
        ) AS numbered WHERE numbered.id = runs.id
        """,
        "CREATE INDEX runs_end_number ON runs (end_number) WHERE end_number IS NOT NULL",
        "CREATE TABLE run_ends (id INTEGER PRIMARY KEY, number BIGINT NOT NULL)",
        "INSERT INTO run_ends (id, number) SELECT 1, COALESCE(MAX(end_number), 0) FROM runs",
        """
        CREATE TABLE cursors (
            name TEXT PRIMARY KEY, position BIGINT NOT NULL, epoch INTEGER NOT NULL, owner TEXT,
            lease_until DOUBLE PRECISION NOT NULL
        )
        """,
        "CREATE TABLE programs (owner TEXT PRIMARY KEY, format INTEGER NOT NULL, seen_at DOUBLE PRECISION NOT NULL)",
        "ALTER TABLE schema_version ADD COLUMN oldest INTEGER",
    ),
    down=(
        "ALTER TABLE schema_version DROP COLUMN oldest",
        "DROP TABLE programs",
        "DROP TABLE cursors",
        "DROP TABLE run_ends",
        "DROP INDEX runs_end_number",
        "ALTER TABLE runs DROP COLUMN end_number",
    ),
)

LISTS_BY_PRINCIPAL = Migration(
    "lists by principal",
    up=(
        "ALTER TABLE approvals ADD COLUMN principal_id TEXT",
        # A question is asked on behalf of the principal of its run, and deleted with it.
        "UPDATE approvals SET principal_id = (SELECT principal_id FROM runs WHERE runs.id = approvals.run_id)",
        "CREATE INDEX approvals_of_principal ON approvals (principal_id, requested_at, id)",
        "CREATE INDEX approvals_waiting ON approvals (principal_id, requested_at, id) WHERE status = 'pending'",
        "CREATE INDEX runs_of_principal ON runs (principal_id, created_at, id)",
        "CREATE INDEX runs_open ON runs (created_at, id) WHERE ended_at IS NULL",
        "CREATE INDEX runs_open_of_principal ON runs (principal_id, created_at, id) WHERE ended_at IS NULL",
        "CREATE INDEX runs_open_in_session ON runs (session_id, turn) WHERE ended_at IS NULL",
        "CREATE INDEX sessions_of_principal ON sessions (principal_id, updated_at, id)",
    ),
    down=(
        "DROP INDEX sessions_of_principal",
        "DROP INDEX runs_open_in_session",
        "DROP INDEX runs_open_of_principal",
        "DROP INDEX runs_open",
        "DROP INDEX runs_of_principal",
        "DROP INDEX approvals_waiting",
        "DROP INDEX approvals_of_principal",
        "ALTER TABLE approvals DROP COLUMN principal_id",
    ),
)

MIGRATIONS = (
    RUNS,
    CONVERSATIONS,
    APPROVALS,
    CALLS,
    AUDIT,
    LIMITS,
    TASKS,
    GAPS,
    EXPERIMENTS,
    GRANTS_BY_PRINCIPAL,
    CURSORS,
    LISTS_BY_PRINCIPAL,
)
"""Version N of the schema is the first N of these. New ones go to the end; none is ever changed."""


def version(connection: Connection) -> int:
    """How many migrations the database has had. Makes the place where that is kept, if need be."""
    # Before anything else: two processes may be starting at once.
    connection.lock_schema()
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (id INTEGER PRIMARY KEY, version INTEGER NOT NULL)")
    rows = connection.query("SELECT version FROM schema_version WHERE id = 1")
    return int(rows[0][0]) if rows else 0


def upgrade(connection: Connection) -> int:
    """Bring the schema up to date, in the transaction under way; returns the version."""
    have = version(connection)
    if have > len(MIGRATIONS):
        [(oldest,)] = connection.query("SELECT oldest FROM schema_version WHERE id = 1")
        if oldest is None or oldest > len(MIGRATIONS):
            raise ConfigurationError(
                f"the database has schema version {have}, this program knows up to {len(MIGRATIONS)}: "
                "update the program, or downgrade the database with the program that made it"
            )
        return have  # all that was added since can be left alone
    for migration in MIGRATIONS[have:]:
        for statement in migration.up:
            connection.execute(statement)
    return _note(connection, len(MIGRATIONS))


def downgrade(connection: Connection, *, to: int) -> int:
    """Undo migrations, and lose what they hold, down to a version; returns it."""
    have = version(connection)
    if not 0 <= to <= have:
        raise ConfigurationError(f"cannot downgrade from schema version {have} to {to}: give a number from 0 to {have}")
    for migration in reversed(MIGRATIONS[to:have]):
        for statement in migration.down:
            connection.execute(statement)
    return _note(connection, to)


def _note(connection: Connection, number: int) -> int:
    connection.execute(
        "INSERT INTO schema_version (id, version) VALUES (1, ?) "
        "ON CONFLICT (id) DO UPDATE SET version = excluded.version",
        number,
    )
    known = MIGRATIONS[:number]
    if CURSORS in known:
        # The oldest program that can work with this schema: it must know the last breaking step.
        oldest = max((at for at, migration in enumerate(known, start=1) if migration.breaking), default=0)
        connection.execute("UPDATE schema_version SET oldest = ? WHERE id = 1", oldest)
    return number
