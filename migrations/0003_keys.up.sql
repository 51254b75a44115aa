-- The id of the request that asked for it; NULL: the node acted by itself, or was asked in its own directory.
ALTER TABLE audit_events ADD COLUMN request TEXT CHECK (request <> '');

-- Nothing was ever stored in these: a principal is local, or a key.
DROP TABLE keys;
DROP TABLE principals;

-- A key itself is never stored, only its SHA-256. seq is the order in which keys were made; a clock may step back, seq does not.
-- workspace NULL: every workspace. expires_at NULL: it does not expire. revoked_at NULL: it was not revoked.
CREATE TABLE keys (
    seq        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE CHECK (length(id) = 8 AND id NOT GLOB '*[^a-z0-9]*'),
    digest     TEXT    NOT NULL UNIQUE CHECK (length(digest) = 64 AND digest NOT GLOB '*[^0-9a-f]*'),
    role       TEXT    NOT NULL CHECK (role IN ('viewer', 'analyst', 'operator')),
    workspace  TEXT    REFERENCES workspaces (name),
    label      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT    NOT NULL CHECK (created_by <> ''),
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
