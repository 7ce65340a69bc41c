-- All kinds of tokens, why replies ended, what was asked differently from what was
-- wanted, what endpoints reported that they used, a limit of calls, the mix of the faults
-- of tools, what an outcome measures of effects, data and faults, foreign agents, and the
-- evidence of learned limits.
--
-- The columns are written into the text of the schema, as in 004_measures.sql. Earlier
-- attempts have zeros and empty texts in them, and their seals cover them so: the seal of
-- an attempt without any of these is what it was before.

DROP VIEW results;

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '
	loops       TEXT NOT NULL DEFAULT ''''
) STRICT', '
	loops       TEXT NOT NULL DEFAULT '''',
	call_limit  INTEGER NOT NULL DEFAULT 0 CHECK (call_limit >= 0),
	fault_mix   TEXT NOT NULL DEFAULT '''',
	agent_model TEXT NOT NULL DEFAULT '''',
	agent_timeout TEXT NOT NULL DEFAULT ''''
) STRICT') WHERE type = 'table' AND name = 'trials';
UPDATE sqlite_schema SET sql = replace(sql, '
		CHECK (pilot = '''' OR json_valid(pilot)),
	UNIQUE (trial, number),', '
		CHECK (pilot = '''' OR json_valid(pilot)),
	cached_tokens  INTEGER NOT NULL DEFAULT 0 CHECK (cached_tokens >= 0),
	cache_write_tokens INTEGER NOT NULL DEFAULT 0 CHECK (cache_write_tokens >= 0),
	reasoning_tokens INTEGER NOT NULL DEFAULT 0 CHECK (reasoning_tokens >= 0),
	truncated      INTEGER NOT NULL DEFAULT 0 CHECK (truncated >= 0),
	finish         TEXT NOT NULL DEFAULT '''',
	deviations     TEXT NOT NULL DEFAULT '''',
	reported       TEXT NOT NULL DEFAULT '''',
	precision      REAL NOT NULL DEFAULT 0
		CONSTRAINT precision_in_0_1 CHECK (precision BETWEEN 0 AND 1),
	unwanted_effects INTEGER NOT NULL DEFAULT 0 CHECK (unwanted_effects >= 0),
	broken_lineage TEXT NOT NULL DEFAULT '''',
	faults_scheduled INTEGER NOT NULL DEFAULT 0 CHECK (faults_scheduled >= 0),
	faults_met     INTEGER NOT NULL DEFAULT 0 CHECK (faults_met >= 0),
	unmetered INTEGER NOT NULL DEFAULT 0 CHECK (unmetered IN (0, 1)),
	UNIQUE (trial, number),') WHERE type = 'table' AND name = 'attempts';
UPDATE sqlite_schema SET sql = replace(sql, '''interrupted'')),', '''interrupted'', ''tool_server'')),')
WHERE type = 'table' AND name = 'attempts';
PRAGMA writable_schema = RESET;

-- The requests that a run saw before it learned a limit, and the words of the latest refusal.
ALTER TABLE lane_limits ADD COLUMN accepted INTEGER NOT NULL DEFAULT 0 CHECK (accepted >= 0);
ALTER TABLE lane_limits ADD COLUMN refused INTEGER NOT NULL DEFAULT 0 CHECK (refused >= 0);
ALTER TABLE lane_limits ADD COLUMN words TEXT NOT NULL DEFAULT '';

CREATE VIEW results AS
SELECT a.id, a.trial AS trial_key, lower(hex(a.trial)) AS trial,
	t.model, t.variant, t.severity, t.difficulty, t.task_type, t.reliability, t.task, t.task_digest, t.repeat, t.seed,
	t.world, t.protocol, t.tools, t.turn_limit, t.call_limit, t.sampling, t.token_limit, t.cost_limit,
	t.several_calls, t.persistence, t.burst, t.fault_mix, t.loops, t.agent_model, t.agent_timeout,
	a.number AS attempt, r.experiment, r.id AS run, a.program, a.templates, a.lane, a.served_model,
	a.finish, a.truncated, a.deviations, a.reported,
	a.level, a.ended, a.error_category, a.turns, a.tool_calls, a.required_tools, a.executed_tools,
	a.coverage, a.order_correct, a.assisted,
	a.adherence, a.given_adherence, a.mistakes, a.failures, a.recovered, a.wasted_calls, a.efficiency, a.extra_calls,
	a.precision, a.unwanted_effects, a.broken_lineage, a.faults_scheduled, a.faults_met,
	a.loop, a.loop_turn, a.best_possible, a.pilot,
	a.score_version, a.fault, a.fault_detail, a.parked, a.unmetered,
	a.requests, a.retried, a.input_tokens, a.output_tokens,
	a.cached_tokens, a.cache_write_tokens, a.reasoning_tokens, a.cost_usd, a.queued_ms, a.working_ms,
	a.started_at, a.finished_at
FROM attempts a CROSS JOIN trials t ON t.id = a.trial CROSS JOIN runs r ON r.seq = a.run;

SELECT * FROM results LIMIT 0;
