package session

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/store"
)

// TestReadersKnowWhatAnOrderTookBack has two parked trials, of which an order takes one back and the run parks
// it again. Whatever clocks say, another process counts as the run does.
func TestReadersKnowWhatAnOrderTookBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := store.Open(ctx, filepath.Join(t.TempDir(), "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	const run = assay.RunID("0123456789abcdef0123456789abcdef")
	if err := db.BeginRun(ctx, store.Experiment{Name: "e"}, store.Run{ID: run, StartedAt: time.Now().UTC()}); err != nil {
		t.Fatal(err)
	}
	trials := []assay.Trial{
		{ID: "00000000000000000000000000000001", Cell: assay.Cell{Model: "m"}},
		{ID: "00000000000000000000000000000002", Cell: assay.Cell{Model: "m"}},
	}
	recount := func() *job.Recount {
		all := func(*assay.Trial) bool { return true }
		return job.RecountOf(job.NewStopper(plan.Budgets{}, plan.StopRules{}), all, slices.Values(trials))
	}
	live := recount()
	live.SetRun(run)
	s := &Session{db: db, id: run, tally: live.Tally}
	var saved []assay.Attempt
	park := func(trial assay.Trial, number int) {
		saved = append(saved, assay.Attempt{
			Trial: trial, Run: run, Number: number, FaultKind: assay.Server, Parked: true,
			FinishedAt: time.Now().Add(-time.Duration(number) * time.Hour),
		})
		live.Begin(trial.Cell)
		live.Save(&saved[len(saved)-1])
	}
	check := func(when string, want int) {
		t.Helper()
		reader := recount()
		for _, a := range saved {
			reader.Add(&a)
		}
		if _, err := Follow(ctx, db, "e", []string{"m"}, reader.Tally); err != nil {
			t.Fatal(err)
		}
		if a, b := live.Standing("m").Parked, reader.Standing("m").Parked; a != want || b != want {
			t.Errorf("%s: the run has %d parked trials, and a reader %d, want %d", when, a, b, want)
		}
	}
	park(trials[0], 1)
	park(trials[1], 1)
	check("at first", 2)
	number := live.Unpark(trials[0].ID)
	s.requeued.add(trials[0].ID, number)
	if err := s.logRequeued(ctx); err != nil {
		t.Fatal(err)
	}
	check("after the order", 1)
	park(trials[0], 2)
	check("parked again", 2)
}
