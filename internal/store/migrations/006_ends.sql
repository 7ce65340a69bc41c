-- What a run had when it ended, what transcripts were, and seals of what excuses rows
-- that are missing.

-- How many attempts a run had when it ended, less those that were deleted since. A run
-- that ended before there was this table has no row, nor has one that has not ended.
CREATE TABLE run_counts (
	run      INTEGER PRIMARY KEY REFERENCES runs (seq),
	attempts INTEGER NOT NULL CHECK (attempts >= 0)
) STRICT;
CREATE TRIGGER run_counts_keep BEFORE UPDATE ON run_counts
BEGIN SELECT raise(ABORT, 'counts of runs are never changed'); END;
CREATE TRIGGER run_counts_stay BEFORE DELETE ON run_counts
BEGIN SELECT raise(ABORT, 'counts of runs are never deleted'); END;
INSERT INTO unsealed SELECT 'run_count', ifnull(max(seq), 0) FROM runs;

-- The first half of the SHA-256 of the JSON of the attempt's transcript, with which the
-- seal can be proved when the transcript is lost. Older seals have none, nor have those
-- of attempts without a transcript.
ALTER TABLE attempt_seals ADD COLUMN script BLOB;

-- A deletion has two seals, of its row and of its rows in deleted; unsealed has one of
-- all its rows. The constraint is written into the text of the schema, for seals can be
-- as many as scores; where the text is not as this program left it, the program's next
-- step fails, and nothing is changed.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''dictionary'', ''import''))', '''dictionary'', ''import'',
		''run_count'', ''deletion'', ''deleted'', ''unsealed''))') WHERE type = 'table' AND name = 'seals';
PRAGMA writable_schema = RESET;
