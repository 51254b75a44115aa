-- Times are microseconds since 1970 in UTC. A column that may be NULL says what NULL means. No transaction statements here: the
-- migrator wraps each file in one.

-- The one lake that this control plane belongs to. No row: the lake was never created.
CREATE TABLE lake (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    lineage TEXT    NOT NULL CHECK (lineage <> ''),
    ready   INTEGER NOT NULL CHECK (ready IN (0, 1))
) STRICT;

-- fence is the newest fence issued for the workspace; NULL before its first attempt. A fence is issued once on the whole node.
CREATE TABLE workspaces (
    name       TEXT    PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 63 AND name GLOB '[a-z]*' AND name NOT GLOB '*[^a-z0-9_]*'),
    fence      INTEGER UNIQUE CHECK (fence >= 1),
    created_at INTEGER NOT NULL,
    created_by TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE releases (
    workspace   TEXT    NOT NULL REFERENCES workspaces (name),
    digest      TEXT    NOT NULL CHECK (length(digest) = 64 AND digest NOT GLOB '*[^0-9a-f]*'),
    size        INTEGER NOT NULL CHECK (size >= 0),
    accepted_at INTEGER NOT NULL,
    accepted_by TEXT    NOT NULL,
    PRIMARY KEY (workspace, digest)
) STRICT, WITHOUT ROWID;

-- The deployment with the highest number is the one that refreshes compile against.
CREATE TABLE deployments (
    workspace   TEXT    NOT NULL REFERENCES workspaces (name),
    number      INTEGER NOT NULL CHECK (number >= 1),
    release     TEXT    NOT NULL,
    source_root TEXT    NOT NULL,
    deployed_at INTEGER NOT NULL,
    deployed_by TEXT    NOT NULL,
    PRIMARY KEY (workspace, number),
    FOREIGN KEY (workspace, release) REFERENCES releases (workspace, digest)
) STRICT, WITHOUT ROWID;

-- seq is the order in which runs were requested; a clock may step back, seq does not.
-- idempotency_key NULL: requested without one. deployment NULL: no attempt began yet. owner NULL: nobody claims the run.
-- generation and snapshot NULL: the run activated nothing.
CREATE TABLE runs (
    seq             INTEGER PRIMARY KEY,
    id              TEXT    NOT NULL UNIQUE CHECK (id <> ''),
    workspace       TEXT    NOT NULL REFERENCES workspaces (name),
    idempotency_key TEXT    CHECK (idempotency_key <> ''),
    status          TEXT    NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'canceled')),
    attempts        INTEGER NOT NULL CHECK (attempts >= 0),
    deployment      INTEGER,
    requested_at    INTEGER NOT NULL,
    requested_by    TEXT    NOT NULL,
    owner           TEXT    CHECK (owner <> ''),
    claim_revision  INTEGER NOT NULL CHECK (claim_revision >= 0),
    started_at      INTEGER,
    ended_at        INTEGER,
    failure_kind    TEXT    NOT NULL,
    failure_code    TEXT    NOT NULL,
    failure_message TEXT    NOT NULL,
    generation      INTEGER CHECK (generation >= 1),
    snapshot        INTEGER CHECK (snapshot >= 1),
    FOREIGN KEY (workspace, deployment) REFERENCES deployments (workspace, number),
    CHECK (status <> 'running' OR owner IS NOT NULL),
    CHECK (status <> 'queued' OR owner IS NULL),
    CHECK ((status IN ('succeeded', 'failed', 'canceled')) = (ended_at IS NOT NULL)),
    CHECK ((attempts = 0) = (deployment IS NULL)),
    CHECK ((generation IS NULL) = (snapshot IS NULL))
) STRICT;

CREATE UNIQUE INDEX runs_by_key ON runs (workspace, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX runs_live ON runs (workspace, seq) WHERE status IN ('queued', 'running');
CREATE INDEX runs_by_workspace ON runs (workspace, seq);

-- One row an attempt, with its mark. snapshot NULL: no commit of it is known. reason NULL: it was not given up.
CREATE TABLE attempts (
    fence      INTEGER PRIMARY KEY CHECK (fence >= 1),
    workspace  TEXT    NOT NULL REFERENCES workspaces (name),
    run        TEXT    NOT NULL REFERENCES runs (id),
    attempt    INTEGER NOT NULL CHECK (attempt >= 1),
    lineage    TEXT    NOT NULL CHECK (lineage <> ''),
    base       INTEGER NOT NULL CHECK (base >= 0),
    release    TEXT    NOT NULL,
    plan       TEXT    NOT NULL CHECK (length(plan) = 64 AND plan NOT GLOB '*[^0-9a-f]*'),
    owner      TEXT    NOT NULL CHECK (owner <> ''),
    began_at   INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    stage      TEXT    NOT NULL CHECK (stage IN ('begun', 'committed', 'durable', 'validated', 'activated', 'orphan')),
    snapshot   INTEGER CHECK (snapshot >= 1),
    reason     TEXT    CHECK (reason <> ''),
    UNIQUE (run, attempt),
    FOREIGN KEY (workspace, release) REFERENCES releases (workspace, digest),
    CHECK (stage <> 'begun' OR snapshot IS NULL),
    CHECK (stage IN ('begun', 'orphan') OR snapshot IS NOT NULL),
    CHECK (snapshot > base),
    CHECK ((stage = 'orphan') = (reason IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX attempts_activated ON attempts (workspace, snapshot) WHERE stage = 'activated';

CREATE TABLE candidate_files (
    fence  INTEGER NOT NULL REFERENCES attempts (fence),
    path   TEXT    NOT NULL CHECK (path <> ''),
    size   INTEGER NOT NULL CHECK (size > 0),
    sha256 TEXT    NOT NULL CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
    PRIMARY KEY (fence, path)
) STRICT, WITHOUT ROWID;

-- Only results that passed are stored: a candidate with a failed check is an orphan, and its run says which check it was.
CREATE TABLE candidate_checks (
    fence      INTEGER NOT NULL REFERENCES attempts (fence),
    position   INTEGER NOT NULL CHECK (position >= 0),
    model      TEXT    NOT NULL,
    rule       TEXT    NOT NULL,
    at_file    TEXT    NOT NULL,
    at_line    INTEGER NOT NULL,
    at_column  INTEGER NOT NULL,
    detail     TEXT    NOT NULL,
    PRIMARY KEY (fence, position)
) STRICT, WITHOUT ROWID;

-- A physical table that may exist in the lake. It is recorded before it is created.
CREATE TABLE physical_tables (
    workspace   TEXT    NOT NULL REFERENCES workspaces (name),
    name        TEXT    NOT NULL CHECK (name <> ''),
    model       TEXT    NOT NULL CHECK (model <> ''),
    fence       INTEGER NOT NULL REFERENCES attempts (fence),
    recorded_at INTEGER NOT NULL,
    PRIMARY KEY (workspace, name)
) STRICT, WITHOUT ROWID;

-- No row: nothing was ever activated in the workspace.
CREATE TABLE serving_pointers (
    workspace    TEXT    PRIMARY KEY REFERENCES workspaces (name),
    generation   INTEGER NOT NULL CHECK (generation >= 1),
    snapshot     INTEGER NOT NULL CHECK (snapshot >= 1),
    release      TEXT    NOT NULL,
    plan         TEXT    NOT NULL CHECK (length(plan) = 64 AND plan NOT GLOB '*[^0-9a-f]*'),
    run          TEXT    NOT NULL REFERENCES runs (id),
    built_at     INTEGER NOT NULL,
    activated_at INTEGER NOT NULL,
    activated_by TEXT    NOT NULL,
    FOREIGN KEY (workspace, release) REFERENCES releases (workspace, digest)
) STRICT, WITHOUT ROWID;

CREATE TABLE serving_pointer_tables (
    workspace TEXT NOT NULL REFERENCES serving_pointers (workspace),
    model     TEXT NOT NULL CHECK (model <> ''),
    physical  TEXT NOT NULL,
    PRIMARY KEY (workspace, model),
    FOREIGN KEY (workspace, physical) REFERENCES physical_tables (workspace, name)
) STRICT, WITHOUT ROWID;

-- A reason to keep a snapshot. holder is the mark of an attempt or candidate, the generation of an active snapshot, and
-- OWNER/GENERATION of a leased one. snapshot NULL: whatever snapshot carries the attempt's mark.
CREATE TABLE protections (
    workspace TEXT    NOT NULL REFERENCES workspaces (name),
    kind      TEXT    NOT NULL CHECK (kind IN ('active', 'candidate', 'attempt', 'leased')),
    holder    TEXT    NOT NULL CHECK (holder <> ''),
    snapshot  INTEGER CHECK (snapshot >= 1),
    since     INTEGER NOT NULL,
    PRIMARY KEY (workspace, kind, holder),
    CHECK ((kind = 'attempt') = (snapshot IS NULL))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX protections_one_active ON protections (workspace) WHERE kind = 'active';
CREATE INDEX protections_by_snapshot ON protections (snapshot);

-- The hold of a process (owner is its boot id) on a superseded generation that requests may still read.
CREATE TABLE leases (
    workspace  TEXT    NOT NULL REFERENCES workspaces (name),
    generation INTEGER NOT NULL CHECK (generation >= 1),
    owner      TEXT    NOT NULL CHECK (owner <> ''),
    snapshot   INTEGER NOT NULL CHECK (snapshot >= 1),
    since      INTEGER NOT NULL,
    PRIMARY KEY (workspace, generation, owner)
) STRICT, WITHOUT ROWID;

CREATE TABLE principals (
    name        TEXT    PRIMARY KEY CHECK (name <> ''),
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT, WITHOUT ROWID;

-- local is whoever reaches the node through its socket.
INSERT INTO principals (name, created_at) VALUES ('local', unixepoch() * 1000000);

-- A key itself is never stored, only its SHA-256.
CREATE TABLE keys (
    digest     TEXT    PRIMARY KEY CHECK (length(digest) = 64 AND digest NOT GLOB '*[^0-9a-f]*'),
    principal  TEXT    NOT NULL REFERENCES principals (name),
    label      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_by_principal ON keys (principal);

-- Rows are only ever added. detail is a JSON object without secrets.
CREATE TABLE audit_events (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    principal TEXT    NOT NULL CHECK (principal <> ''),
    action    TEXT    NOT NULL CHECK (action <> ''),
    target    TEXT    NOT NULL CHECK (target <> ''),
    outcome   TEXT    NOT NULL CHECK (outcome <> ''),
    detail    TEXT    NOT NULL CHECK (json_type(detail) = 'object')
) STRICT;

CREATE INDEX audit_by_time ON audit_events (at);

CREATE TRIGGER audit_is_append_only_update BEFORE UPDATE ON audit_events
BEGIN
    SELECT RAISE(ABORT, 'audit rows are never changed');
END;

CREATE TRIGGER audit_is_append_only_delete BEFORE DELETE ON audit_events
BEGIN
    SELECT RAISE(ABORT, 'audit rows are never deleted');
END;
