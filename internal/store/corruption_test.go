package store_test

import "strings"

const (
	someAttempt = "(SELECT id FROM attempts WHERE level <> '' AND id > 20 LIMIT 1)"
	itsTrial    = "(SELECT trial FROM attempts WHERE id = " + someAttempt + ")"
	lastScore   = "(SELECT max(id) FROM scores)"
	seal30      = "FROM attempt_seals WHERE attempt = 30"
	lose30      = "DELETE FROM transcripts WHERE attempt = 30; DELETE " + seal30 + `;
		DELETE FROM attempts WHERE id = 30;
		DELETE FROM trials WHERE id NOT IN (SELECT trial FROM attempts);`
	someFault  = "CREATE TEMP TABLE c AS SELECT * FROM attempts WHERE fault <> '' LIMIT 1;"
	insertCopy = "INSERT INTO attempts SELECT * FROM c; DROP TABLE c;"
)

var corruptions = []corruption{
	// Attempts.
	{"a level is changed", "seal", `UPDATE attempts SET level = 'full_success', error_category = ''
		WHERE id = ` + someAttempt, nil},
	{"an unknown level", "row", `UPDATE attempts SET level = 'success'
		WHERE id = ` + someAttempt, nil},
	{"an outcome gets a fault", "row", `UPDATE attempts SET fault = 'server'
		WHERE id = ` + someAttempt, nil},
	{"the served model is replaced", "seal", `UPDATE attempts SET served_model = 'gpt-4o'
		WHERE id = ` + someAttempt, nil},
	{"a time is changed", "seal", `UPDATE attempts SET finished_at = '2031-01-01T00:00:00Z'
		WHERE id = 30`, nil},
	{"tokens are changed", "seal", `UPDATE attempts SET input_tokens = input_tokens + 1
		WHERE id = 30`, nil},
	{"cached tokens are lost", "seal", `UPDATE attempts SET cached_tokens = 0, reported = '',
		cache_write_tokens = 0, reasoning_tokens = 0, finish = '', truncated = 0, deviations = ''
		WHERE id = 30`, nil},
	{"a deviation is invented", "seal", `UPDATE attempts SET deviations = 'no temperature, no seed'
		WHERE id = 30`, nil},
	{"attempts change their numbers", "seal", `UPDATE attempts SET number = number + 5
		WHERE id = ` + someAttempt, nil},
	{"an attempt is moved to another trial", "seal", `UPDATE attempts
		SET trial = (SELECT trial FROM attempts WHERE id = 1), number = 7
		WHERE id = (SELECT max(id) FROM attempts WHERE fault <> '')`, nil},
	{"an attempt is dropped", "complete", "DELETE FROM attempts WHERE id = " + someAttempt, nil},
	{"the last attempt is dropped", "complete", `DELETE FROM attempts
		WHERE id = (SELECT max(id) FROM attempts)`, nil},
	{"an attempt and its seal are dropped", "complete", `DELETE FROM attempt_seals
		WHERE attempt = ` + someAttempt + "; DELETE FROM attempts WHERE id = " + someAttempt, nil},
	{"an attempt is doubled", "settled once", `DROP INDEX attempts_settled;
		CREATE TEMP TABLE c AS SELECT * FROM attempts WHERE id = ` + someAttempt + `;
		UPDATE c SET id = 1000, number = 9;` + insertCopy + `
		CREATE INDEX attempts_settled ON attempts (trial, round) WHERE level <> ''`, nil},
	{"an attempt is invented", "seal", someFault + `UPDATE c SET id = 1000, number = 2,
		trial = (SELECT trial FROM attempts WHERE id = 30);` + insertCopy, nil},
	{"a seal is lost", "seal", "DELETE " + seal30, nil},
	{"a seal without an attempt", "reference", `INSERT INTO attempt_seals
		SELECT -5, sum, script ` + seal30, nil},

	// Trials.
	{"the model is replaced", "identity", `UPDATE trials SET model = 'gpt-4o'
		WHERE id = ` + itsTrial, nil},
	{"a reliability is changed", "identity", `UPDATE trials SET reliability = 1.0
		WHERE id = ` + itsTrial, nil},
	{"a trial is dropped", "reference", "DELETE FROM trials WHERE id = " + itsTrial, nil},
	{"a trial is invented", "complete", `INSERT INTO trials (id, model, variant,
		severity, difficulty, task_type, reliability, task, task_digest, repeat, seed, world,
		protocol, tools, turn_limit, sampling, token_limit, cost_limit, several_calls, persistence,
		burst, loops, call_limit, fault_mix, agent_model, agent_timeout, user_model)
		SELECT zeroblob(16), model, variant,
		severity, difficulty, task_type, reliability, task, task_digest, repeat, seed, world,
		protocol, tools, turn_limit, sampling, token_limit, cost_limit, several_calls, persistence,
		burst, loops, call_limit, fault_mix, agent_model, agent_timeout, user_model FROM trials LIMIT 1`, nil},

	// Transcripts.
	{"a transcript is dropped", "transcript", "DELETE FROM transcripts WHERE attempt = 30", nil},
	{"a transcript is another's", "transcript", `UPDATE transcripts
		SET body = (SELECT body FROM transcripts WHERE attempt = 31) WHERE attempt = 30`, nil},
	{"a transcript is cut off", "transcript", `UPDATE transcripts
		SET body = substr(body, 1, length(body) - 9) WHERE attempt = 30`, nil},
	{"a transcript is recorded as deleted", "reference", `INSERT INTO dropped
		VALUES (30, 2)`, nil},
	{"a dictionary is lost", "transcript", "DELETE FROM dictionaries", nil},

	// Runs and other rows.
	{"a run is renamed", "seal", "UPDATE runs SET experiment = 'other' WHERE seq = 1", nil},
	{"a run's experiment is rewritten", "seal", `UPDATE specs SET spec = '{"name": "e", "seed": 3}'
		WHERE seq = 1`, nil},
	{"a run's experiment is dropped", "complete", "DELETE FROM specs WHERE seq = 2", nil},
	{"a run's experiment and its seal are dropped", "complete", `DELETE FROM specs WHERE seq = 2;
		DELETE FROM seals WHERE of = 'specs' AND id = 2`, nil},
	{"a run is dropped", "reference", "DELETE FROM runs WHERE seq = 2", nil},
	{"a run's count is changed", "seal", "UPDATE ends SET attempts = attempts - 1", nil},
	{"a run's end is changed", "seal", "UPDATE ends SET finished_at = '2020-01-01T00:00:00Z'", nil},
	{"a run's end is dropped", "complete", "DELETE FROM ends", nil},
	{"a score is changed", "seal", `UPDATE scores
		SET body = replace(body, 'partial_success', 'full_success') WHERE id = ` + lastScore, nil},
	{"a score is dropped", "complete", "DELETE FROM scores WHERE id = " + lastScore, nil},
	{"a classification is changed", "seal", `UPDATE classifications SET category = 'timeout'
		WHERE id = 2`, nil},
	{"an import is changed", "seal", `UPDATE imports SET body = '{"a":2}'`, nil},
	{"a constraint is dropped", "schema", "DROP INDEX attempts_settled", nil},

	// Records that excuse missing rows or seals.
	{"a deletion is rewritten", "seal", `UPDATE deletions SET what = '{}' WHERE id = 1`, nil},
	{"a lost attempt is excused", "seal", lose30 + `UPDATE deletions
		SET what = json_set(what, '$.rows.attempts[#]', json('{"first":30,"last":30}'))
		WHERE id = 1`, nil},
	{"a lost attempt is excused by a new record", "complete", lose30 + `INSERT INTO deletions
		SELECT 9, at, program, '{"rows":{"attempts":[{"first":30,"last":30}]}}'
		FROM deletions LIMIT 1`, nil},
	{"the record of deleted rows is lost", "complete", "DELETE FROM deletions WHERE id = 1", nil},

	// Bytes of the file.
	{"a bit of a text is flipped on disk", "seal", "", replace(
		"azure-east/AZURE_KEY/DeepSeek-V3-0324-2", "azure-east/AZURE_KEY/DeepSeek-V3-0324-3")},
	{"the file is cut off", "file", "", func(b []byte) []byte { return b[:len(b)-4096] }},
	{"a quarter of the file is lost", "file", "", func(b []byte) []byte {
		return b[:len(b)*3/4/4096*4096] // the schema takes up the first half of this small file
	}},
	{"a page is overwritten", "file", "", clearLastAttempts},
}

// clearLastAttempts overwrites the last page with attempts.
func clearLastAttempts(b []byte) []byte {
	at := strings.LastIndex(string(b), "azure-east/AZURE_KEY") / 4096 * 4096
	clear(b[at : at+4096])
	return b
}
