package store_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// whole returns a closed store with rows of every kind: two runs, outcomes and faults, scores,
// classifications, dictionaries, limits, an import, dropped transcripts and deleted attempts.
func whole(t testing.TB) string {
	t.Helper()
	db, path := create(t, store.Options{})
	for i := range 40 {
		a := outcome(i)
		if i%4 == 0 {
			f := fault(i)
			if err := db.Save(t.Context(), f, longTranscript(i)); err != nil {
				t.Fatal(err)
			}
		}
		if i%10 == 9 {
			a.Model = "doomed"
			a.Trial = assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest},
				a.Setting, 2025, 1)
		}
		a.FinishedAt = a.FinishedAt.Add(time.Duration(i) * time.Second)
		if err := db.Save(t.Context(), a, longTranscript(i)); err != nil {
			t.Fatal(err)
		}
	}
	one, two := outcome(1), outcome(2)
	one.Number, two.Number = 1, 1
	rescore(t, db, rescored(one, better(0)), rescored(two, better(1)))
	for i := range 3 {
		err := db.Classify(t.Context(), store.Classification{
			Trial: outcome(i + 1).ID, Number: 1, Model: "judge", Prompt: "p1", Category: "other",
			Confidence: 0.5, Reason: "why", RuleCategory: "other", At: epoch, Raw: "{}",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Learn(t.Context(), "r1",
		[]store.LaneLimit{{Lane: "l", Bucket: assay.Requests, Value: 60, At: epoch}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Import(t.Context(),
		store.Import{
			Kind: "v3", Name: "old.json", SHA256: strings.Repeat("ab", 32), At: epoch,
			Program: "v1", Body: []byte(`{"a":1}`),
		}); err != nil {
		t.Fatal(err)
	}
	if err := db.EndRun(t.Context(), "r1", []byte(`{"done":40}`)); err != nil {
		t.Fatal(err)
	}
	begin(t, db, "r2")
	for i := range 10 {
		a := outcome(100 + i)
		a.Run = "r2"
		save(t, db, a)
	}
	if _, err := db.Delete(t.Context(), store.Choice{Model: "doomed"}, "v1"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Delete(t.Context(),
		store.Choice{
			Before: epoch.Add(time.Minute + 10*time.Second),
			Levels: []assay.Level{assay.PartialSuccess}, Transcripts: true,
		}, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// verify returns the problems of a store, and the proof.
func verify(t testing.TB, path string) ([]store.Problem, store.Proof) {
	t.Helper()
	db := openReadOnly(t, path)
	var problems []store.Problem
	var seen sync.Map
	proof, err := db.Verify(t.Context(), func(s *store.Stored) []store.Problem {
		seen.Store(s.Attempt.ID, true)
		return nil
	}, func(p store.Problem) { problems = append(problems, p) }, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return problems, proof
}

func TestVerifyFindsNoProblemInIntactStore(t *testing.T) {
	t.Parallel()
	path := whole(t)
	problems, proof := verify(t, path)
	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	want := store.Proof{
		Trials: 46, Attempts: 56, Outcomes: 46, Transcripts: 37, Dropped: 19,
		Deleted: 4,
	}
	if diff := cmp.Diff(want, proof); diff != "" {
		t.Errorf("proof (-want +got):\n%s", diff)
	}
}

// meddle changes a store while its triggers are dropped.
func meddle(t testing.TB, path, text string) {
	t.Helper()
	db := raw(t, path, "PRAGMA foreign_keys = OFF")
	defer db.Close()
	rows, err := db.Query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
	if err != nil {
		t.Fatal(err)
	}
	texts := make(map[string]string)
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		texts[name] = text
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
	}
	execute(t, db, "PRAGMA ignore_check_constraints = ON; PRAGMA writable_schema = ON")
	for name := range texts {
		execute(t, db, "DROP TRIGGER "+name)
	}
	execute(t, db, text)
	for _, text := range texts {
		execute(t, db, text)
	}
	execute(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
}

func execute(t testing.TB, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.Exec(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// patch changes the bytes of a file.
func patch(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace replaces the last occurrence of a text with one of the same length.
func replace(old, with string) func([]byte) []byte {
	return func(b []byte) []byte {
		at := strings.LastIndex(string(b), old)
		if at < 0 || len(old) != len(with) {
			panic("no such bytes: " + old)
		}
		return slices.Concat(b[:at], []byte(with), b[at+len(old):])
	}
}

// A corruption changes an intact store by SQL, or the bytes of its file.
type corruption struct {
	name  string
	sql   string
	bytes func([]byte) []byte
	check string // the check that finds it
}

const someAttempt = "(SELECT id FROM attempts WHERE level <> '' AND id > 20 LIMIT 1)"

var corruptions = []corruption{
	{name: "a level is changed", sql: "UPDATE attempts SET level = 'full_success', error_category = '' WHERE id = " + someAttempt, check: "seal"},
	{name: "an unknown level", sql: "UPDATE attempts SET level = 'success' WHERE id = " +
		someAttempt, check: "row"},
	{name: "an outcome gets a fault", sql: "UPDATE attempts SET fault = 'server' WHERE id = " +
		someAttempt, check: "row"},
	{name: "the model is replaced", sql: "UPDATE trials SET model = 'gpt-4o' WHERE id = (SELECT trial FROM attempts WHERE id = " + someAttempt + ")", check: "identity"},
	{
		name:  "the served model is replaced",
		sql:   "UPDATE attempts SET served_model = 'gpt-4o' WHERE id = " + someAttempt,
		check: "seal",
	},
	{
		name: "a reliability is changed",
		sql:  "UPDATE trials SET reliability = 1.0 WHERE id = (SELECT trial FROM attempts WHERE id = " + someAttempt + ")", check: "identity",
	},
	{
		name: "an attempt is dropped", sql: "DELETE FROM attempts WHERE id = " + someAttempt,
		check: "complete",
	},
	{
		name: "the last attempt is dropped",
		sql:  "DELETE FROM attempts WHERE id = (SELECT max(id) FROM attempts)", check: "complete",
	},
	{
		name: "an attempt and its seal are dropped",
		sql: "DELETE FROM attempt_seals WHERE attempt = " + someAttempt +
			"; DELETE FROM attempts WHERE id = " + someAttempt, check: "complete",
	},
	{name: "an attempt is doubled", sql: `DROP INDEX attempts_settled; CREATE TEMP TABLE c AS SELECT * FROM attempts WHERE id = ` + someAttempt + `;
		UPDATE c SET id = 1000, number = 9; INSERT INTO attempts SELECT * FROM c; DROP TABLE c;
		CREATE INDEX attempts_settled ON attempts (trial) WHERE level <> ''`, check: "settled once"},
	{
		name: "an attempt is moved to another trial",
		sql:  "UPDATE attempts SET trial = (SELECT trial FROM attempts WHERE id = 1), number = 7 WHERE id = (SELECT max(id) FROM attempts WHERE fault <> '')", check: "seal",
	},
	{name: "a trial is dropped", sql: "DELETE FROM trials WHERE id = (SELECT trial FROM attempts WHERE id = " + someAttempt + ")", check: "reference"},
	{name: "a trial is invented", sql: "INSERT INTO trials SELECT zeroblob(16), model, variant, severity, difficulty, task_type, reliability, task, task_digest, repeat, seed, world, protocol, tools, turn_limit, sampling, token_limit, cost_limit, several_calls, persistence, burst, loops FROM trials LIMIT 1", check: "complete"},
	{
		name: "an attempt is invented",
		sql:  "CREATE TEMP TABLE c AS SELECT * FROM attempts WHERE fault <> '' LIMIT 1; UPDATE c SET id = 1000, number = 2, trial = (SELECT trial FROM attempts WHERE id = 30); INSERT INTO attempts SELECT * FROM c; DROP TABLE c", check: "seal",
	},
	{
		name: "attempts change their numbers",
		sql:  "UPDATE attempts SET number = number + 5 WHERE id = " + someAttempt, check: "seal",
	},
	{
		name: "a transcript is dropped", sql: "DELETE FROM transcripts WHERE attempt = 30",
		check: "transcript",
	},
	{
		name: "a transcript is another's",
		sql:  "UPDATE transcripts SET body = (SELECT body FROM transcripts WHERE attempt = 31) WHERE attempt = 30", check: "transcript",
	},
	{
		name:  "a transcript is cut off",
		sql:   "UPDATE transcripts SET body = substr(body, 1, length(body) - 9) WHERE attempt = 30",
		check: "transcript",
	},
	{name: "a dictionary is lost", sql: "DELETE FROM dictionaries", check: "transcript"},
	{name: "a time is changed", sql: "UPDATE attempts SET finished_at = '2031-01-01T00:00:00Z' WHERE id = 30", check: "seal"},
	{name: "tokens are changed", sql: "UPDATE attempts SET input_tokens = input_tokens + 1 WHERE id = 30", check: "seal"},
	{name: "a seal is lost", sql: "DELETE FROM attempt_seals WHERE attempt = 30", check: "seal"},
	{
		name: "a run is renamed", sql: "UPDATE runs SET experiment = 'other' WHERE seq = 1",
		check: "seal",
	},
	{
		name: "a run's experiment is rewritten",
		sql:  `UPDATE runs SET spec = '{"name": "e", "seed": 3}' WHERE seq = 1`, check: "seal",
	},
	{name: "a run is dropped", sql: "DELETE FROM runs WHERE seq = 2", check: "reference"},
	{name: "a score is changed", sql: "UPDATE scores SET body = replace(body, 'partial_success', 'full_success') WHERE id = (SELECT max(id) FROM scores)", check: "seal"},
	{
		name: "a score is dropped", sql: "DELETE FROM scores WHERE id = (SELECT max(id) FROM scores)",
		check: "complete",
	},
	{
		name: "a classification is changed",
		sql:  "UPDATE classifications SET category = 'timeout' WHERE id = 2", check: "seal",
	},
	{
		name: "a seal without an attempt",
		sql:  "INSERT INTO attempt_seals SELECT -5, sum, script FROM attempt_seals WHERE attempt = 30", check: "reference",
	},
	{
		name:  "a transcript is recorded as deleted",
		sql:   "INSERT INTO dropped SELECT 30, 2, script FROM attempt_seals WHERE attempt = 30",
		check: "reference",
	},
	{
		name: "a deletion is rewritten", sql: `UPDATE deletions SET what = '{}' WHERE id = 1`,
		check: "seal",
	},
	{
		name: "a lost attempt is excused",
		sql: `DELETE FROM transcripts WHERE attempt = 30; DELETE FROM attempt_seals WHERE attempt = 30; DELETE FROM attempts WHERE id = 30;
		DELETE FROM trials WHERE id NOT IN (SELECT trial FROM attempts); INSERT INTO deleted SELECT 1, 'attempt', 30, 30`, check: "seal",
	},
	{name: "the record of deleted rows is lost", sql: "DELETE FROM deleted", check: "seal"},
	{name: "rows are excused from seals", sql: "UPDATE unsealed SET last = 1000", check: "seal"},
	{
		name: "a run's count is changed", sql: "UPDATE run_counts SET attempts = attempts - 1",
		check: "seal",
	},
	{name: "a run's count is dropped", sql: "DELETE FROM run_counts", check: "complete"},
	{
		name: "a run's count and its seal are dropped",
		sql:  "DELETE FROM run_counts; DELETE FROM seals WHERE of = 'run_count'", check: "complete",
	},
	{name: "an import is changed", sql: `UPDATE imports SET body = '{"a":2}'`, check: "seal"},
	{name: "a constraint is dropped", sql: "DROP INDEX attempts_settled", check: "schema"},
	{
		name: "a bit of a text is flipped on disk",
		bytes: replace("azure-east/AZURE_KEY/DeepSeek-V3-0324-2",
			"azure-east/AZURE_KEY/DeepSeek-V3-0324-3"), check: "seal",
	},
	{
		name: "the file is cut off", bytes: func(b []byte) []byte { return b[:len(b)-4096] },
		check: "file",
	},
	{
		name:  "the file is cut in half",
		bytes: func(b []byte) []byte { return b[:len(b)/2/4096*4096] }, check: "file",
	},
	{name: "a page is overwritten", bytes: func(b []byte) []byte {
		at := strings.LastIndex(string(b), "azure-east/AZURE_KEY") / 4096 * 4096
		clear(b[at : at+4096])
		return b
	}, check: "file"},
}

func TestVerifyFindsCorruption(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := planted(t, clean, c)
			problems, _ := verify(t, path)
			if !slices.ContainsFunc(problems,
				func(p store.Problem) bool { return p.Check == c.check }) {
				t.Errorf("problems %v, want one of %q", problems, c.check)
			}
			for _, p := range problems {
				if p.Where == "" || p.What == "" || p.Do == "" {
					t.Errorf("%+v lacks a place, a description or advice", p)
				}
			}
			refusesToWrite(t, path, problems, c.sql != "")
		})
	}
}

func planted(t testing.TB, clean string, c corruption) string {
	t.Helper()
	path := t.TempDir() + "/assay.db"
	b, err := os.ReadFile(clean)
	if err == nil {
		err = os.WriteFile(path, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.sql != "" {
		meddle(t, path, c.sql)
	} else {
		patch(t, path, c.bytes)
	}
	return path
}

// refusesToWrite marks a store as damaged, and checks that it can be read but not written.
func refusesToWrite(t *testing.T, path string, problems []store.Problem, rowByRow bool) {
	t.Helper()
	db := openReadOnly(t, path)
	if err := db.MarkDamaged(problems); err != nil {
		t.Fatal(err)
	}
	_, err := store.Open(t.Context(), path, store.Options{})
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "assay recover") {
		t.Errorf("Open() = %v, want ErrDamaged with a hint", err)
	}
	n, outcomes, latest, reports := 0, 0, 0, 0
	db.SkipDamage(func(error) { reports++ })
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Error(err)
			break
		}
		if n++; a.Settles() {
			outcomes++
		}
	}
	for _, err := range db.Outcomes(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		latest++
	}
	settled, err := db.Settled(t.Context())
	if err != nil || latest < outcomes || settled.Len() < outcomes {
		t.Errorf("%d trials are settled, %d outcomes can be read, %d with their details; %v",
			settled.Len(), latest, outcomes, err)
	}
	for _, err := range db.Verdicts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Error(err)
		}
	}
	// Rows are reported one by one, but the rest of a damaged page only once.
	if skipped := db.Skipped(); rowByRow && reports != skipped || (reports == 0) != (skipped == 0) {
		t.Errorf("%d attempts were skipped, and %d reported", db.Skipped(), reports)
	}
	if n == 0 && !strings.Contains(t.Name(), "half") {
		t.Error("no attempt can be read")
	}
}

// Every attempt that is copied from a damaged store is intact, and equal to the one before the
// damage.
func TestRecover(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	before, bare := make(map[string]bool), make(map[string]bool)
	for s, err := range openReadOnly(t, clean).Transcripts(t.Context(),
		store.Filter{AsSaved: true}) {
		if err != nil {
			t.Fatal(err)
		}
		before[contentOf(&s)] = true
		s.Transcript = nil // it may be lost
		bare[contentOf(&s)] = true
	}
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := planted(t, clean, c)
			to := path + "-new"
			var lost []store.Problem
			sum, err := rebuild(&lost, nil).Make(t.Context(), to, path)
			if err != nil {
				t.Fatal(err)
			}
			if problems, _ := verify(t, to); len(problems) > 0 {
				t.Errorf("the copy has problems: %v", problems)
			}
			n, without := 0, 0
			for s, err := range openReadOnly(t, to).Transcripts(t.Context(),
				store.Filter{AsSaved: true}) {
				if err != nil {
					t.Fatal(err)
				}
				n++
				if s.Transcript == nil && bare[contentOf(&s)] && !before[contentOf(&s)] {
					without++
				} else if !before[contentOf(&s)] {
					t.Errorf("%s differs from the attempt in the intact store", s.Attempt.ID)
				}
			}
			if without != sum.Bare {
				t.Errorf("%d attempts came without their transcripts, but %d were reported",
					without, sum.Bare)
			}
			if n != sum.Attempts {
				t.Errorf("%d attempts, but %d were reported", n, sum.Attempts)
			}
			if n < len(before) && len(lost) == 0 {
				t.Errorf("%d of %d attempts are lost, and no problem was reported", len(before)-n,
					len(before))
			}
			if c.sql != "" && !strings.Contains(c.name, "run is") && n < len(before)-2 {
				t.Errorf("only %d of %d attempts were copied: %v", n, len(before), lost)
			}
		})
	}
}

// contentOf returns the content of an attempt without its number.
func contentOf(s *store.Stored) string {
	a := s.Attempt
	a.Number = 0
	text, err := json.Marshal(store.Stored{Attempt: a, Transcript: s.Transcript})
	return fmt.Sprint(string(text), err)
}

func rebuild(lost *[]store.Problem, conflicts *[]store.Conflict) store.Rebuild {
	r := store.Rebuild{
		Progress: func(string, int, int) {},
		Conflict: func(c store.Conflict) {
			if conflicts != nil {
				*conflicts = append(*conflicts, c)
			}
		},
	}
	if lost != nil {
		r.Lost = func(_ string, p store.Problem) { *lost = append(*lost, p) }
	}
	return r
}
