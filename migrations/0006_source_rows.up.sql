-- How many rows an attempt read from each source. No row: the attempt was made before this step.
CREATE TABLE source_rows (
    fence  INTEGER NOT NULL REFERENCES attempts (fence),
    source TEXT    NOT NULL CHECK (source <> ''),
    rows   INTEGER NOT NULL CHECK (rows >= 0),
    PRIMARY KEY (fence, source)
) STRICT, WITHOUT ROWID;
