package session_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

// recorder is a display that remembers the start of a run.
type recorder struct{ starts []session.Start }

func (r *recorder) Start(s session.Start)                  { r.starts = append(r.starts, s) }
func (*recorder) Show(ctx context.Context, _ session.Live) { <-ctx.Done() }
func (*recorder) Stopping()                                {}
func (*recorder) NoLog(string)                             {}

// quickstart returns the job of the first four trials of each model of the quickstart, an empty
// store, and a function that runs the job.
func quickstart(t *testing.T, models ...string) (
	j *job.Job, db *store.DB, run func(session.Display, ...session.Observer) *session.Summary,
) {
	t.Helper()
	e := plan.Quickstart()
	if len(models) > 0 {
		if err := e.SetModels(models); err != nil {
			t.Fatal(err)
		}
	}
	j, err := job.Open(t.Context(), e, 4)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	path := filepath.Join(t.TempDir(), "s.db")
	if db, err = store.Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return j, db, func(d session.Display, all ...session.Observer) *session.Summary {
		t.Helper()
		s, err := session.New(j, session.Options{
			Store: path, Program: "test", Host: "here", Display: d, Env: os.LookupEnv, Observers: all,
		})
		if err != nil {
			t.Fatal(err)
		}
		sum, err := s.Run(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
}

// TestSummaryIsStoredWithRun runs a job without a command line. The returned summary equals the
// stored one, and a second run finds all trials done.
func TestSummaryIsStoredWithRun(t *testing.T) {
	t.Parallel()
	j, db, run := quickstart(t, "sim/mute", "sim/listed")
	var shown recorder
	first, second := run(&shown), run(&shown)
	if first.Planned != 8 || first.Done != 8 || first.Settled != 8 || first.Unfinished() != 0 {
		t.Errorf("first run: %+v", first)
	}
	if second.Done != 8 || second.Settled != 0 || second.Requests != 0 || second.Run != "" {
		t.Errorf("second run: %+v", second)
	}
	if len(shown.starts) != 2 || shown.starts[0].Pending != 8 || shown.starts[1].Pending != 0 {
		t.Errorf("starts %+v", shown.starts)
	}

	runs, err := db.Runs(t.Context(), j.Experiment.Name)
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, error %v; want 1", len(runs), err)
	}
	stored, err := session.SummaryOf(runs[0])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(toJSON(t, first), toJSON(t, stored)); diff != "" {
		t.Errorf("summary (-returned +stored):\n%s", diff)
	}
}

// TestStatusCountsWholeExperiment checks that the status covers all planned trials although a
// limit left most of them pending.
func TestStatusCountsWholeExperiment(t *testing.T) {
	t.Parallel()
	j, db, run := quickstart(t)
	sum := run(new(recorder))
	experiments, err := db.Experiments(t.Context())
	if err != nil || len(experiments) != 1 {
		t.Fatalf("%d experiments, error %v; want 1", len(experiments), err)
	}
	status, err := session.StatusOf(t.Context(), db, experiments[0])
	if err != nil {
		t.Fatal(err)
	}
	if status.Planned != 588 || status.Done != sum.Done || status.Pending != 588-sum.Done {
		t.Errorf("%d planned, %d done, %d pending", status.Planned, status.Done, status.Pending)
	}
	names := make([]string, 0, len(status.Models))
	for _, m := range status.Models {
		names = append(names, m.Model)
	}
	if !slices.Equal(names, j.Experiment.Models) {
		t.Errorf("models %v, want %v", names, j.Experiment.Models)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
