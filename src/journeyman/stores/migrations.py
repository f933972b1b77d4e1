"""The schema, as numbered steps up and down. Both databases run the same statements, but for indexes of text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from journeyman.core.errors import ConfigurationError
from journeyman.stores.connection import Connection


class Only(NamedTuple):
    """A statement for one of the two databases: what is an index to one is a table with triggers to the other."""

    dialect: str
    statement: str


@dataclass(frozen=True, slots=True)
class Migration:
    """One step. ``down`` undoes ``up``, data included.

    Programs of an older version go on working on the database while it is upgraded. So a step only adds tables,
    indexes, and columns that may be left out. One that cannot keep to that is ``breaking``: programs that do not know
    it refuse the database.
    """

    name: str
    up: tuple[str | Only, ...]
    down: tuple[str | Only, ...]
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

BREAKER_PROBES = Migration(
    "breaker probes",
    up=(
        "ALTER TABLE breakers ADD COLUMN admitted INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE breakers ADD COLUMN passed INTEGER NOT NULL DEFAULT 0",
    ),
    down=("ALTER TABLE breakers DROP COLUMN passed", "ALTER TABLE breakers DROP COLUMN admitted"),
)

GRANT_LIMITS = Migration(
    "limits of grants",
    up=(
        "ALTER TABLE grants ADD COLUMN tool_digest TEXT",
        "ALTER TABLE grants ADD COLUMN risk TEXT",
        "ALTER TABLE grants ADD COLUMN expires_at DOUBLE PRECISION",
        "ALTER TABLE grants ADD COLUMN uses INTEGER",
        "ALTER TABLE grants ADD COLUMN uses_left INTEGER",
    ),
    down=(
        "ALTER TABLE grants DROP COLUMN uses_left",
        "ALTER TABLE grants DROP COLUMN uses",
        "ALTER TABLE grants DROP COLUMN expires_at",
        "ALTER TABLE grants DROP COLUMN risk",
        "ALTER TABLE grants DROP COLUMN tool_digest",
    ),
)

RECOVERY = Migration(
    "recovery: deaths of processes, trouble of runs",
    up=(
        "ALTER TABLE runs ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE runs ADD COLUMN claimed_seq INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE runs ADD COLUMN trouble TEXT",
        "ALTER TABLE runs ADD COLUMN trouble_since DOUBLE PRECISION",
        "ALTER TABLE runs ADD COLUMN retry_at DOUBLE PRECISION NOT NULL DEFAULT 0",
        "CREATE INDEX runs_suspect ON runs (deaths, created_at) WHERE ended_at IS NULL AND deaths > 0",
    ),
    down=(
        "DROP INDEX runs_suspect",
        "ALTER TABLE runs DROP COLUMN retry_at",
        "ALTER TABLE runs DROP COLUMN trouble_since",
        "ALTER TABLE runs DROP COLUMN trouble",
        "ALTER TABLE runs DROP COLUMN claimed_seq",
        "ALTER TABLE runs DROP COLUMN deaths",
    ),
)

ARTIFACTS = Migration(
    "artifacts: large results in chunks",
    up=(
        """
        CREATE TABLE artifacts (
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, id TEXT NOT NULL, number INTEGER NOT NULL,
            body TEXT NOT NULL, PRIMARY KEY (run_id, id, number)
        )
        """,
    ),
    down=("DROP TABLE artifacts",),
)

CONVERSATION_TITLES = Migration(
    "conversation titles",
    up=(
        "ALTER TABLE sessions ADD COLUMN title TEXT",
        # What is looked for: in one case, so that both databases compare alike.
        "ALTER TABLE sessions ADD COLUMN words TEXT",
        "ALTER TABLE messages ADD COLUMN words TEXT",
    ),
    down=(
        "ALTER TABLE messages DROP COLUMN words",
        "ALTER TABLE sessions DROP COLUMN words",
        "ALTER TABLE sessions DROP COLUMN title",
    ),
)

KEYED_AUDIT = Migration(
    "keyed audit, gaps by principal",
    up=(
        "ALTER TABLE audit ADD COLUMN entry_id TEXT",
        "ALTER TABLE audit ADD COLUMN key_id TEXT",
        "ALTER TABLE audit ADD COLUMN mac TEXT",
        "CREATE UNIQUE INDEX audit_entries ON audit (entry_id) WHERE entry_id IS NOT NULL",
        "ALTER TABLE audit_head ADD COLUMN mac TEXT",
        "ALTER TABLE runs ADD COLUMN cancelled_by TEXT",
        "ALTER TABLE gaps ADD COLUMN principal_id TEXT",
        "UPDATE gaps SET principal_id = (SELECT principal_id FROM runs WHERE runs.id = gaps.run_id)",
        "CREATE INDEX gaps_of_principal ON gaps (principal_id, created_at, id)",
    ),
    down=(
        "DROP INDEX gaps_of_principal",
        "ALTER TABLE gaps DROP COLUMN principal_id",
        "ALTER TABLE runs DROP COLUMN cancelled_by",
        "ALTER TABLE audit_head DROP COLUMN mac",
        "DROP INDEX audit_entries",
        "ALTER TABLE audit DROP COLUMN mac",
        "ALTER TABLE audit DROP COLUMN key_id",
        "ALTER TABLE audit DROP COLUMN entry_id",
    ),
)

PROCESSES = Migration(
    "what processes tell each other: signals and who reads them, who carries out runs, requests sent again",
    up=(
        """
        CREATE TABLE signals (
            run_id TEXT NOT NULL, after_seq INTEGER NOT NULL, number INTEGER NOT NULL,
            written_at DOUBLE PRECISION NOT NULL, content TEXT NOT NULL, PRIMARY KEY (run_id, after_seq, number)
        )
        """,
        "CREATE TABLE signal_readers (run_id TEXT PRIMARY KEY, reads_until DOUBLE PRECISION NOT NULL)",
        "ALTER TABLE programs ADD COLUMN executes INTEGER NOT NULL DEFAULT 1",
        """
        CREATE TABLE requests (
            digest TEXT PRIMARY KEY, run_id TEXT NOT NULL, asked_at DOUBLE PRECISION NOT NULL,
            unanswered INTEGER NOT NULL
        )
        """,
        "CREATE INDEX requests_by_age ON requests (asked_at)",
    ),
    down=(
        "DROP TABLE requests",
        "ALTER TABLE programs DROP COLUMN executes",
        "DROP TABLE signal_readers",
        "DROP TABLE signals",
    ),
)

CALL_REPORTS = Migration(
    "reports of calls whose run was taken over",
    up=(
        # Whom the present holder took the run from; null where it had been given back.
        "ALTER TABLE runs ADD COLUMN taken_from TEXT",
        """
        CREATE TABLE former_owners (
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, owner TEXT NOT NULL,
            since DOUBLE PRECISION NOT NULL, PRIMARY KEY (run_id, owner)
        )
        """,
        "CREATE INDEX former_owners_by_name ON former_owners (owner)",
        """
        CREATE TABLE call_reports (
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, seq INTEGER NOT NULL,
            execution_id TEXT NOT NULL, body TEXT, PRIMARY KEY (run_id, seq)
        )
        """,
    ),
    down=("DROP TABLE call_reports", "DROP TABLE former_owners", "ALTER TABLE runs DROP COLUMN taken_from"),
)

FALSE_DEATHS = Migration(
    "deaths of processes that were alive all the same",
    up=(
        # Until when the lease ran of whom the present holder took the run from.
        "ALTER TABLE runs ADD COLUMN taken_lease DOUBLE PRECISION",
        # Whether the takeover is among the run's deaths.
        "ALTER TABLE former_owners ADD COLUMN counted INTEGER NOT NULL DEFAULT 0",
    ),
    down=("ALTER TABLE former_owners DROP COLUMN counted", "ALTER TABLE runs DROP COLUMN taken_lease"),
)

PAUSES = Migration(
    "pauses that tools have asked for",
    up=("CREATE TABLE pauses (tool_name TEXT PRIMARY KEY, until DOUBLE PRECISION NOT NULL)",),
    down=("DROP TABLE pauses",),
)

MEMORY = Migration(
    "memory",
    up=(
        """
        CREATE TABLE memories (
            owner TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, metadata TEXT NOT NULL,
            created_at DOUBLE PRECISION NOT NULL, PRIMARY KEY (owner, id)
        )
        """,
        "CREATE INDEX memories_by_time ON memories (owner, created_at)",
        """
        CREATE TABLE memory_metadata (
            owner TEXT NOT NULL, document_id TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
            PRIMARY KEY (owner, document_id, name),
            FOREIGN KEY (owner, document_id) REFERENCES memories (owner, id) ON DELETE CASCADE
        )
        """,
        # The last number that a passage was given. None is given twice: processes remember passages by it.
        "CREATE TABLE memory_head (id INTEGER PRIMARY KEY, number BIGINT NOT NULL)",
        "INSERT INTO memory_head (id, number) VALUES (1, 0)",
        Only(
            "sqlite",
            """
            CREATE TABLE memory_passages (
                number INTEGER PRIMARY KEY, owner TEXT NOT NULL, document_id TEXT NOT NULL, start INTEGER NOT NULL,
                stop INTEGER NOT NULL, terms TEXT NOT NULL, embedder TEXT, vector BLOB,
                FOREIGN KEY (owner, document_id) REFERENCES memories (owner, id) ON DELETE CASCADE
            )
            """,
        ),
        Only(
            "postgresql",
            """
            CREATE TABLE memory_passages (
                number BIGINT PRIMARY KEY, owner TEXT NOT NULL, document_id TEXT NOT NULL, start INTEGER NOT NULL,
                stop INTEGER NOT NULL, terms TEXT NOT NULL, embedder TEXT, vector BYTEA,
                FOREIGN KEY (owner, document_id) REFERENCES memories (owner, id) ON DELETE CASCADE
            )
            """,
        ),
        "CREATE INDEX memory_passages_of_document ON memory_passages (owner, document_id)",
        "CREATE INDEX memory_passages_of_embedder ON memory_passages (owner, embedder, number)",
        Only(
            "postgresql",
            "CREATE INDEX memory_passages_terms ON memory_passages "
            "USING gin (array_to_tsvector(string_to_array(terms, ' ')))",
        ),
        Only(
            "sqlite",
            "CREATE VIRTUAL TABLE memory_text USING fts5(terms, owner, content='memory_passages', "
            "content_rowid='number', tokenize='unicode61 remove_diacritics 0')",
        ),
        Only(
            "sqlite",
            "CREATE TRIGGER memory_text_added AFTER INSERT ON memory_passages BEGIN "
            "INSERT INTO memory_text (rowid, terms, owner) VALUES (new.number, new.terms, new.owner); END",
        ),
        Only(
            "sqlite",
            "CREATE TRIGGER memory_text_removed AFTER DELETE ON memory_passages BEGIN "
            "INSERT INTO memory_text (memory_text, rowid, terms, owner) "
            "VALUES ('delete', old.number, old.terms, old.owner); END",
        ),
    ),
    down=(
        Only("postgresql", "DROP TABLE IF EXISTS memory_vectors"),
        Only("sqlite", "DROP TRIGGER memory_text_added"),
        Only("sqlite", "DROP TRIGGER memory_text_removed"),
        Only("sqlite", "DROP TABLE memory_text"),
        "DROP TABLE memory_passages",
        "DROP TABLE memory_head",
        "DROP TABLE memory_metadata",
        "DROP TABLE memories",
    ),
)

LABELS = Migration(
    "labels of runs: ratings, verdicts and people's decisions on calls",
    up=(
        """
        CREATE TABLE labels (
            run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, source TEXT NOT NULL, about TEXT NOT NULL,
            value TEXT NOT NULL, given_by TEXT, note TEXT NOT NULL, call_id TEXT, decision TEXT,
            given_at DOUBLE PRECISION NOT NULL, PRIMARY KEY (run_id, source, about)
        )
        """,
    ),
    down=("DROP TABLE labels",),
)

MEMORY_WORDS = Migration(
    "words of memory by owner: a search reads none of the others' rows",
    up=(
        Only(
            "postgresql",
            "CREATE INDEX memory_passages_words ON memory_passages USING gin "
            "(array_to_tsvector(array_append(string_to_array(terms, ' '), '@' || md5(owner))))",
        ),
        Only("postgresql", "DROP INDEX memory_passages_terms"),
    ),
    down=(
        Only(
            "postgresql",
            "CREATE INDEX memory_passages_terms ON memory_passages "
            "USING gin (array_to_tsvector(string_to_array(terms, ' ')))",
        ),
        Only("postgresql", "DROP INDEX memory_passages_words"),
    ),
)

GAP_DEMAND = Migration(
    "demand for gaps",
    up=(
        "ALTER TABLE gaps ADD COLUMN gap_key TEXT",
        "ALTER TABLE gaps ADD COLUMN missing TEXT",
        "CREATE INDEX gaps_by_key ON gaps (gap_key, created_at)",
        """
        CREATE TABLE gap_dismissals (
            dismissed_key TEXT PRIMARY KEY, dismissed_by TEXT, dismissed_at DOUBLE PRECISION NOT NULL
        )
        """,
    ),
    down=(
        "DROP TABLE gap_dismissals",
        "DROP INDEX gaps_by_key",
        "ALTER TABLE gaps DROP COLUMN missing",
        "ALTER TABLE gaps DROP COLUMN gap_key",
    ),
)

PLAYBOOKS = Migration(
    "playbooks, as every state of every bullet",
    up=(
        "CREATE TABLE playbooks (domain TEXT PRIMARY KEY, version INTEGER NOT NULL)",
        """
        CREATE TABLE playbook_changes (
            domain TEXT NOT NULL, version INTEGER NOT NULL, made_at DOUBLE PRECISION NOT NULL, reason TEXT NOT NULL,
            changed INTEGER NOT NULL, removed INTEGER NOT NULL, PRIMARY KEY (domain, version)
        )
        """,
        """
        CREATE TABLE playbook_bullets (
            domain TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, body TEXT,
            PRIMARY KEY (domain, id, version)
        )
        """,
        "CREATE INDEX playbook_bullets_by_version ON playbook_bullets (domain, version)",
    ),
    down=("DROP TABLE playbook_bullets", "DROP TABLE playbook_changes", "DROP TABLE playbooks"),
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
    BREAKER_PROBES,
    GRANT_LIMITS,
    RECOVERY,
    ARTIFACTS,
    CONVERSATION_TITLES,
    KEYED_AUDIT,
    PROCESSES,
    CALL_REPORTS,
    FALSE_DEATHS,
    PAUSES,
    MEMORY,
    LABELS,
    MEMORY_WORDS,
    GAP_DEMAND,
    PLAYBOOKS,
)
"""Version N of the schema is the first N of these. New ones go to the end; none is ever changed."""


def version(connection: Connection) -> int:
    """How many migrations the database has had. Makes the place where that is kept, if need be."""
    # Before anything else: two processes may be starting at once.
    connection.lock_schema()
    connection.execute("CREATE TABLE IF NOT EXISTS schema_version (id INTEGER PRIMARY KEY, version INTEGER NOT NULL)")
    rows = connection.query("SELECT version FROM schema_version WHERE id = 1")
    return int(rows[0][0]) if rows else 0


def upgrade(connection: Connection, *, to: int | None = None) -> int:
    """Bring the schema up to date, in the transaction under way; returns the version.

    ``to`` an earlier version only for a copy of a store that has it.
    """
    have, to = version(connection), len(MIGRATIONS) if to is None else to
    if have > len(MIGRATIONS):
        [(oldest,)] = connection.query("SELECT oldest FROM schema_version WHERE id = 1")
        if oldest is None or oldest > len(MIGRATIONS):
            raise ConfigurationError(
                f"the database has schema version {have}, this program knows up to {len(MIGRATIONS)}: "
                "update the program, or downgrade the database with the program that made it"
            )
        return have  # all that was added since can be left alone
    for migration in MIGRATIONS[have:to]:
        _execute(connection, migration.up)
    return _note(connection, max(have, to))


def downgrade(connection: Connection, *, to: int) -> int:
    """Undo migrations, and lose what they hold, down to a version; returns it."""
    have = version(connection)
    if not 0 <= to <= have:
        raise ConfigurationError(f"cannot downgrade from schema version {have} to {to}: give a number from 0 to {have}")
    for migration in reversed(MIGRATIONS[to:have]):
        _execute(connection, migration.down)
    return _note(connection, to)


def _execute(connection: Connection, statements: Iterable[str | Only]) -> None:
    for statement in statements:
        if isinstance(statement, str):
            connection.execute(statement)
        elif statement.dialect == connection.dialect:
            connection.execute(statement.statement)


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
