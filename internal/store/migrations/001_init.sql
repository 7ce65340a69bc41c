-- The record of trials, attempts and transcripts. Rows are only added; the
-- triggers at the end refuse anything else. The one exception is a run, which
-- is closed once.

-- A run holds the experiment as it was when the run began, so that a later
-- edit of the experiment's file takes nothing away.
CREATE TABLE runs (
	seq            INTEGER PRIMARY KEY,
	id             TEXT NOT NULL UNIQUE CHECK (id <> ''),
	experiment     TEXT NOT NULL CHECK (experiment <> ''),
	spec           TEXT NOT NULL CHECK (json_valid(spec)),
	library_path   TEXT NOT NULL,
	library_name   TEXT NOT NULL,
	library_digest TEXT NOT NULL,
	planned        INTEGER NOT NULL CHECK (planned >= 0),
	program        TEXT NOT NULL,
	host           TEXT NOT NULL,
	pid            INTEGER NOT NULL,
	started_at     TEXT NOT NULL, -- all times: RFC 3339, UTC
	finished_at    TEXT,
	summary        TEXT CHECK (json_valid(summary))
) STRICT;
CREATE INDEX runs_experiment ON runs (experiment);

CREATE TABLE trials (
	id          BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
	model       TEXT NOT NULL CHECK (model <> ''),
	variant     TEXT NOT NULL,
	severity    TEXT NOT NULL,
	difficulty  TEXT NOT NULL,
	task_type   TEXT NOT NULL,
	reliability REAL NOT NULL CHECK (reliability BETWEEN 0 AND 1),
	task        TEXT NOT NULL,
	task_digest TEXT NOT NULL,
	repeat      INTEGER NOT NULL,
	seed        INTEGER NOT NULL CHECK (seed >= 0),
	world       TEXT NOT NULL,
	protocol    TEXT NOT NULL,
	tools       TEXT NOT NULL,
	turn_limit  INTEGER NOT NULL,
	sampling    TEXT NOT NULL CHECK (json_valid(sampling))
) STRICT;

CREATE TABLE attempts (
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
		CONSTRAINT known_end CHECK (ended IN ('', 'finished', 'turn_limit', 'failure_streak', 'call_limit', 'loop')),
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
	CONSTRAINT only_a_fault_parks CHECK (parked = 0 OR fault <> '')
) STRICT;

-- A trial is settled at most once. The index is also the list of done trials.
CREATE UNIQUE INDEX attempts_settled ON attempts (trial) WHERE level <> '';

-- body is zstd over the JSON of the transcript.
CREATE TABLE transcripts (
	attempt INTEGER PRIMARY KEY REFERENCES attempts (id),
	body    BLOB NOT NULL
) STRICT;

-- One row for each attempt with everything about it, for this program and for
-- anybody with an SQLite shell. The cross joins keep attempts the outer loop, so
-- that reading in the order of id needs no sort.
CREATE VIEW results AS
SELECT a.id, a.trial AS trial_key, lower(hex(a.trial)) AS trial,
	t.model, t.variant, t.severity, t.difficulty, t.task_type, t.reliability, t.task, t.task_digest, t.repeat, t.seed,
	t.world, t.protocol, t.tools, t.turn_limit, t.sampling,
	a.number AS attempt, r.experiment, r.id AS run, a.program, a.templates, a.lane, a.served_model,
	a.level, a.ended, a.error_category, a.turns, a.tool_calls, a.required_tools, a.executed_tools,
	a.coverage, a.order_correct, a.assisted, a.score_version, a.fault, a.fault_detail, a.parked,
	a.requests, a.retried, a.input_tokens, a.output_tokens, a.cost_usd, a.queued_ms, a.working_ms,
	a.started_at, a.finished_at
FROM attempts a CROSS JOIN trials t ON t.id = a.trial CROSS JOIN runs r ON r.seq = a.run;

CREATE TRIGGER trials_keep BEFORE UPDATE ON trials
BEGIN SELECT raise(ABORT, 'trials are never changed'); END;
CREATE TRIGGER trials_stay BEFORE DELETE ON trials
BEGIN SELECT raise(ABORT, 'trials are never deleted'); END;
CREATE TRIGGER attempts_keep BEFORE UPDATE ON attempts
BEGIN SELECT raise(ABORT, 'attempts are never changed'); END;
CREATE TRIGGER attempts_stay BEFORE DELETE ON attempts
BEGIN SELECT raise(ABORT, 'attempts are never deleted'); END;
CREATE TRIGGER transcripts_keep BEFORE UPDATE ON transcripts
BEGIN SELECT raise(ABORT, 'transcripts are never changed'); END;
CREATE TRIGGER transcripts_stay BEFORE DELETE ON transcripts
BEGIN SELECT raise(ABORT, 'transcripts are never deleted'); END;
CREATE TRIGGER runs_close_once BEFORE UPDATE ON runs
WHEN old.finished_at IS NOT NULL OR new.id IS NOT old.id OR new.experiment IS NOT old.experiment OR new.spec IS NOT old.spec
BEGIN SELECT raise(ABORT, 'runs are never changed, only closed'); END;
CREATE TRIGGER runs_stay BEFORE DELETE ON runs
BEGIN SELECT raise(ABORT, 'runs are never deleted'); END;
