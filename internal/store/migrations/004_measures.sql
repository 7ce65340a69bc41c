-- What else an outcome measures, what later rules say of stored attempts, and
-- second opinions on them.
--
-- To add a column, SQLite reads the whole table to hold its rows against all
-- constraints: 21 s for these in a store of a million attempts, longer than a
-- copy takes. Their defaults satisfy the constraints of the new columns, so these
-- are written into the text of the schema, which is all that ALTER TABLE would
-- do besides. Where the text is not as this program left it, the last statement
-- fails, and nothing is changed.
--
-- An outcome from before has zeros in the new columns: its score_version tells
-- that its rules measured none.

DROP VIEW results;

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, ' CHECK (cost_limit BETWEEN 0 AND 1e300)) STRICT', ' CHECK (cost_limit BETWEEN 0 AND 1e300),
	several_calls TEXT NOT NULL DEFAULT '''',
	persistence REAL NOT NULL DEFAULT 0 CHECK (persistence >= 0 AND persistence < 1),
	burst       REAL NOT NULL DEFAULT 0 CHECK (burst >= 0 AND burst < 1),
	loops       TEXT NOT NULL DEFAULT ''''
) STRICT') WHERE type = 'table' AND name = 'trials';
UPDATE sqlite_schema SET sql = replace(sql, '
	finished_at    TEXT NOT NULL,
	UNIQUE (trial, number),', '
	finished_at    TEXT NOT NULL,
	adherence      REAL NOT NULL DEFAULT 0
		CONSTRAINT adherence_in_0_1 CHECK (adherence BETWEEN 0 AND 1),
	given_adherence REAL
		CONSTRAINT given_adherence_in_0_1 CHECK (given_adherence BETWEEN 0 AND 1),
	mistakes       INTEGER NOT NULL DEFAULT 0 CHECK (mistakes >= 0),
	failures       INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
	recovered      INTEGER NOT NULL DEFAULT 0 CHECK (recovered >= 0),
	wasted_calls   INTEGER NOT NULL DEFAULT 0 CHECK (wasted_calls >= 0),
	efficiency     REAL NOT NULL DEFAULT 0
		CONSTRAINT efficiency_in_0_1 CHECK (efficiency BETWEEN 0 AND 1),
	extra_calls    INTEGER NOT NULL DEFAULT 0 CHECK (extra_calls >= 0),
	loop           TEXT NOT NULL DEFAULT '''' -- which there are, the program knows
		CONSTRAINT short_loop CHECK (length(CAST(loop AS BLOB)) <= 40),
	loop_turn      INTEGER NOT NULL DEFAULT 0 CHECK (loop_turn >= 0),
	best_possible  REAL NOT NULL DEFAULT 0
		CONSTRAINT best_possible_in_0_1 CHECK (best_possible BETWEEN 0 AND 1),
	pilot          TEXT NOT NULL DEFAULT '''' -- JSON, or empty
		CHECK (pilot = '''' OR json_valid(pilot)),
	UNIQUE (trial, number),
	CONSTRAINT loop_has_turn CHECK ((loop = '''') = (loop_turn = 0)),') WHERE type = 'table' AND name = 'attempts';
PRAGMA writable_schema = RESET;

-- What rules say of an outcome that was stored before, under other rules or the
-- same. The latest row of an attempt holds in place of what its own row says.
-- body is the whole outcome as JSON; the columns after it are made of it.
CREATE TABLE scores (
	id             INTEGER PRIMARY KEY,
	attempt        INTEGER NOT NULL REFERENCES attempts (id),
	scored_at      TEXT NOT NULL,
	program        TEXT NOT NULL,
	body           TEXT NOT NULL,
	version        TEXT NOT NULL AS (body ->> 'score_version') VIRTUAL,
	level          TEXT NOT NULL AS (body ->> 'level') STORED
		CONSTRAINT known_level CHECK (level IN ('full_success', 'partial_success', 'failure')),
	error_category TEXT NOT NULL AS (body ->> 'error_category') STORED
) STRICT;
CREATE INDEX scores_attempt ON scores (attempt);
CREATE TRIGGER scores_of_outcomes BEFORE INSERT ON scores
WHEN (SELECT fault FROM attempts WHERE id = new.attempt) <> ''
BEGIN SELECT raise(ABORT, 'a fault is never scored'); END;
CREATE TRIGGER scores_keep BEFORE UPDATE ON scores
BEGIN SELECT raise(ABORT, 'scores are never changed'); END;
CREATE TRIGGER scores_stay BEFORE DELETE ON scores
BEGIN SELECT raise(ABORT, 'scores are never deleted'); END;

-- What a model says of an outcome, with what the rules said then. One model has
-- one opinion for one version of the prompt.
CREATE TABLE classifications (
	id            INTEGER PRIMARY KEY,
	attempt       INTEGER NOT NULL REFERENCES attempts (id),
	model         TEXT NOT NULL CHECK (model <> ''),
	prompt        TEXT NOT NULL CHECK (prompt <> ''), -- its version
	category      TEXT NOT NULL CHECK (category <> ''),
	confidence    REAL NOT NULL
		CONSTRAINT confidence_in_0_1 CHECK (confidence BETWEEN 0 AND 1),
	reason        TEXT NOT NULL,
	rule_category TEXT NOT NULL,
	classified_at TEXT NOT NULL,
	input_tokens  INTEGER NOT NULL CHECK (input_tokens >= 0),
	output_tokens INTEGER NOT NULL CHECK (output_tokens >= 0),
	cost_usd      REAL NOT NULL CHECK (cost_usd BETWEEN 0 AND 1e300),
	raw           TEXT NOT NULL, -- the text of the reply
	CONSTRAINT one_opinion UNIQUE (model, prompt, attempt)
) STRICT;
CREATE TRIGGER classifications_of_outcomes BEFORE INSERT ON classifications
WHEN (SELECT fault FROM attempts WHERE id = new.attempt) <> ''
BEGIN SELECT raise(ABORT, 'a fault is never classified'); END;
CREATE TRIGGER classifications_keep BEFORE UPDATE ON classifications
BEGIN SELECT raise(ABORT, 'classifications are never changed'); END;
CREATE TRIGGER classifications_stay BEFORE DELETE ON classifications
BEGIN SELECT raise(ABORT, 'classifications are never deleted'); END;

-- One row for each attempt with everything about it as it was saved, for this
-- program and for anybody with an SQLite shell. The cross joins keep attempts the
-- outer loop, so that reading in the order of id needs no sort.
CREATE VIEW results AS
SELECT a.id, a.trial AS trial_key, lower(hex(a.trial)) AS trial,
	t.model, t.variant, t.severity, t.difficulty, t.task_type, t.reliability, t.task, t.task_digest, t.repeat, t.seed,
	t.world, t.protocol, t.tools, t.turn_limit, t.sampling, t.token_limit, t.cost_limit,
	t.several_calls, t.persistence, t.burst, t.loops,
	a.number AS attempt, r.experiment, r.id AS run, a.program, a.templates, a.lane, a.served_model,
	a.level, a.ended, a.error_category, a.turns, a.tool_calls, a.required_tools, a.executed_tools,
	a.coverage, a.order_correct, a.assisted,
	a.adherence, a.given_adherence, a.mistakes, a.failures, a.recovered, a.wasted_calls, a.efficiency, a.extra_calls,
	a.loop, a.loop_turn, a.best_possible, a.pilot,
	a.score_version, a.fault, a.fault_detail, a.parked,
	a.requests, a.retried, a.input_tokens, a.output_tokens, a.cost_usd, a.queued_ms, a.working_ms,
	a.started_at, a.finished_at
FROM attempts a CROSS JOIN trials t ON t.id = a.trial CROSS JOIN runs r ON r.seq = a.run;

SELECT * FROM results LIMIT 0;
