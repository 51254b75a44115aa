DELETE FROM candidate_checks WHERE ok = 0 OR fence IN (SELECT fence FROM attempts WHERE stage = 'orphan');
ALTER TABLE candidate_checks DROP COLUMN sample;
ALTER TABLE candidate_checks DROP COLUMN judged;
ALTER TABLE candidate_checks DROP COLUMN failures;
ALTER TABLE candidate_checks DROP COLUMN ok;
ALTER TABLE candidate_checks DROP COLUMN severity;
ALTER TABLE candidate_checks DROP COLUMN name;
