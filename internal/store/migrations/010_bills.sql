-- Tokens that no known way of counting explains, and tokens with an unknown cost. Earlier attempts
-- have zeros, which their seals cover so.

DROP VIEW results;

ALTER TABLE attempts ADD COLUMN uncertain_tokens INTEGER NOT NULL DEFAULT 0
	CHECK (uncertain_tokens >= 0);
ALTER TABLE attempts ADD COLUMN unpriced_tokens INTEGER NOT NULL DEFAULT 0
	CHECK (unpriced_tokens >= 0);

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
	a.score_version, a.fault, a.fault_detail, a.parked, a.unmetered, a.worker,
	a.requests, a.retried, a.input_tokens, a.output_tokens,
	a.cached_tokens, a.cache_write_tokens, a.reasoning_tokens, a.uncertain_tokens, a.unpriced_tokens,
	a.cost_usd, a.queued_ms, a.working_ms,
	a.started_at, a.finished_at
FROM attempts a CROSS JOIN trials t ON t.id = a.trial CROSS JOIN runs r ON r.seq = a.run;

SELECT * FROM results LIMIT 0;
