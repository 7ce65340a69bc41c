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

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// whole returns a copy of a closed store with rows of every kind: two runs, outcomes and faults,
// scores, classifications, dictionaries, an import, dropped transcripts and deleted attempts.
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

func TestVerifyFindsCorruption(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := planted(t, clean, c)
			problems, _ := verify(t, path)
			found := func(p store.Problem) bool { return p.Check == c.check }
			if !slices.ContainsFunc(problems, found) {
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
	must(t, err)
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
	must(t, db.MarkDamaged(problems))
	_, err := store.Open(t.Context(), path)
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "assay store recover") {
		t.Errorf("Open() = %v, want ErrDamaged with a hint", err)
	}
	n, reports := 0, 0
	done := make(map[assay.TrialID]bool)
	db.SkipDamage(func(error) { reports++ })
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Error(err)
			break
		}
		if n++; a.Settles() {
			done[a.ID] = true
		}
	}
	settled, err := db.Settled(t.Context())
	if err != nil || settled.Len() < len(done) {
		t.Errorf("%d trials are settled, the outcomes of %d can be read; %v",
			settled.Len(), len(done), err)
	}
	// Rows are reported one by one, but the rest of a damaged page only once.
	skipped := db.Skipped() + db.SkippedRows()
	if rowByRow && reports != skipped || (reports == 0) != (skipped == 0) {
		t.Errorf("%d rows were skipped, and %d reported", skipped, reports)
	}
	if n == 0 && !strings.Contains(t.Name(), "quarter") {
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
		must(t, err)
		before[contentOf(&s)] = true
		s.Transcript = nil // it may be lost
		bare[contentOf(&s)] = true
	}
	for i, c := range corruptions {
		if testing.Short() && i%3 > 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := planted(t, clean, c)
			sum, lost, to := recoverTo(t, path)
			n, without := 0, 0
			for s, err := range openReadOnly(t, to).Transcripts(t.Context(),
				store.Filter{AsSaved: true}) {
				must(t, err)
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
				t.Errorf("%d of %d attempts are lost, and no problem was reported",
					len(before)-n, len(before))
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

// recoverTo makes path+"-new" of a damaged store, and checks that it has no problems.
func recoverTo(t testing.TB, path string) (sum store.Copied, lost []store.Problem, to string) {
	t.Helper()
	to = path + "-new"
	sum, err := store.Recover(t.Context(), to, path, quiet)
	must(t, err)
	intact(t, to)
	return sum, sum.LostList, to
}
