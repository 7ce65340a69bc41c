package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// better returns an outcome of the i-th trial by later rules.
func better(i int) assay.Outcome {
	o := outcome(i).Outcome
	o.Level, o.ErrorCategory, o.ScoreVersion = assay.FullSuccess, "", "assay-2"
	o.Best, o.Pilot = 0.125, pilot()
	return o
}

func rescored(a *assay.Attempt, o assay.Outcome) store.Rescored {
	return store.Rescored{Trial: a.ID, Number: a.Number, Outcome: o, At: epoch, Program: "assay v2"}
}

func rescore(t testing.TB, db *store.DB, outcomes ...store.Rescored) {
	t.Helper()
	must(t, db.Rescore(t.Context(), outcomes))
}

func snapshot(t testing.TB, db *store.DB) string {
	t.Helper()
	name, err := db.Snapshot(t.Context())
	must(t, err)
	return name
}

func TestRescoreRefuses(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	f, a := fault(1), outcome(1)
	save(t, db, f, a)
	good := rescored(a, better(1))
	for name, tc := range map[string]struct {
		spoil func(*store.Rescored)
		want  error
	}{
		"fault":           {func(r *store.Rescored) { r.Number = f.Number }, store.ErrInvalid},
		"unknown attempt": {func(r *store.Rescored) { r.Number = 3 }, store.ErrNotFound},
		"no attempt":      {func(r *store.Rescored) { r.Number = 0 }, store.ErrNotFound},
		"unknown trial": {
			func(r *store.Rescored) { r.Trial = outcome(2).ID },
			store.ErrNotFound,
		},
		"no trial": {func(r *store.Rescored) { r.Trial = "" }, store.ErrInvalid},
		"no level": {
			func(r *store.Rescored) { r.Outcome = assay.Outcome{} },
			store.ErrInvalid,
		},
		"unknown level": {
			func(r *store.Rescored) { r.Outcome.Level = "good" },
			store.ErrInvalid,
		},
		"no end": {func(r *store.Rescored) { r.Outcome.Ended = "" }, store.ErrInvalid},
		"unknown end": {
			func(r *store.Rescored) { r.Outcome.Ended = "bored" },
			store.ErrInvalid,
		},
		"unknown loop": {
			func(r *store.Rescored) { r.Outcome.Loop = "spiral" },
			store.ErrInvalid,
		},
		"adherence 2": {func(r *store.Rescored) { r.Outcome.Adherence = 2 }, store.ErrInvalid},
		"best no number": {
			func(r *store.Rescored) { r.Outcome.Best = math.NaN() },
			store.ErrInvalid,
		},
		"pilot no number": {
			func(r *store.Rescored) { r.Outcome.Pilot.FinalScore = math.NaN() },
			store.ErrInvalid,
		},
		"pilot unknown": {
			func(r *store.Rescored) { r.Outcome.Pilot.Batch = "" },
			store.ErrInvalid,
		},
		"negative wasted": {func(r *store.Rescored) { r.Outcome.Wasted = -1 }, store.ErrInvalid},
		"negative turns":  {func(r *store.Rescored) { r.Outcome.Turns = -1 }, store.ErrInvalid},
		"year 10000": {func(r *store.Rescored) {
			r.At = year10000
		}, store.ErrInvalid},
		"loop before turn": {func(r *store.Rescored) { r.Outcome.LoopTurn = 0 }, store.ErrInvalid},
	} {
		bad := good
		bad.Outcome = better(1)
		tc.spoil(&bad)
		err := db.Rescore(t.Context(), []store.Rescored{good, bad, good})
		if !errors.Is(err, tc.want) ||
			!strings.Contains(err.Error(),
				fmt.Sprintf("rescore attempt %d at trial %s: ", bad.Number, bad.Trial)) {
			t.Errorf("%s: Rescore() = %v, want %v", name, err, tc.want)
		}
	}
	if got := snapshot(t, db); strings.Contains(got, "+") {
		t.Errorf("snapshot %s: a refused call stored something", got)
	}
	rescore(t, db)
	rescore(t, db, good)
	if got := all(t, db, store.Filter{OnlySettled: true}); got[0].Level != assay.FullSuccess {
		t.Errorf("level %s, want the rescored one", got[0].Level)
	}
}

// The test reuses the slice while the writer may still work on a call whose context has ended.
func TestRescoreDoesNotKeepItsArgument(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	a := outcome(1)
	save(t, db, a)
	batch := make([]store.Rescored, 20)
	for range 50 {
		for i := range batch {
			batch[i] = rescored(a, better(1))
		}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if err := db.Rescore(ctx, batch); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		clear(batch)
	}
	for _, got := range all(t, db, store.Filter{}) {
		if diff := cmp.Diff(better(1), got.Outcome); diff != "" &&
			got.ScoreVersion != a.ScoreVersion {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// Each drawn history is a run with saves and rescorings. The test reads all of its states again at
// the end.
func TestSnapshotsNeverChange(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	reader := openReadOnly(t, path)
	text := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{"", "'", "\"", "<&>\u2028", "12", `\`, "a\x00b"}))
	type state struct{ now, saved []assay.Attempt }
	runs, trials, succeeded := 0, 0, make(map[assay.TrialID]bool)
	rapid.Check(t, func(r *rapid.T) {
		runs++
		run := assay.RunID(fmt.Sprint("run-", runs))
		begin(t, db, run)
		var is state
		states := map[string]state{snapshot(t, db): is}
		for range rapid.IntRange(1, 8).Draw(r, "steps") {
			is = state{slices.Clone(is.now), slices.Clone(is.saved)}
			if len(is.now) == 0 || rapid.Bool().Draw(r, "save") {
				trials++
				a := drawAttempt(r)
				a.Run, a.Trial = run,
					assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest},
						a.Setting, int64(trials), trials)
				save(t, db, a)
				is.now, is.saved = append(is.now, *a), append(is.saved, *a)
			}
			var batch []store.Rescored
			for range rapid.IntRange(0, 3).Draw(r, "rescored") {
				a := &is.now[rapid.IntRange(0, len(is.now)-1).Draw(r, "attempt")]
				if a.Settles() {
					a.Outcome = drawOutcome(r, text)
					batch = append(batch, rescored(a, a.Outcome))
				}
			}
			rescore(t, db, batch...)
			states[snapshot(t, db)] = is
		}
		for name, was := range states {
			for asSaved, want := range map[bool][]assay.Attempt{false: was.now, true: was.saved} {
				filter := store.Filter{Run: run, Snapshot: name, AsSaved: asSaved}
				if got := all(t, reader, filter); !reflect.DeepEqual(want, got) { // cmp is slow
					r.Fatalf("%+v (-want +got):\n%s", filter, cmp.Diff(want, got))
				}
			}
		}
		for _, a := range is.now {
			succeeded[a.ID] = a.Level == assay.FullSuccess
		}
	})
	// Verdicts are attempts without their trials.
	want := all(t, reader, store.Filter{})
	for v, err := range reader.Verdicts(t.Context(), store.Filter{}) {
		must(t, err)
		w := want[0]
		if w.Trial = (assay.Trial{ID: w.ID}); !reflect.DeepEqual(w, v) {
			t.Fatalf("verdict (-attempt +verdict):\n%s", cmp.Diff(w, v))
		}
		want = want[1:]
	}
	if len(want) > 0 {
		t.Errorf("%d verdicts are missing", len(want))
	}
	set, err := reader.Succeeded(t.Context())
	must(t, err)
	for id, want := range succeeded {
		if set.Has(id) != want {
			t.Errorf("Succeeded() has trial %s: %v, want %v", id, !want, want)
		}
	}
}

func TestSinceIncludesRescoredAttempts(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	one, two := outcome(1), outcome(2)
	save(t, db, one, two)
	rescore(t, db, rescored(two, better(2)))
	since := snapshot(t, db)
	three := outcome(3)
	save(t, db, three)
	rescore(t, db, rescored(one, better(1)))
	then := snapshot(t, db)
	rescore(t, db, rescored(two, better(2)))
	for name, c := range map[string]struct {
		f    store.Filter
		want []assay.TrialID
	}{
		"since": {store.Filter{Since: since}, []assay.TrialID{one.ID, two.ID, three.ID}},
		"up to another": {
			store.Filter{Since: since, Snapshot: then},
			[]assay.TrialID{one.ID, three.ID},
		},
		"as saved":       {store.Filter{Since: since, AsSaved: true}, []assay.TrialID{three.ID}},
		"between scores": {store.Filter{Since: then}, []assay.TrialID{two.ID}},
	} {
		var got []assay.TrialID
		for _, a := range all(t, db, c.f) {
			got = append(got, a.ID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
