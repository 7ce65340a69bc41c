-- Limits of tokens and of money for a trial, ends that the schema does not
-- list, what the lanes learned and what was commanded during a run.
--
-- It runs without enforcement of foreign keys: a table that others refer to is
-- replaced. They are checked before the commit.

DROP VIEW results;

ALTER TABLE trials ADD COLUMN token_limit INTEGER NOT NULL DEFAULT 0 CHECK (token_limit >= 0);
ALTER TABLE trials ADD COLUMN cost_limit REAL NOT NULL DEFAULT 0 CHECK (cost_limit BETWEEN 0 AND 1e300);

-- SQLite changes no constraint in place. The copy differs from the first one in
-- that known_end is gone and an outcome has to have an end: which ends there
-- are, the program knows.
CREATE TABLE attempts_copy (
	id             INTEGER PRIMARY KEY,
	trial          BLOB NOT NULL REFERENCES trials (id),
	number         INTEGER NOT NULL CHECK (number >= 1),
	run            INTEGER NOT NULL REFERENCES runs (seq),
	program        TEXT NOT NULL,
	templates      TEXT NOT NULL,
	lane           TEXT NOT NULL,
	served_model   TEXT NOT NULL,
	level          TEXT NOT NULL
		CONSTRAINT known_level CHECK (level IN ('', 'full_success', 'partial_success', 'failure')),
	ended          TEXT NOT NULL
		CONSTRAINT short_end CHECK (length(CAST(ended AS BLOB)) <= 40),
	error_category TEXT NOT NULL,
	turns          INTEGER NOT NULL CHECK (turns >= 0),
	tool_calls     INTEGER NOT NULL CHECK (tool_calls >= 0),
	required_tools TEXT NOT NULL CHECK (json_valid(required_tools)),
	executed_tools TEXT NOT NULL CHECK (json_valid(executed_tools)),
	coverage       REAL NOT NULL
		CONSTRAINT coverage_in_0_1 CHECK (coverage BETWEEN 0 AND 1),
	order_correct  INTEGER NOT NULL CHECK (order_correct IN (0, 1)),
	assisted       INTEGER NOT NULL CHECK (assisted >= 0),
	score_version  TEXT NOT NULL,
	fault          TEXT NOT NULL
		CONSTRAINT known_fault CHECK (fault IN ('', 'rate_limited', 'overloaded', 'server', 'network', 'timeout',
			'auth', 'quota', 'not_found', 'bad_request', 'content_filter', 'malformed', 'identity', 'harness',
			'interrupted')),
	fault_detail   TEXT NOT NULL,
	parked         INTEGER NOT NULL CHECK (parked IN (0, 1)),
	requests       INTEGER NOT NULL CHECK (requests >= 0),
	retried        TEXT NOT NULL CHECK (json_valid(retried)),
	input_tokens   INTEGER NOT NULL CHECK (input_tokens >= 0),
	output_tokens  INTEGER NOT NULL CHECK (output_tokens >= 0),
	cost_usd       REAL NOT NULL CHECK (cost_usd BETWEEN 0 AND 1e300),
	queued_ms      INTEGER NOT NULL CHECK (queued_ms >= 0),
	working_ms     INTEGER NOT NULL CHECK (working_ms >= 0),
	started_at     TEXT NOT NULL,
	finished_at    TEXT NOT NULL,
	UNIQUE (trial, number),
	CONSTRAINT level_or_fault CHECK ((level = '') <> (fault = '')),
	CONSTRAINT outcome_has_end CHECK ((level = '') = (ended = '')),
	CONSTRAINT only_a_fault_parks CHECK (parked = 0 OR fault <> '')
) STRICT;
INSERT INTO attempts_copy SELECT * FROM attempts ORDER BY id;
DROP TABLE attempts; -- with its index and its triggers
ALTER TABLE attempts_copy RENAME TO attempts;

-- A trial is settled at most once. The index is also the list of done trials.
CREATE UNIQUE INDEX attempts_settled ON attempts (trial) WHERE level <> '';

CREATE TRIGGER attempts_keep BEFORE UPDATE ON attempts
BEGIN SELECT raise(ABORT, 'attempts are never changed'); END;
CREATE TRIGGER attempts_stay BEFORE DELETE ON attempts
BEGIN SELECT raise(ABORT, 'attempts are never deleted'); END;

-- One row for each attempt with everything about it, for this program and for
-- anybody with an SQLite shell. The cross joins keep attempts the outer loop, so
-- that reading in the order of id needs no sort.
CREATE VIEW results AS
SELECT a.id, a.trial AS trial_key, lower(hex(a.trial)) AS trial,
	t.model, t.variant, t.severity, t.difficulty, t.task_type, t.reliability, t.task, t.task_digest, t.repeat, t.seed,
	t.world, t.protocol, t.tools, t.turn_limit, t.sampling, t.token_limit, t.cost_limit,
	a.number AS attempt, r.experiment, r.id AS run, a.program, a.templates, a.lane, a.served_model,
	a.level, a.ended, a.error_category, a.turns, a.tool_calls, a.required_tools, a.executed_tools,
	a.coverage, a.order_correct, a.assisted, a.score_version, a.fault, a.fault_detail, a.parked,
	a.requests, a.retried, a.input_tokens, a.output_tokens, a.cost_usd, a.queued_ms, a.working_ms,
	a.started_at, a.finished_at
FROM attempts a CROSS JOIN trials t ON t.id = a.trial CROSS JOIN runs r ON r.seq = a.run;

-- What runs learned of the limits of their lanes. The latest row of a lane and
-- a bucket holds; a value of 0 forgets it.
CREATE TABLE lane_limits (
	id         INTEGER PRIMARY KEY,
	run        INTEGER NOT NULL REFERENCES runs (seq),
	lane       TEXT NOT NULL CHECK (lane <> ''),
	bucket     TEXT NOT NULL CHECK (bucket <> ''),
	value      INTEGER NOT NULL CHECK (value >= 0),
	learned_at TEXT NOT NULL
) STRICT;
CREATE TRIGGER lane_limits_keep BEFORE UPDATE ON lane_limits
BEGIN SELECT raise(ABORT, 'lane limits are never changed'); END;
CREATE TRIGGER lane_limits_stay BEFORE DELETE ON lane_limits
BEGIN SELECT raise(ABORT, 'lane limits are never deleted'); END;

-- What was commanded while a run worked.
CREATE TABLE controls (
	id      INTEGER PRIMARY KEY,
	run     INTEGER NOT NULL REFERENCES runs (seq),
	at      TEXT NOT NULL,
	command TEXT NOT NULL CHECK (json_valid(command))
) STRICT;
CREATE TRIGGER controls_keep BEFORE UPDATE ON controls
BEGIN SELECT raise(ABORT, 'controls are never changed'); END;
CREATE TRIGGER controls_stay BEFORE DELETE ON controls
BEGIN SELECT raise(ABORT, 'controls are never deleted'); END;
