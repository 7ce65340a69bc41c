package store_test

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

func TestSchemaKeepsTheRecord(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	save(t, db, fault(1), outcome(1))
	must(t, db.EndRun(t.Context(), "r1", nil))
	keepsTheRecord(t, db, path)
}

// keepsTheRecord ends run r1 after a fault and an outcome of a trial, closes the store, and tries
// to change its rows.
func keepsTheRecord(t *testing.T, db *store.DB, path string) {
	t.Helper()
	var settled *assay.Attempt
	for a, err := range db.Attempts(t.Context(), store.Filter{OnlySettled: true}) {
		if settled = &a; err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		db.Rescore(t.Context(), []store.Rescored{rescored(settled, better(0))}),
		db.Classify(t.Context(), opinion(settled)),
		db.Price(t.Context(), []store.Cost{costing(settled, 1)}),
		db.Log(t.Context(), store.Control{Run: "r1", At: epoch, Command: json.RawMessage("{}")}),
		db.Close())
	must(t, err)
	shell := raw(t, path, "PRAGMA foreign_keys = ON; INSERT INTO dictionaries (bytes, body) VALUES (1, x'')")
	// INSERT statements begin and end with these.
	const (
		columns = `program, templates, lane, served_model, level, ended, stop, cause, error_category, turns,
			tool_calls, required_tools, executed_tools, coverage, order_correct, assisted,
			score_version, fault, fault_detail, parked, requests, retried, input_tokens,
			output_tokens, cost_usd, queued_ms, working_ms, started_at, finished_at`
		attempt        = "INSERT INTO attempts (trial, number, run, " + columns + ") SELECT "
		ofOutcome      = ", " + columns + " FROM attempts WHERE level <> '' LIMIT 1"
		ofFault        = ", " + columns + " FROM attempts WHERE fault <> '' LIMIT 1"
		score          = "INSERT INTO scores (attempt, scored_at, program, body) SELECT "
		classification = "INSERT INTO classifications SELECT NULL, "
		reason         = `, reason, rule_category, classified_at, 0, 0, 0, raw
			FROM classifications c`
	)
	for _, text := range []string{
		"UPDATE attempts SET level = 'full_success' WHERE level <> ''",
		"DELETE FROM attempts",
		"UPDATE trials SET model = 'another'",
		"DELETE FROM trials",
		"UPDATE transcripts SET body = x''",
		"DELETE FROM transcripts",
		"UPDATE runs SET program = '' WHERE id = 'r1'",
		"UPDATE specs SET spec = '{}' WHERE run = 'r1'",
		"UPDATE ends SET summary = '{}' WHERE run = 'r1'",
		"DELETE FROM ends",
		"DELETE FROM runs",
		"UPDATE controls SET command = '[]'",
		"DELETE FROM controls",
		"UPDATE dictionaries SET body = x''",
		"DELETE FROM dictionaries",
		"INSERT INTO dictionaries VALUES (0, 1, x'')",
		"UPDATE costs SET cost_usd = 0",
		"DELETE FROM costs",
		"UPDATE scores SET program = ''",
		"DELETE FROM scores",
		score + "a.id, scored_at, s.program, body FROM scores s, attempts a WHERE fault <> ''",
		score + "9999, scored_at, program, body FROM scores",
		score + "attempt, scored_at, program, '{}' FROM scores",
		score + "attempt, scored_at, program, json_set(body, '$.level', 'good') FROM scores",
		"UPDATE classifications SET category = 'other'",
		"DELETE FROM classifications",
		classification + "a.id, c.model, prompt, category, confidence" + reason +
			", attempts a WHERE fault <> ''",
		classification + "9999, model, prompt, category, confidence" + reason,
		classification + "attempt, model, prompt, category, confidence" + reason,
		classification + "attempt, 'm', prompt, category, 2" + reason,
		"INSERT INTO controls (run, at, command) VALUES (99, '', '{}')",
		attempt + "trial, 93, run" + ofOutcome,
		attempt + "trial, 1, run" + ofFault,
		attempt + "zeroblob(16), 1, run" + ofFault,
		attempt + "trial, 94, 99" + ofFault,
		attempt + "trial, 95, run" + strings.Replace(ofFault, "ended", "'bored'", 1),
		`INSERT INTO trials (id, model, variant, severity, difficulty, task_type,
			reliability, task, task_digest, repeat, seed, world, protocol, tools, turn_limit,
			sampling, token_limit, cost_limit, several_calls, persistence, burst, loops, call_limit,
			fault_mix, agent_model, agent_timeout, user_model) SELECT x'00', model, variant, severity, difficulty, task_type,
			reliability, task, task_digest, repeat, seed, world, protocol, tools, turn_limit,
			sampling, token_limit, cost_limit, several_calls, persistence, burst, loops, call_limit,
			fault_mix, agent_model, agent_timeout, user_model
			FROM trials LIMIT 1`,
	} {
		_, err := shell.Exec(text)
		if primary(err) != sqlite3.SQLITE_CONSTRAINT {
			t.Errorf("%v, want a constraint that refuses: %s", err, text)
			continue
		}
		// Other constraints may refuse this too, but not for every row.
		if !strings.HasPrefix(text, "INSERT") && !strings.Contains(err.Error(), "are never") {
			t.Errorf("%v, want a trigger that refuses: %s", err, text)
		}
	}
}

// primary returns the result code of SQLite in err's chain, or 0.
func primary(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// Other versions of SQLite find no error in a store, whether or not its run has ended.
func TestOtherSQLite(t *testing.T) {
	t.Parallel()
	const check = `import sqlite3, sys
if sqlite3.sqlite_version_info < (3, 38):
    sys.exit("SQLite " + sqlite3.sqlite_version + " is too old")
for path in sys.argv[1:]:
    print(sqlite3.connect(path).execute("PRAGMA integrity_check").fetchall())`
	db, unfinished := create(t)
	save(t, db, outcome(1))
	must(t, db.Close())
	var complaint strings.Builder
	cmd := exec.CommandContext(t.Context(), "python3", "-c", check, unfinished, whole(t))
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("no other SQLite: %v %s", err, &complaint)
	}
	if want := strings.Repeat("[('ok',)]\n", 2); string(out) != want {
		t.Errorf("%s", out)
	}
}
