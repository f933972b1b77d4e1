-- The schema, as numbered steps up and down. Both databases run the same statements, but for indexes of text.
-- Version N of the schema is the first N of these steps. New ones go to the end; none is ever changed.
--
-- Blank lines part statements. "--- step", "--- up" and "--- down" part what is done; "--- only" is a statement for one of
-- the two databases: what is an index to one is a table with triggers to the other.

--- step runs

--- up

CREATE TABLE runs (
    id TEXT PRIMARY KEY, task_id TEXT NOT NULL, agent_name TEXT NOT NULL, session_id TEXT,
    turn INTEGER, principal_id TEXT, status TEXT NOT NULL, priority INTEGER NOT NULL,
    epoch INTEGER NOT NULL, owner TEXT, lease_until DOUBLE PRECISION NOT NULL,
    cancel_wanted INTEGER NOT NULL DEFAULT 0, last_seq INTEGER NOT NULL,
    history_length INTEGER NOT NULL, created_at DOUBLE PRECISION NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION, asked TEXT NOT NULL
);

CREATE INDEX runs_unfinished ON runs (priority DESC, created_at) WHERE ended_at IS NULL;

CREATE INDEX runs_held ON runs (owner) WHERE owner IS NOT NULL;

CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL;

CREATE INDEX runs_created ON runs (created_at);

CREATE INDEX runs_of_session ON runs (session_id, turn);

CREATE TABLE facts (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, seq INTEGER NOT NULL,
    type TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (run_id, seq)
);

--- down

DROP TABLE facts;

DROP TABLE runs;

--- step conversations

--- up

CREATE TABLE sessions (
    id TEXT PRIMARY KEY, principal_id TEXT, created_at DOUBLE PRECISION NOT NULL,
    updated_at DOUBLE PRECISION NOT NULL
);

CREATE INDEX sessions_used ON sessions (updated_at);

CREATE TABLE messages (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE, number INTEGER NOT NULL,
    run_id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (session_id, number)
);

--- down

DROP TABLE messages;

DROP TABLE sessions;

--- step approvals

--- up

CREATE TABLE approvals (
    id TEXT PRIMARY KEY, run_id TEXT NOT NULL, status TEXT NOT NULL,
    requested_at DOUBLE PRECISION NOT NULL, expires_at DOUBLE PRECISION NOT NULL,
    decided_at DOUBLE PRECISION, decided_by TEXT, reason TEXT, edited TEXT, consumed INTEGER NOT NULL,
    question TEXT NOT NULL
);

CREATE INDEX approvals_of_run ON approvals (run_id);

CREATE INDEX approvals_pending ON approvals (expires_at) WHERE status = 'pending';

CREATE TABLE grants (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL, tool_name TEXT NOT NULL, granted_by TEXT NOT NULL,
    granted_at DOUBLE PRECISION NOT NULL, revoked_at DOUBLE PRECISION, revoked_by TEXT
);

CREATE INDEX grants_of_session ON grants (session_id, tool_name);

--- down

DROP TABLE grants;

DROP TABLE approvals;

--- step calls

--- up

CREATE TABLE calls (
    execution_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, call_id TEXT NOT NULL,
    tool_name TEXT NOT NULL, status TEXT NOT NULL, risk TEXT, attempts INTEGER NOT NULL,
    cached INTEGER NOT NULL, error_code TEXT, started_at DOUBLE PRECISION NOT NULL,
    duration_ms DOUBLE PRECISION NOT NULL
);

CREATE INDEX calls_started ON calls (started_at);

CREATE INDEX calls_of_run ON calls (run_id);

--- down

DROP TABLE calls;

--- step audit

--- up

CREATE TABLE audit (
    seq BIGINT PRIMARY KEY, time DOUBLE PRECISION NOT NULL, kind TEXT NOT NULL, actor TEXT,
    run_id TEXT, subject TEXT NOT NULL, details TEXT NOT NULL, previous TEXT NOT NULL,
    hash TEXT NOT NULL
);

CREATE TABLE audit_head (id INTEGER PRIMARY KEY, seq BIGINT NOT NULL, hash TEXT NOT NULL);

INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, '');

--- down

DROP TABLE audit_head;

DROP TABLE audit;

--- step limits

--- up

CREATE TABLE buckets (
    bucket TEXT PRIMARY KEY, tokens DOUBLE PRECISION NOT NULL, since DOUBLE PRECISION NOT NULL
);

CREATE TABLE breakers (tool_name TEXT PRIMARY KEY, failures INTEGER NOT NULL, open_until DOUBLE PRECISION);

--- down

DROP TABLE breakers;

DROP TABLE buckets;

--- step tasks

--- up

CREATE TABLE tasks (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, urgency INTEGER NOT NULL, eta DOUBLE PRECISION,
    created_at DOUBLE PRECISION NOT NULL, updated_at DOUBLE PRECISION NOT NULL,
    version INTEGER NOT NULL, title TEXT NOT NULL, words TEXT NOT NULL, body TEXT NOT NULL
);

CREATE INDEX tasks_created ON tasks (created_at);

CREATE INDEX tasks_due ON tasks (eta);

CREATE TABLE task_tags (
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE, tag TEXT NOT NULL,
    PRIMARY KEY (task_id, tag)
);

CREATE INDEX task_tags_tag ON task_tags (tag);

CREATE TABLE task_versions (
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE, number INTEGER NOT NULL,
    replaced_at DOUBLE PRECISION NOT NULL, body TEXT NOT NULL, PRIMARY KEY (task_id, number)
);

CREATE TABLE attachments (
    id TEXT PRIMARY KEY, task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    number INTEGER NOT NULL, reference TEXT NOT NULL, body TEXT NOT NULL, UNIQUE (task_id, reference)
);

--- down

DROP TABLE attachments;

DROP TABLE task_versions;

DROP TABLE task_tags;

DROP TABLE tasks;

--- step gaps

--- up

CREATE TABLE gaps (
    id TEXT PRIMARY KEY, created_at DOUBLE PRECISION NOT NULL, run_id TEXT, report TEXT NOT NULL
);

CREATE INDEX gaps_created ON gaps (created_at);

--- down

DROP TABLE gaps;

--- step experiments

--- up

CREATE TABLE experiments (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, created_at DOUBLE PRECISION NOT NULL, winner TEXT,
    report TEXT NOT NULL
);

CREATE INDEX experiments_created ON experiments (created_at);

--- down

DROP TABLE experiments;

--- step grants by principal

--- up

ALTER TABLE grants ADD COLUMN principal_id TEXT;

--- down

ALTER TABLE grants DROP COLUMN principal_id;

--- step cursors over ended runs, programs at work

--- up

ALTER TABLE runs ADD COLUMN end_number BIGINT;

UPDATE runs SET end_number = numbered.number FROM (
    SELECT id, ROW_NUMBER() OVER (ORDER BY ended_at, id) AS number FROM runs WHERE ended_at IS NOT NULL
) AS numbered WHERE numbered.id = runs.id;

CREATE INDEX runs_end_number ON runs (end_number) WHERE end_number IS NOT NULL;

CREATE TABLE run_ends (id INTEGER PRIMARY KEY, number BIGINT NOT NULL);

INSERT INTO run_ends (id, number) SELECT 1, COALESCE(MAX(end_number), 0) FROM runs;

CREATE TABLE cursors (
    name TEXT PRIMARY KEY, position BIGINT NOT NULL, epoch INTEGER NOT NULL, owner TEXT,
    lease_until DOUBLE PRECISION NOT NULL
);

CREATE TABLE programs (owner TEXT PRIMARY KEY, format INTEGER NOT NULL, seen_at DOUBLE PRECISION NOT NULL);

ALTER TABLE schema_version ADD COLUMN oldest INTEGER;

--- down

ALTER TABLE schema_version DROP COLUMN oldest;

DROP TABLE programs;

DROP TABLE cursors;

DROP TABLE run_ends;

DROP INDEX runs_end_number;

ALTER TABLE runs DROP COLUMN end_number;

--- step lists by principal

--- up

ALTER TABLE approvals ADD COLUMN principal_id TEXT;

-- A question is asked on behalf of the principal of its run, and deleted with it.
UPDATE approvals SET principal_id = (SELECT principal_id FROM runs WHERE runs.id = approvals.run_id);

CREATE INDEX approvals_of_principal ON approvals (principal_id, requested_at, id);

CREATE INDEX approvals_waiting ON approvals (principal_id, requested_at, id) WHERE status = 'pending';

CREATE INDEX runs_of_principal ON runs (principal_id, created_at, id);

CREATE INDEX runs_open ON runs (created_at, id) WHERE ended_at IS NULL;

CREATE INDEX runs_open_of_principal ON runs (principal_id, created_at, id) WHERE ended_at IS NULL;

CREATE INDEX runs_open_in_session ON runs (session_id, turn) WHERE ended_at IS NULL;

CREATE INDEX sessions_of_principal ON sessions (principal_id, updated_at, id);

--- down

DROP INDEX sessions_of_principal;

DROP INDEX runs_open_in_session;

DROP INDEX runs_open_of_principal;

DROP INDEX runs_open;

DROP INDEX runs_of_principal;

DROP INDEX approvals_waiting;

DROP INDEX approvals_of_principal;

ALTER TABLE approvals DROP COLUMN principal_id;

--- step breaker probes

--- up

ALTER TABLE breakers ADD COLUMN admitted INTEGER NOT NULL DEFAULT 0;

ALTER TABLE breakers ADD COLUMN passed INTEGER NOT NULL DEFAULT 0;

--- down

ALTER TABLE breakers DROP COLUMN passed;

ALTER TABLE breakers DROP COLUMN admitted;

--- step limits of grants

--- up

ALTER TABLE grants ADD COLUMN tool_digest TEXT;

ALTER TABLE grants ADD COLUMN risk TEXT;

ALTER TABLE grants ADD COLUMN expires_at DOUBLE PRECISION;

ALTER TABLE grants ADD COLUMN uses INTEGER;

ALTER TABLE grants ADD COLUMN uses_left INTEGER;

--- down

ALTER TABLE grants DROP COLUMN uses_left;

ALTER TABLE grants DROP COLUMN uses;

ALTER TABLE grants DROP COLUMN expires_at;

ALTER TABLE grants DROP COLUMN risk;

ALTER TABLE grants DROP COLUMN tool_digest;

--- step recovery: deaths of processes, trouble of runs

--- up

ALTER TABLE runs ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0;

ALTER TABLE runs ADD COLUMN claimed_seq INTEGER NOT NULL DEFAULT 0;

ALTER TABLE runs ADD COLUMN trouble TEXT;

ALTER TABLE runs ADD COLUMN trouble_since DOUBLE PRECISION;

ALTER TABLE runs ADD COLUMN retry_at DOUBLE PRECISION NOT NULL DEFAULT 0;

CREATE INDEX runs_suspect ON runs (deaths, created_at) WHERE ended_at IS NULL AND deaths > 0;

--- down

DROP INDEX runs_suspect;

ALTER TABLE runs DROP COLUMN retry_at;

ALTER TABLE runs DROP COLUMN trouble_since;

ALTER TABLE runs DROP COLUMN trouble;

ALTER TABLE runs DROP COLUMN claimed_seq;

ALTER TABLE runs DROP COLUMN deaths;

--- step artifacts: large results in chunks

--- up

CREATE TABLE artifacts (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, id TEXT NOT NULL, number INTEGER NOT NULL,
    body TEXT NOT NULL, PRIMARY KEY (run_id, id, number)
);

--- down

DROP TABLE artifacts;

--- step conversation titles

--- up

ALTER TABLE sessions ADD COLUMN title TEXT;

-- What is looked for: in one case, so that both databases compare alike.
ALTER TABLE sessions ADD COLUMN words TEXT;

ALTER TABLE messages ADD COLUMN words TEXT;

--- down

ALTER TABLE messages DROP COLUMN words;

ALTER TABLE sessions DROP COLUMN words;

ALTER TABLE sessions DROP COLUMN title;

--- step keyed audit, gaps by principal

--- up

ALTER TABLE audit ADD COLUMN entry_id TEXT;

ALTER TABLE audit ADD COLUMN key_id TEXT;

ALTER TABLE audit ADD COLUMN mac TEXT;

CREATE UNIQUE INDEX audit_entries ON audit (entry_id) WHERE entry_id IS NOT NULL;

ALTER TABLE audit_head ADD COLUMN mac TEXT;

ALTER TABLE runs ADD COLUMN cancelled_by TEXT;

ALTER TABLE gaps ADD COLUMN principal_id TEXT;

UPDATE gaps SET principal_id = (SELECT principal_id FROM runs WHERE runs.id = gaps.run_id);

CREATE INDEX gaps_of_principal ON gaps (principal_id, created_at, id);

--- down

DROP INDEX gaps_of_principal;

ALTER TABLE gaps DROP COLUMN principal_id;

ALTER TABLE runs DROP COLUMN cancelled_by;

ALTER TABLE audit_head DROP COLUMN mac;

DROP INDEX audit_entries;

ALTER TABLE audit DROP COLUMN mac;

ALTER TABLE audit DROP COLUMN key_id;

ALTER TABLE audit DROP COLUMN entry_id;

--- step what processes tell each other: signals and who reads them, who carries out runs, requests sent again

--- up

CREATE TABLE signals (
    run_id TEXT NOT NULL, after_seq INTEGER NOT NULL, number INTEGER NOT NULL,
    written_at DOUBLE PRECISION NOT NULL, content TEXT NOT NULL, PRIMARY KEY (run_id, after_seq, number)
);

CREATE TABLE signal_readers (run_id TEXT PRIMARY KEY, reads_until DOUBLE PRECISION NOT NULL);

ALTER TABLE programs ADD COLUMN executes INTEGER NOT NULL DEFAULT 1;

CREATE TABLE requests (
    digest TEXT PRIMARY KEY, run_id TEXT NOT NULL, asked_at DOUBLE PRECISION NOT NULL,
    unanswered INTEGER NOT NULL
);

CREATE INDEX requests_by_age ON requests (asked_at);

--- down

DROP TABLE requests;

ALTER TABLE programs DROP COLUMN executes;

DROP TABLE signal_readers;

DROP TABLE signals;

--- step reports of calls whose run was taken over

--- up

-- Whom the present holder took the run from; null where it had been given back.
ALTER TABLE runs ADD COLUMN taken_from TEXT;

CREATE TABLE former_owners (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, owner TEXT NOT NULL,
    since DOUBLE PRECISION NOT NULL, PRIMARY KEY (run_id, owner)
);

CREATE INDEX former_owners_by_name ON former_owners (owner);

CREATE TABLE call_reports (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, seq INTEGER NOT NULL,
    execution_id TEXT NOT NULL, body TEXT, PRIMARY KEY (run_id, seq)
);

--- down

DROP TABLE call_reports;

DROP TABLE former_owners;

ALTER TABLE runs DROP COLUMN taken_from;

--- step deaths of processes that were alive all the same

--- up

-- Until when the lease ran of whom the present holder took the run from.
ALTER TABLE runs ADD COLUMN taken_lease DOUBLE PRECISION;

-- Whether the takeover is among the run's deaths.
ALTER TABLE former_owners ADD COLUMN counted INTEGER NOT NULL DEFAULT 0;

--- down

ALTER TABLE former_owners DROP COLUMN counted;

ALTER TABLE runs DROP COLUMN taken_lease;

--- step pauses that tools have asked for

--- up

CREATE TABLE pauses (tool_name TEXT PRIMARY KEY, until DOUBLE PRECISION NOT NULL);

--- down

DROP TABLE pauses;

--- step memory

--- up

CREATE TABLE memories (
    owner TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, metadata TEXT NOT NULL,
    created_at DOUBLE PRECISION NOT NULL, PRIMARY KEY (owner, id)
);

CREATE INDEX memories_by_time ON memories (owner, created_at);

CREATE TABLE memory_metadata (
    owner TEXT NOT NULL, document_id TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,
    PRIMARY KEY (owner, document_id, name),
    FOREIGN KEY (owner, document_id) REFERENCES memories (owner, id) ON DELETE CASCADE
);

-- The last number that a passage was given. None is given twice: processes remember passages by it.
CREATE TABLE memory_head (id INTEGER PRIMARY KEY, number BIGINT NOT NULL);

INSERT INTO memory_head (id, number) VALUES (1, 0);

--- only sqlite
CREATE TABLE memory_passages (
    number INTEGER PRIMARY KEY, owner TEXT NOT NULL, document_id TEXT NOT NULL, start INTEGER NOT NULL,
    stop INTEGER NOT NULL, terms TEXT NOT NULL, embedder TEXT, vector BLOB,
    FOREIGN KEY (owner, document_id) REFERENCES memories (owner, id) ON DELETE CASCADE
);

--- only postgresql
CREATE TABLE memory_passages (
    number BIGINT PRIMARY KEY, owner TEXT NOT NULL, document_id TEXT NOT NULL, start INTEGER NOT NULL,
    stop INTEGER NOT NULL, terms TEXT NOT NULL, embedder TEXT, vector BYTEA,
    FOREIGN KEY (owner, document_id) REFERENCES memories (owner, id) ON DELETE CASCADE
);

CREATE INDEX memory_passages_of_document ON memory_passages (owner, document_id);

CREATE INDEX memory_passages_of_embedder ON memory_passages (owner, embedder, number);

--- only postgresql
CREATE INDEX memory_passages_terms ON memory_passages USING gin (array_to_tsvector(string_to_array(terms, ' ')));

--- only sqlite
CREATE VIRTUAL TABLE memory_text USING fts5(terms, owner, content='memory_passages', content_rowid='number', tokenize='unicode61 remove_diacritics 0');

--- only sqlite
CREATE TRIGGER memory_text_added AFTER INSERT ON memory_passages BEGIN INSERT INTO memory_text (rowid, terms, owner) VALUES (new.number, new.terms, new.owner); END;

--- only sqlite
CREATE TRIGGER memory_text_removed AFTER DELETE ON memory_passages BEGIN INSERT INTO memory_text (memory_text, rowid, terms, owner) VALUES ('delete', old.number, old.terms, old.owner); END;

--- down

--- only postgresql
DROP TABLE IF EXISTS memory_vectors;

--- only sqlite
DROP TRIGGER memory_text_added;

--- only sqlite
DROP TRIGGER memory_text_removed;

--- only sqlite
DROP TABLE memory_text;

DROP TABLE memory_passages;

DROP TABLE memory_head;

DROP TABLE memory_metadata;

DROP TABLE memories;

--- step labels of runs: ratings, verdicts and people's decisions on calls

--- up

CREATE TABLE labels (
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, source TEXT NOT NULL, about TEXT NOT NULL,
    value TEXT NOT NULL, given_by TEXT, note TEXT NOT NULL, call_id TEXT, decision TEXT,
    given_at DOUBLE PRECISION NOT NULL, PRIMARY KEY (run_id, source, about)
);

--- down

DROP TABLE labels;

--- step words of memory by owner: a search reads none of the others' rows

--- up

--- only postgresql
CREATE INDEX memory_passages_words ON memory_passages USING gin (array_to_tsvector(array_append(string_to_array(terms, ' '), '@' || md5(owner))));

--- only postgresql
DROP INDEX memory_passages_terms;

--- down

--- only postgresql
CREATE INDEX memory_passages_terms ON memory_passages USING gin (array_to_tsvector(string_to_array(terms, ' ')));

--- only postgresql
DROP INDEX memory_passages_words;

--- step demand for gaps

--- up

ALTER TABLE gaps ADD COLUMN gap_key TEXT;

ALTER TABLE gaps ADD COLUMN missing TEXT;

CREATE INDEX gaps_by_key ON gaps (gap_key, created_at);

CREATE TABLE gap_dismissals (
    dismissed_key TEXT PRIMARY KEY, dismissed_by TEXT, dismissed_at DOUBLE PRECISION NOT NULL
);

--- down

DROP TABLE gap_dismissals;

DROP INDEX gaps_by_key;

ALTER TABLE gaps DROP COLUMN missing;

ALTER TABLE gaps DROP COLUMN gap_key;

--- step playbooks, as every state of every bullet

--- up

CREATE TABLE playbooks (domain TEXT PRIMARY KEY, version INTEGER NOT NULL);

CREATE TABLE playbook_changes (
    domain TEXT NOT NULL, version INTEGER NOT NULL, made_at DOUBLE PRECISION NOT NULL, reason TEXT NOT NULL,
    changed INTEGER NOT NULL, removed INTEGER NOT NULL, PRIMARY KEY (domain, version)
);

CREATE TABLE playbook_bullets (
    domain TEXT NOT NULL, id TEXT NOT NULL, version INTEGER NOT NULL, body TEXT,
    PRIMARY KEY (domain, id, version)
);

CREATE INDEX playbook_bullets_by_version ON playbook_bullets (domain, version);

--- down

DROP TABLE playbook_bullets;

DROP TABLE playbook_changes;

DROP TABLE playbooks;

--- step one table of leases; requests that are sent again are called what they are
--- breaking
-- A program that looks for leases where they were would take runs from the living.

--- up

CREATE TABLE leases (
    kind TEXT NOT NULL, name TEXT NOT NULL, epoch INTEGER NOT NULL, owner TEXT, until DOUBLE PRECISION NOT NULL,
    taken_from TEXT, taken_until DOUBLE PRECISION, PRIMARY KEY (kind, name)
);

INSERT INTO leases (kind, name, epoch, owner, until, taken_from, taken_until)
SELECT 'run', id, epoch, owner, lease_until, taken_from, taken_lease FROM runs
WHERE ended_at IS NULL AND epoch > 0;

INSERT INTO leases (kind, name, epoch, owner, until)
SELECT 'cursor', name, epoch, owner, lease_until FROM cursors;

CREATE INDEX leases_held ON leases (owner, kind) WHERE owner IS NOT NULL;

DROP INDEX runs_held;

ALTER TABLE runs DROP COLUMN owner;

ALTER TABLE runs DROP COLUMN lease_until;

ALTER TABLE runs DROP COLUMN taken_from;

ALTER TABLE runs DROP COLUMN taken_lease;

ALTER TABLE cursors DROP COLUMN owner;

ALTER TABLE cursors DROP COLUMN lease_until;

ALTER TABLE cursors DROP COLUMN epoch;

ALTER TABLE requests RENAME TO idempotency;

--- down

ALTER TABLE idempotency RENAME TO requests;

ALTER TABLE cursors ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;

ALTER TABLE cursors ADD COLUMN lease_until DOUBLE PRECISION NOT NULL DEFAULT 0;

ALTER TABLE cursors ADD COLUMN owner TEXT;

UPDATE cursors SET epoch = leases.epoch, owner = leases.owner, lease_until = leases.until
FROM leases WHERE leases.kind = 'cursor' AND leases.name = cursors.name;

ALTER TABLE runs ADD COLUMN taken_lease DOUBLE PRECISION;

ALTER TABLE runs ADD COLUMN taken_from TEXT;

ALTER TABLE runs ADD COLUMN lease_until DOUBLE PRECISION NOT NULL DEFAULT 0;

ALTER TABLE runs ADD COLUMN owner TEXT;

UPDATE runs SET owner = leases.owner, lease_until = leases.until, taken_from = leases.taken_from,
taken_lease = leases.taken_until FROM leases WHERE leases.kind = 'run' AND leases.name = runs.id;

CREATE INDEX runs_held ON runs (owner) WHERE owner IS NOT NULL;

DROP TABLE leases;

--- step which calls a former owner can have begun

--- up

-- It held the run from the fact after the one up to the other. Null: not known, it may have begun any.
ALTER TABLE former_owners ADD COLUMN after_seq INTEGER;

ALTER TABLE former_owners ADD COLUMN until_seq INTEGER;

--- down

ALTER TABLE former_owners DROP COLUMN until_seq;

ALTER TABLE former_owners DROP COLUMN after_seq;

--- step the calls that a rate limit has let through

--- up

ALTER TABLE buckets ADD COLUMN taken TEXT;

--- down

ALTER TABLE buckets DROP COLUMN taken;

--- step store_identity
-- Tells one store from another, so that a person confirms this one, and not whatever stands in its place.

--- up

CREATE TABLE store_identity (id TEXT PRIMARY KEY);

--- only sqlite
INSERT INTO store_identity (id) VALUES (lower(hex(randomblob(16))));

--- only postgresql
INSERT INTO store_identity (id) VALUES (replace(gen_random_uuid()::text, '-', ''));

--- down

DROP TABLE store_identity;

--- step what a list of runs tells: the request, what became of it, what it took

--- up

ALTER TABLE runs ADD COLUMN request TEXT NOT NULL DEFAULT '';

-- Casefolded: what is looked for in it is, too.
ALTER TABLE runs ADD COLUMN words TEXT NOT NULL DEFAULT '';

ALTER TABLE runs ADD COLUMN outcome TEXT;

ALTER TABLE runs ADD COLUMN model TEXT;

ALTER TABLE runs ADD COLUMN input_tokens BIGINT;

ALTER TABLE runs ADD COLUMN output_tokens BIGINT;

--- only sqlite
UPDATE runs SET request = substr(json_extract(asked, '$.task.description'), 1, 300),
words = lower(substr(json_extract(asked, '$.task.description'), 1, 2000) || ' ' || id || ' ' || agent_name || ' ' || COALESCE(principal_id, ''))
WHERE json_valid(asked);

--- only postgresql
UPDATE runs SET request = left(COALESCE(asked::jsonb #>> '{task,description}', ''), 300),
words = lower(left(COALESCE(asked::jsonb #>> '{task,description}', ''), 2000) || ' ' || id || ' ' || agent_name || ' ' || COALESCE(principal_id, ''));

--- down

ALTER TABLE runs DROP COLUMN output_tokens;

ALTER TABLE runs DROP COLUMN input_tokens;

ALTER TABLE runs DROP COLUMN model;

ALTER TABLE runs DROP COLUMN outcome;

ALTER TABLE runs DROP COLUMN words;

ALTER TABLE runs DROP COLUMN request;

--- step forks: runs whose past is another one's

--- up

ALTER TABLE runs ADD COLUMN parent_id TEXT;

ALTER TABLE runs ADD COLUMN parent_seq INTEGER;

CREATE INDEX forks_of_run ON runs (parent_id);

--- down

DROP INDEX forks_of_run;

ALTER TABLE runs DROP COLUMN parent_seq;

ALTER TABLE runs DROP COLUMN parent_id;

--- step runs in the order in which they are begun, and by status
-- A program that leaves the place out has its runs begun first.

--- up

ALTER TABLE runs ADD COLUMN place INTEGER NOT NULL DEFAULT 0;

CREATE INDEX runs_line ON runs (status, priority DESC, place, created_at, id) WHERE ended_at IS NULL;

DROP INDEX runs_unfinished;

CREATE INDEX runs_by_status ON runs (status, created_at, id);

CREATE INDEX runs_to_cancel ON runs (id) WHERE cancel_wanted = 1 AND ended_at IS NULL;

CREATE INDEX approvals_decided ON approvals (run_id) WHERE consumed = 0 AND status <> 'pending';

--- down

DROP INDEX approvals_decided;

DROP INDEX runs_to_cancel;

DROP INDEX runs_by_status;

CREATE INDEX runs_unfinished ON runs (priority DESC, created_at) WHERE ended_at IS NULL;

DROP INDEX runs_line;

ALTER TABLE runs DROP COLUMN place;

--- step chains of the audit, for what many processes write at once

--- up

CREATE TABLE audit_shards (shard INTEGER PRIMARY KEY, number BIGINT NOT NULL, hash TEXT NOT NULL, mac TEXT);

CREATE TABLE audit_waiting (
    shard INTEGER NOT NULL, number BIGINT NOT NULL, time DOUBLE PRECISION NOT NULL, kind TEXT NOT NULL, actor TEXT,
    run_id TEXT, subject TEXT NOT NULL, details TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL,
    key_id TEXT, mac TEXT, PRIMARY KEY (shard, number)
);

-- How far each chain was added to the log. Written by whoever has the head of the log.
CREATE TABLE audit_folded (shard INTEGER PRIMARY KEY, number BIGINT NOT NULL, hash TEXT NOT NULL, mac TEXT);

--- down

DROP TABLE audit_folded;

DROP TABLE audit_waiting;

DROP TABLE audit_shards;
