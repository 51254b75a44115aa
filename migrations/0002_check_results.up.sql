-- Since this step the results of a rejected candidate are stored too, and what a check says: severity, how many of the judged rows broke
-- it, and a few of them. Until then every stored result had passed.
ALTER TABLE candidate_checks ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE candidate_checks ADD COLUMN severity TEXT NOT NULL DEFAULT 'error' CHECK (severity IN ('error', 'warn'));
ALTER TABLE candidate_checks ADD COLUMN ok INTEGER NOT NULL DEFAULT 1 CHECK (ok IN (0, 1));
ALTER TABLE candidate_checks ADD COLUMN failures INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0);
ALTER TABLE candidate_checks ADD COLUMN judged INTEGER NOT NULL DEFAULT 0 CHECK (judged >= 0);
ALTER TABLE candidate_checks ADD COLUMN sample TEXT NOT NULL DEFAULT '' CHECK (sample = '' OR json_type(sample) = 'object');
