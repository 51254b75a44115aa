DROP TABLE keys;
CREATE TABLE principals (
    name        TEXT    PRIMARY KEY CHECK (name <> ''),
    created_at  INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO principals (name, created_at) VALUES ('local', unixepoch() * 1000000);
CREATE TABLE keys (
    digest     TEXT    PRIMARY KEY CHECK (length(digest) = 64 AND digest NOT GLOB '*[^0-9a-f]*'),
    principal  TEXT    NOT NULL REFERENCES principals (name),
    label      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_principal ON keys (principal);
ALTER TABLE audit_events DROP COLUMN request;
