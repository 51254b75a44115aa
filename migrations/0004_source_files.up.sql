-- What an attempt read: every source file as it was when it was copied. Recorded before the attempt's first commit in the lake.
CREATE TABLE source_files (
    fence  INTEGER NOT NULL REFERENCES attempts (fence),
    source TEXT    NOT NULL CHECK (source <> ''),
    name   TEXT    NOT NULL CHECK (name <> ''),
    size   INTEGER NOT NULL CHECK (size >= 0),
    sha256 TEXT    NOT NULL CHECK (length(sha256) = 64 AND sha256 NOT GLOB '*[^0-9a-f]*'),
    PRIMARY KEY (fence, source, name)
) STRICT, WITHOUT ROWID;
