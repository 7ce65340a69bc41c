-- The record of trials, attempts and transcripts. Rows are only added; the triggers in format.go
-- refuse anything else. Only a deletion that a user wants goes around them. AUTOINCREMENT keeps IDs
-- from being reused after a deletion, because its record would excuse the loss of the second row.

CREATE TABLE runs (
	seq            INTEGER PRIMARY KEY AUTOINCREMENT,
	id             TEXT NOT NULL UNIQUE CHECK (id <> ''),
	experiment     TEXT NOT NULL CHECK (experiment <> ''),
	library_path   TEXT NOT NULL,
	library_name   TEXT NOT NULL,
	library_digest TEXT NOT NULL, -- its tasks are in libraries
	planned        INTEGER NOT NULL CHECK (planned >= 0),
	program        TEXT NOT NULL,
	host           TEXT NOT NULL,
	pid            INTEGER NOT NULL,
	started_at     TEXT NOT NULL -- all times: RFC 3339, UTC
) STRICT;
CREATE INDEX runs_experiment ON runs (experiment);

-- A run's experiment as it was when the run began, so that a later edit of the experiment's file
-- takes nothing away. It is apart from runs, and so is the end, because attempts can be kept
-- without them if they are damaged.
CREATE TABLE specs (
	seq    INTEGER PRIMARY KEY REFERENCES runs (seq),
	run    TEXT NOT NULL,
	spec   TEXT NOT NULL CHECK (json_valid(spec)),
	serves TEXT NOT NULL CHECK (json_valid(serves)), -- names that responses may bear, by model
	prices TEXT NOT NULL CHECK (json_valid(prices))  -- in force when the run began, by model
) STRICT;

-- The end of a run. A run that works, or was killed, has none.
CREATE TABLE ends (
	seq         INTEGER PRIMARY KEY REFERENCES runs (seq),
	run         TEXT NOT NULL,
	finished_at TEXT NOT NULL,
	summary     TEXT NOT NULL CHECK (json_valid(summary)),
	-- How many attempts the run had, less those that were deleted since. Without this number,
	-- attempts lost to truncation would leave no trace.
	attempts    INTEGER NOT NULL CHECK (attempts >= 0)
) STRICT;

-- The tools of libraries and the tasks that runs planned, as package library packs them. A
-- library whose tasks were planned in several steps has several rows.
CREATE TABLE libraries (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	digest TEXT NOT NULL CHECK (digest <> ''), -- of the whole library
	body   BLOB NOT NULL
) STRICT;
CREATE INDEX libraries_digest ON libraries (digest);

CREATE TABLE trials (
	id            BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
	model         TEXT NOT NULL CHECK (model <> ''),
	variant       TEXT NOT NULL,
	severity      TEXT NOT NULL,
	difficulty    TEXT NOT NULL,
	task_type     TEXT NOT NULL,
	reliability   REAL NOT NULL CHECK (reliability BETWEEN 0 AND 1),
	task          TEXT NOT NULL,
	task_digest   TEXT NOT NULL,
	repeat        INTEGER NOT NULL,
	seed          INTEGER NOT NULL CHECK (seed >= 0),
	world         TEXT NOT NULL,
	protocol      TEXT NOT NULL,
	tools         TEXT NOT NULL,
	turn_limit    INTEGER NOT NULL,
	sampling      TEXT NOT NULL CHECK (sampling = '{}' OR json_valid(sampling)),
	token_limit   INTEGER NOT NULL DEFAULT 0 CHECK (token_limit >= 0),
	cost_limit    REAL NOT NULL DEFAULT 0 CHECK (cost_limit BETWEEN 0 AND 1e300),
	several_calls TEXT NOT NULL DEFAULT '',
	persistence   REAL NOT NULL DEFAULT 0 CHECK (persistence >= 0 AND persistence < 1),
	burst         REAL NOT NULL DEFAULT 0 CHECK (burst >= 0 AND burst < 1),
	loops         TEXT NOT NULL DEFAULT '',
	call_limit    INTEGER NOT NULL DEFAULT 0 CHECK (call_limit >= 0),
	fault_mix     TEXT NOT NULL DEFAULT '',
	agent_model   TEXT NOT NULL DEFAULT '',
	agent_timeout TEXT NOT NULL DEFAULT '',
	user_model    TEXT NOT NULL DEFAULT ''
) STRICT;

-- Which ends, loops and faults there are, the program knows.
CREATE TABLE attempts (
	id             INTEGER PRIMARY KEY,
	trial          BLOB NOT NULL REFERENCES trials (id),
	number         INTEGER NOT NULL CHECK (number >= 1),
	run            INTEGER NOT NULL REFERENCES runs (seq),
	round          INTEGER NOT NULL DEFAULT 0 CHECK (round >= 0), -- outcomes of the trial before
	program        TEXT NOT NULL,
	templates      TEXT NOT NULL,
	lane           TEXT NOT NULL,
	served_model   TEXT NOT NULL,
	level          TEXT NOT NULL
		CONSTRAINT known_level CHECK (level = '' OR level = 'full_success'
			OR level = 'partial_success' OR level = 'failure'),
	ended          TEXT NOT NULL
		CONSTRAINT short_end CHECK (length(CAST(ended AS BLOB)) <= 40),
	stop           TEXT NOT NULL,
	cause          TEXT NOT NULL,
	error_category TEXT NOT NULL,
	turns          INTEGER NOT NULL CHECK (turns >= 0),
	tool_calls     INTEGER NOT NULL CHECK (tool_calls >= 0),
	required_tools TEXT NOT NULL CHECK (required_tools = '[]' OR json_valid(required_tools)),
	executed_tools TEXT NOT NULL CHECK (executed_tools = '[]' OR json_valid(executed_tools)),
	coverage       REAL NOT NULL
		CONSTRAINT coverage_in_0_1 CHECK (coverage BETWEEN 0 AND 1),
	order_correct  INTEGER NOT NULL CHECK (order_correct IN (0, 1)),
	assisted       INTEGER NOT NULL CHECK (assisted >= 0),
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
	loop           TEXT NOT NULL DEFAULT ''
		CONSTRAINT short_loop CHECK (length(CAST(loop AS BLOB)) <= 40),
	loop_turn      INTEGER NOT NULL DEFAULT 0 CHECK (loop_turn >= 0),
	best_possible  REAL NOT NULL DEFAULT 0
		CONSTRAINT best_possible_in_0_1 CHECK (best_possible BETWEEN 0 AND 1),
	pilot          TEXT NOT NULL DEFAULT '' CHECK (pilot = '' OR json_valid(pilot)),
	score_version  TEXT NOT NULL,
	fault          TEXT NOT NULL
		CONSTRAINT short_fault CHECK (length(CAST(fault AS BLOB)) <= 40),
	fault_detail   TEXT NOT NULL,
	parked         INTEGER NOT NULL CHECK (parked IN (0, 1)),
	requests       INTEGER NOT NULL CHECK (requests >= 0),
	retried        TEXT NOT NULL CHECK (retried = '{}' OR json_valid(retried)),
	input_tokens   INTEGER NOT NULL CHECK (input_tokens >= 0),
	output_tokens  INTEGER NOT NULL CHECK (output_tokens >= 0),
	cost_usd       REAL NOT NULL CHECK (cost_usd BETWEEN 0 AND 1e300),
	queued_ms      INTEGER NOT NULL CHECK (queued_ms >= 0),
	working_ms     INTEGER NOT NULL CHECK (working_ms >= 0),
	started_at     TEXT NOT NULL,
	finished_at    TEXT NOT NULL,
	cached_tokens  INTEGER NOT NULL DEFAULT 0 CHECK (cached_tokens >= 0),
	cache_write_tokens INTEGER NOT NULL DEFAULT 0 CHECK (cache_write_tokens >= 0),
	reasoning_tokens INTEGER NOT NULL DEFAULT 0 CHECK (reasoning_tokens >= 0),
	truncated      INTEGER NOT NULL DEFAULT 0 CHECK (truncated >= 0),
	finish         TEXT NOT NULL DEFAULT '',
	deviations     TEXT NOT NULL DEFAULT '',
	reported       TEXT NOT NULL DEFAULT '',
	precision      REAL NOT NULL DEFAULT 0
		CONSTRAINT precision_in_0_1 CHECK (precision BETWEEN 0 AND 1),
	unwanted_effects INTEGER NOT NULL DEFAULT 0 CHECK (unwanted_effects >= 0),
	broken_lineage TEXT NOT NULL DEFAULT '',
	faults_scheduled INTEGER NOT NULL DEFAULT 0 CHECK (faults_scheduled >= 0),
	faults_met     INTEGER NOT NULL DEFAULT 0 CHECK (faults_met >= 0),
	unmetered      INTEGER NOT NULL DEFAULT 0 CHECK (unmetered IN (0, 1)),
	worker         TEXT NOT NULL DEFAULT '',
	uncertain_tokens INTEGER NOT NULL DEFAULT 0 CHECK (uncertain_tokens >= 0),
	unpriced_tokens INTEGER NOT NULL DEFAULT 0 CHECK (unpriced_tokens >= 0),
	security       TEXT NOT NULL DEFAULT ''
		CONSTRAINT known_security CHECK (security IN ('', 'held', 'broken')),
	user_requests  INTEGER NOT NULL DEFAULT 0 CHECK (user_requests >= 0),
	user_input_tokens INTEGER NOT NULL DEFAULT 0 CHECK (user_input_tokens >= 0),
	user_output_tokens INTEGER NOT NULL DEFAULT 0 CHECK (user_output_tokens >= 0),
	user_unpriced_tokens INTEGER NOT NULL DEFAULT 0 CHECK (user_unpriced_tokens >= 0),
	user_cost_usd  REAL NOT NULL DEFAULT 0 CHECK (user_cost_usd BETWEEN 0 AND 1e300),
	UNIQUE (trial, number),
	CONSTRAINT loop_has_turn CHECK ((loop = '') = (loop_turn = 0)),
	CONSTRAINT level_or_fault CHECK ((level = '') <> (fault = '')),
	CONSTRAINT outcome_has_end CHECK ((level = '') = (ended = '')),
	CONSTRAINT only_a_fault_parks CHECK (parked = 0 OR fault <> '')
) STRICT;
-- A trial is settled at most once in each round. The outcome of the latest round counts. The index
-- is also the list of done trials.
CREATE UNIQUE INDEX attempts_settled ON attempts (trial, round) WHERE level <> '';
CREATE INDEX attempts_again ON attempts (round) WHERE round > 0;

-- body is zstd over the JSON of the transcript.
CREATE TABLE transcripts (
	attempt INTEGER PRIMARY KEY REFERENCES attempts (id),
	body    BLOB NOT NULL
) STRICT;

-- What transcripts share. A transcript's body can need one of these to be read and then has its id
-- in the zstd frame. body is zstd over the text, which is a raw dictionary. bytes is the text's
-- length.
CREATE TABLE dictionaries (
	id    INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 4294967295),
	bytes INTEGER NOT NULL,
	body  BLOB NOT NULL
) STRICT;

-- What was commanded while a run worked.
CREATE TABLE controls (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	run     INTEGER NOT NULL REFERENCES runs (seq),
	at      TEXT NOT NULL,
	command TEXT NOT NULL CHECK (json_valid(command))
) STRICT;

-- What rules say of an outcome that was stored before, under other rules or the same. The latest
-- row of an attempt holds in place of what its own row says. body is the whole outcome as JSON; the
-- columns after it are made of it.
CREATE TABLE scores (
	id             INTEGER PRIMARY KEY AUTOINCREMENT,
	attempt        INTEGER NOT NULL REFERENCES attempts (id),
	scored_at      TEXT NOT NULL,
	program        TEXT NOT NULL,
	body           TEXT NOT NULL,
	version        TEXT NOT NULL AS (body ->> 'score_version') VIRTUAL,
	level          TEXT NOT NULL AS (body ->> 'level') VIRTUAL
		CONSTRAINT known_level CHECK (level IN ('full_success', 'partial_success', 'failure')),
	error_category TEXT NOT NULL AS (body ->> 'error_category') VIRTUAL
) STRICT;
CREATE INDEX scores_attempt ON scores (attempt);
CREATE TRIGGER scores_of_outcomes BEFORE INSERT ON scores
WHEN (SELECT fault FROM attempts WHERE id = new.attempt) <> ''
BEGIN SELECT raise(ABORT, 'a fault is never scored'); END;

-- What a model says of an outcome, with what the rules said then. One model has one opinion for one
-- version of the prompt.
CREATE TABLE classifications (
	id            INTEGER PRIMARY KEY AUTOINCREMENT,
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

-- What an attempt costs by other prices than those of its run. The latest row of an attempt holds in
-- place of what its own row says. prices has the price of each of its lanes, and of its user's model,
-- from the price list with that name and SHA-256.
CREATE TABLE costs (
	id                   INTEGER PRIMARY KEY AUTOINCREMENT,
	attempt              INTEGER NOT NULL REFERENCES attempts (id),
	priced_at            TEXT NOT NULL,
	program              TEXT NOT NULL,
	file                 TEXT NOT NULL CHECK (file <> ''),
	sha256               TEXT NOT NULL CHECK (length(sha256) = 64),
	prices               TEXT NOT NULL CHECK (json_valid(prices)),
	cost_usd             REAL NOT NULL CHECK (cost_usd BETWEEN 0 AND 1e300),
	unpriced_tokens      INTEGER NOT NULL CHECK (unpriced_tokens >= 0),
	user_cost_usd        REAL NOT NULL CHECK (user_cost_usd BETWEEN 0 AND 1e300),
	user_unpriced_tokens INTEGER NOT NULL CHECK (user_unpriced_tokens >= 0),
	confidence_cost_usd  REAL NOT NULL CHECK (confidence_cost_usd BETWEEN 0 AND 1e300)
) STRICT;
CREATE INDEX costs_attempt ON costs (attempt);

-- Aggregates of another system. They are no trials and count nowhere; body is what was read of the
-- file, with every contradiction found, as JSON.
CREATE TABLE imports (
	id          INTEGER PRIMARY KEY,
	kind        TEXT NOT NULL CHECK (kind <> ''),
	name        TEXT NOT NULL CHECK (name <> ''), -- of the file
	sha256      TEXT NOT NULL UNIQUE CHECK (length(sha256) = 64), -- of the file
	imported_at TEXT NOT NULL,
	program     TEXT NOT NULL,
	body        TEXT NOT NULL CHECK (json_valid(body))
) STRICT;

-- Seals prove that rows are as they were written. They find what disks, copies and hands do to a
-- file, and say nothing of who wrote a row. sum is the first half of a SHA-256 over the attempt's
-- row and its place, the IDs of its trial and its run, and the JSON of its transcript. script is the
-- same of that JSON alone, with which the seal can be proved when the transcript is lost.
CREATE TABLE attempt_seals (
	attempt INTEGER PRIMARY KEY,
	sum     BLOB NOT NULL CHECK (length(sum) = 16),
	script  BLOB
) STRICT;

-- The seals of the rows of other tables. Trials need none, because their IDs are made of their
-- content.
CREATE TABLE seals (
	of  TEXT NOT NULL, -- the table
	id  INTEGER NOT NULL,
	sum BLOB NOT NULL CHECK (length(sum) = 16),
	PRIMARY KEY (of, id)
) STRICT;

-- What a user had deleted, so that anything else that is missing is known for a loss.
CREATE TABLE deletions (
	id      INTEGER PRIMARY KEY,
	at      TEXT NOT NULL,
	program TEXT NOT NULL,
	-- What was chosen, counts, and the rows that went: stretches of IDs, by table.
	what    TEXT NOT NULL CHECK (json_valid(what))
) STRICT;
-- Transcripts that went while their attempts stayed.
CREATE TABLE dropped (
	attempt  INTEGER PRIMARY KEY REFERENCES attempts (id),
	deletion INTEGER NOT NULL REFERENCES deletions (id)
) STRICT;

-- What each attempt has used and cost by the latest prices, with a row for its model, one for the
-- model behind its simulated user, and one for the model that judged it. A cost of which nothing is
-- known is NULL, and counts is what the attempt counts for. What is not recorded is NULL.
CREATE VIEW spend AS
WITH latest AS (
	SELECT a.*, t.model, t.agent_model, t.user_model, r.experiment, r.id AS run_id,
		k.id IS NOT NULL AS again, k.file, k.sha256, k.priced_at,
		iif(k.id IS NULL, a.cost_usd, k.cost_usd) AS usd,
		iif(k.id IS NULL, a.unpriced_tokens, k.unpriced_tokens) AS unpriced,
		iif(k.id IS NULL, a.user_cost_usd, k.user_cost_usd) AS user_usd,
		iif(k.id IS NULL, a.user_unpriced_tokens, k.user_unpriced_tokens) AS user_unpriced,
		CASE WHEN a.fault = 'interrupted' THEN 'cost only' WHEN a.fault <> '' THEN 'fault'
			WHEN EXISTS (SELECT 1 FROM attempts o
				WHERE o.trial = a.trial AND o.level <> '' AND o.round > a.round) THEN 'cost only'
			ELSE 'outcome' END AS counts
	FROM attempts a CROSS JOIN trials t ON t.id = a.trial CROSS JOIN runs r ON r.seq = a.run
		LEFT JOIN costs k ON k.id = (SELECT max(id) FROM costs WHERE costs.attempt = a.id)
)
SELECT id, lower(hex(trial)) AS trial, number AS attempt, experiment, run_id AS run, model, counts,
	'model' AS spender, iif(agent_model = '', model, agent_model) AS spent_on, lane, requests,
	input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens,
	unpriced AS unpriced_tokens,
	iif(usd = 0 AND (unpriced > 0 OR unmetered), NULL, usd) AS cost_usd,
	iif(again, cost_usd, NULL) AS saved_cost_usd,
	file AS price_list, sha256 AS price_list_sha256, priced_at, finished_at
FROM latest
UNION ALL
SELECT id, lower(hex(trial)), number, experiment, run_id, model, counts, 'user', user_model, NULL,
	user_requests, user_input_tokens, user_output_tokens, NULL, NULL, NULL, user_unpriced,
	iif(user_usd = 0 AND user_unpriced > 0, NULL, user_usd), iif(again, user_cost_usd, NULL), file,
	sha256, priced_at, finished_at
FROM latest WHERE user_requests > 0
UNION ALL
SELECT id, lower(hex(trial)), number, experiment, run_id, model, counts, 'judge', judged_by, NULL,
	judge_requests, judge_input_tokens, judge_output_tokens, NULL, NULL, NULL, judge_unpriced_tokens,
	iif(judge_cost_usd = 0 AND judge_unpriced_tokens > 0, NULL, judge_cost_usd), NULL, NULL,
	NULL, NULL, finished_at
FROM latest WHERE judge_requests > 0;

-- One row for each attempt with everything about it as it was saved, for anybody with an SQLite
-- shell. The cross joins keep attempts the outer loop, so that reading in the order of id needs no
-- sort.
CREATE VIEW results AS
SELECT a.id, a.trial AS trial_key, lower(hex(a.trial)) AS trial,
	t.model, t.variant, t.severity, t.difficulty, t.task_type, t.reliability, t.task, t.task_digest,
	t.repeat, t.seed, t.world, t.protocol, t.tools, t.turn_limit, t.call_limit, t.sampling,
	t.token_limit, t.cost_limit, t.several_calls, t.persistence, t.burst, t.fault_mix, t.loops,
	t.agent_model, t.agent_timeout,
	a.number AS attempt, a.round, r.experiment, r.id AS run, a.program, a.templates, a.lane,
	a.served_model, a.finish, a.truncated, a.deviations, a.reported,
	a.level, a.ended, a.stop, a.cause, a.error_category, a.turns, a.tool_calls, a.required_tools,
	a.executed_tools,
	a.coverage, a.order_correct, a.assisted, a.adherence, a.given_adherence, a.mistakes, a.failures,
	a.recovered, a.wasted_calls, a.efficiency, a.extra_calls, a.precision, a.unwanted_effects,
	a.broken_lineage, a.faults_scheduled, a.faults_met, a.loop, a.loop_turn, a.best_possible, a.pilot,
	a.score_version, a.fault, a.fault_detail, a.parked, a.unmetered, a.worker,
	a.requests, a.retried, a.input_tokens, a.output_tokens, a.cached_tokens, a.cache_write_tokens,
	a.reasoning_tokens, a.uncertain_tokens, a.unpriced_tokens, a.cost_usd, a.queued_ms, a.working_ms,
	a.started_at, a.finished_at
FROM attempts a CROSS JOIN trials t ON t.id = a.trial CROSS JOIN runs r ON r.seq = a.run;
