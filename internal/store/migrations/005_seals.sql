-- Which names of models responses might bear, by model, when the run began; empty
-- for what is not known.
ALTER TABLE runs ADD COLUMN serves TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(serves));

-- What proves that a store is whole: a seal of each row, made when the row was
-- written; what was taken away on purpose; and aggregates of other systems.

-- sum is the first half of a SHA-256 over the attempt's row and its place, the IDs
-- of its trial and its run, and the JSON of its transcript. Seals say nothing of who wrote a
-- row: they find what disks, copies and hands do to a file.
CREATE TABLE attempt_seals (
	attempt INTEGER PRIMARY KEY,
	sum     BLOB NOT NULL CHECK (length(sum) = 16)
) STRICT;
CREATE TRIGGER attempt_seals_keep BEFORE UPDATE ON attempt_seals
BEGIN SELECT raise(ABORT, 'seals are never changed'); END;
CREATE TRIGGER attempt_seals_stay BEFORE DELETE ON attempt_seals
BEGIN SELECT raise(ABORT, 'seals are never deleted'); END;

-- The same for the rows of other tables.
CREATE TABLE seals (
	of  TEXT NOT NULL CHECK (of IN ('run', 'run_spec', 'run_end', 'score', 'classification', 'dictionary', 'import')),
	id  INTEGER NOT NULL,
	sum BLOB NOT NULL CHECK (length(sum) = 16),
	PRIMARY KEY (of, id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER seals_keep BEFORE UPDATE ON seals
BEGIN SELECT raise(ABORT, 'seals are never changed'); END;
CREATE TRIGGER seals_stay BEFORE DELETE ON seals
BEGIN SELECT raise(ABORT, 'seals are never deleted'); END;

-- Rows up to here are older than seals and have none.
CREATE TABLE unsealed (
	of   TEXT NOT NULL PRIMARY KEY,
	last INTEGER NOT NULL
) STRICT;
INSERT INTO unsealed
SELECT 'run', ifnull(max(seq), 0) FROM runs
UNION ALL SELECT 'attempt', ifnull(max(id), 0) FROM attempts
UNION ALL SELECT 'score', ifnull(max(id), 0) FROM scores
UNION ALL SELECT 'classification', ifnull(max(id), 0) FROM classifications
UNION ALL SELECT 'dictionary', ifnull(max(id), 0) FROM dictionaries;

-- What a user had deleted, so that what is missing otherwise is known for a loss.
CREATE TABLE deletions (
	id      INTEGER PRIMARY KEY,
	at      TEXT NOT NULL,
	program TEXT NOT NULL,
	what    TEXT NOT NULL CHECK (json_valid(what)) -- what was chosen, and counts
) STRICT;
-- The rows that went, as stretches of IDs.
CREATE TABLE deleted (
	deletion INTEGER NOT NULL REFERENCES deletions (id),
	of       TEXT NOT NULL CHECK (of IN ('run', 'attempt', 'score', 'classification')),
	first    INTEGER NOT NULL,
	last     INTEGER NOT NULL CHECK (last >= first),
	PRIMARY KEY (of, first)
) STRICT, WITHOUT ROWID;
-- Transcripts that went while their attempts stayed. digest is the first half
-- of the SHA-256 of the JSON, with which the attempt's seal can still be proved.
CREATE TABLE dropped (
	attempt  INTEGER PRIMARY KEY REFERENCES attempts (id),
	deletion INTEGER NOT NULL REFERENCES deletions (id),
	digest   BLOB NOT NULL CHECK (length(digest) = 16)
) STRICT;

-- Aggregates of another system. They are no trials and count nowhere; body is
-- what was read of the file, with every contradiction found, as JSON.
CREATE TABLE imports (
	id          INTEGER PRIMARY KEY,
	kind        TEXT NOT NULL CHECK (kind <> ''),
	name        TEXT NOT NULL CHECK (name <> ''), -- of the file
	sha256      TEXT NOT NULL UNIQUE CHECK (length(sha256) = 64), -- of the file
	imported_at TEXT NOT NULL,
	program     TEXT NOT NULL,
	body        TEXT NOT NULL CHECK (json_valid(body))
) STRICT;
CREATE TRIGGER imports_keep BEFORE UPDATE ON imports
BEGIN SELECT raise(ABORT, 'imports are never changed'); END;
CREATE TRIGGER imports_stay BEFORE DELETE ON imports
BEGIN SELECT raise(ABORT, 'imports are never deleted'); END;
