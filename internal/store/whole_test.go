package store_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// whole returns a copy of a closed store with rows of every kind: two runs, outcomes and faults,
// scores, classifications, costs, dictionaries, an import, dropped transcripts and deleted attempts.
func whole(t testing.TB) string {
	t.Helper()
	wholeOnce.Do(func() {
		b, err := os.ReadFile(newWhole(t))
		must(t, err)
		wholeStore = b
	})
	path := filepath.Join(t.TempDir(), "assay.db")
	must(t, os.WriteFile(path, wholeStore, 0o644))
	return path
}

var (
	wholeOnce  sync.Once
	wholeStore []byte
)

func newWhole(t testing.TB) string {
	t.Helper()
	db, path := create(t)
	for i := range 40 {
		a := outcome(i)
		think(a)
		if i%4 == 0 {
			f := fault(i)
			think(f)
			must(t, db.Save(t.Context(), f, longTranscript(i)))
		}
		if i%10 == 9 {
			a.Model = "doomed"
			a.Trial = assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest},
				a.Setting, 2025, 1)
		}
		a.FinishedAt = a.FinishedAt.Add(time.Duration(i) * time.Second)
		must(t, db.Save(t.Context(), a, longTranscript(i)))
	}
	one, two := outcome(1), outcome(2)
	one.Number, two.Number = 1, 1
	rescore(t, db, rescored(one, better(0)), rescored(two, better(1)))
	must(t, db.Price(t.Context(), []store.Cost{costing(one, 1), costing(two, 2)}))
	for i := range 3 {
		err := db.Classify(t.Context(), store.Classification{
			Trial: outcome(i + 1).ID, Number: 1, Model: "judge", Prompt: "p1", Category: "other",
			Confidence: 0.5, Reason: "why", RuleCategory: "other", At: epoch, Raw: "{}",
		})
		must(t, err)
	}
	must(t, db.Import(t.Context(),
		store.Import{
			Kind: "v3", Name: "old.json", SHA256: strings.Repeat("ab", 32), At: epoch,
			Program: "v1", Body: []byte(`{"a":1}`),
		}))
	must(t, db.EndRun(t.Context(), "r1", []byte(`{"done":40}`)))
	begin(t, db, "r2")
	for i := range 10 {
		a := outcome(100 + i)
		think(a)
		a.Run = "r2"
		save(t, db, a)
	}
	remove(t, db, store.Choice{Model: "doomed"})
	remove(t, db, store.Choice{
		Before: epoch.Add(time.Minute + 10*time.Second),
		Levels: []assay.Level{assay.PartialSuccess}, Transcripts: true,
	})
	must(t, db.Close())
	return path
}

// said returns the message of an error, with the code and the facts of its hint.
func said(err error) string {
	words := func(hint assay.Hint, facts ...any) string { return fmt.Sprint(hint, facts) }
	return assay.Words(words).Of(err)
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
	must(t, err)
	return problems, proof
}

// intact checks that a store has no problems.
func intact(t testing.TB, path string) {
	t.Helper()
	if problems, _ := verify(t, path); len(problems) > 0 {
		t.Errorf("%s has problems: %v", path, problems)
	}
}

// meddle changes a store while its triggers are dropped.
func meddle(t testing.TB, path, text string) {
	t.Helper()
	db := raw(t, path, "PRAGMA foreign_keys = OFF")
	defer db.Close()
	rows, err := db.Query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
	must(t, err)
	texts := make(map[string]string)
	for rows.Next() {
		var name, text string
		must(t, rows.Scan(&name, &text))
		texts[name] = text
	}
	must(t, errors.Join(rows.Err(), rows.Close()))
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
	must(t, err)
	must(t, os.WriteFile(path, change(b), 0o644))
}

// contentOf returns the content of an attempt without its number.
func contentOf(s *store.Stored) string {
	a := s.Attempt
	a.Number = 0
	text, err := json.Marshal(store.Stored{Attempt: a, Transcript: s.Transcript})
	return fmt.Sprint(string(text), err)
}

func planted(t testing.TB, clean string, c corruption) string {
	t.Helper()
	path := t.TempDir() + "/assay.db"
	b, err := os.ReadFile(clean)
	if err == nil {
		err = os.WriteFile(path, b, 0o644)
	}
	must(t, err)
	if c.sql != "" {
		meddle(t, path, c.sql)
	} else {
		patch(t, path, c.bytes)
	}
	return path
}

// A corruption changes an intact store by SQL, or the bytes of its file.
type corruption struct {
	name  string
	check string // the check that finds it
	sql   string
	bytes func([]byte) []byte
}

// recoverTo makes path+"-new" of a damaged store, and checks that it has no problems.
func recoverTo(t testing.TB, path string) (sum store.Copied, lost []store.Problem, to string) {
	t.Helper()
	to = path + "-new"
	sum, err := store.Recover(t.Context(), to, path, quiet)
	must(t, err)
	intact(t, to)
	left, err := openReadOnly(t, to).Left(t.Context())
	must(t, err)
	known := 0
	if left.Missing != nil {
		known = left.Missing.Attempts
	}
	if want := sum.Lost + int(sum.Missing); known != want && sum.Runs > 0 {
		t.Errorf("the new store knows of %d lost attempts, want %d", known, want)
	}
	return sum, sum.LostList, to
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
