package job_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// A world is an experiment with runs, trial by trial, for comparison with tallies.
type world struct {
	rules  plan.StopRules
	trials []assay.Trial
	stored []assay.Attempt
	run    assay.RunID
	now    time.Time               // of a clock that people set
	orders []map[assay.TrialID]int // requeues of everything in the run
	closed map[string]bool

	live                 *job.Tally
	done, flying, parked map[assay.TrialID]bool
}

func (w *world) recount() *job.Recount {
	all := func(*assay.Trial) bool { return true }
	return job.RecountOf(job.NewStopper(plan.Budgets{}, w.rules), all, slices.Values(w.trials))
}

// begin begins a run with what the store has.
func (w *world) begin() {
	w.run = assay.RunID(fmt.Sprintf("run %d", len(w.run)+len(w.stored)))
	w.orders, w.closed = nil, make(map[string]bool)
	w.flying, w.parked = make(map[assay.TrialID]bool), make(map[assay.TrialID]bool)
	w.live = w.read().Tally
}

// read counts what the store has, like a process that does not run anything.
func (w *world) read() *job.Recount {
	r := w.recount()
	for _, a := range w.stored {
		a.Trial = assay.Trial{ID: a.ID} // as in the verdicts of a store
		r.Add(&a)
	}
	r.SetRun(w.run)
	for _, parked := range w.orders {
		r.Requeue(parked)
	}
	for m := range w.closed {
		r.Close(m, "why")
	}
	return r
}

// save ends an attempt in flight.
func (w *world) save(t *rapid.T, trial assay.Trial) {
	w.now = w.now.Add(time.Duration(rapid.IntRange(-3, 9).Draw(t, "minutes")) * time.Minute)
	a := assay.Attempt{Trial: trial, Run: w.run, Number: 1, FinishedAt: w.now, Spend: assay.NewSpend(assay.Usage{InputTokens: 3}, .01)}
	for _, earlier := range w.stored {
		if earlier.ID == trial.ID {
			a.Number++
		}
	}
	a.Retried = map[assay.FaultKind]int{assay.RateLimited: rapid.IntRange(0, 2).Draw(t, "retried")}
	a.Reported = rapid.SampledFrom([]string{"", "effort=high", "effort=low"}).Draw(t, "reported")
	switch rapid.SampledFrom([]string{"failure", "failure", "full", "partial", "fault", "harness", "parked", "paid"}).Draw(t, "end") {
	case "full":
		a.Level = assay.FullSuccess
	case "partial":
		a.Level = assay.PartialSuccess
	case "failure":
		a.Level = assay.Failure
	case "fault":
		a.FaultKind = assay.Timeout
	case "harness":
		a.FaultKind = assay.Harness
	case "parked":
		why := rapid.SampledFrom([]string{"it broke", "it broke again"}).Draw(t, "why")
		a.FaultKind, a.Parked, a.FaultDetail = assay.Server, true, why+"\nin two lines"
		w.parked[a.ID] = true
	case "paid":
		a.FaultKind = assay.Interrupted
	}
	if a.Settles() {
		w.done[a.ID] = true
	}
	delete(w.flying, a.ID)
	w.stored = append(w.stored, a)
	w.live.Save(&a)
	if a.OnlyCosts() {
		w.live.Drop(a.Cell)
	}
}

// TestTallyOfARunIsThatOfItsStore lets random runs begin, end, park, requeue, close models and meet stop
// rules. At each moment every trial is in exactly one state, and whenever nothing is in flight, the
// run and a reader of its store say the same, also after the next run has begun.
func TestTallyOfARunIsThatOfItsStore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &world{done: make(map[assay.TrialID]bool)}
		if rapid.Bool().Draw(t, "rules") {
			w.rules = plan.StopRules{
				Hopeless:  &plan.StopRule{After: 5, Below: .6, Per: plan.PerCell},
				Malformed: &plan.StopRule{After: 8, Above: .5, Per: plan.PerModel},
			}
		}
		for i := range rapid.IntRange(1, 60).Draw(t, "trials") {
			c := cell(fmt.Sprint("m", i%2), fmt.Sprint("v", i%3))
			w.trials = append(w.trials, assay.Trial{ID: assay.TrialID(fmt.Sprintf("%032x", i+1)), Cell: c, Setting: assay.Setting{Sampling: assay.Sampling{Effort: "high"}}})
		}
		w.begin()
		for range rapid.IntRange(1, 150).Draw(t, "events") {
			trial := rapid.SampledFrom(w.trials).Draw(t, "trial")
			id := trial.ID
			switch rapid.IntRange(0, 12).Draw(t, "event") {
			case 0, 1, 2, 3:
				if !w.done[id] && !w.flying[id] && !w.parked[id] && !w.closed[trial.Model] {
					w.flying[id] = true
					w.live.Begin(trial.Cell)
				}
			case 4, 5, 6, 7, 8:
				if w.flying[id] {
					w.save(t, trial)
				}
			case 9:
				if w.flying[id] {
					delete(w.flying, id)
					w.live.Drop(trial.Cell)
				}
			case 10:
				order := make(map[assay.TrialID]int)
				for id := range w.parked {
					order[id] = w.live.Unpark(id)
				}
				w.orders = append(w.orders, order)
				clear(w.parked)
			case 11:
				if rapid.IntRange(0, 5).Draw(t, "closes") == 0 {
					w.closed[trial.Model] = true
					w.live.Close(trial.Model, "why")
				}
			case 12:
				if len(w.flying) == 0 && rapid.IntRange(0, 3).Draw(t, "begins") == 0 {
					w.begin()
				}
			}
			w.check(t)
		}
	})
}

func (w *world) check(t *rapid.T) {
	t.Helper()
	var planned, done, flying [2]int
	for i, trial := range w.trials {
		planned[i%2]++
		if w.done[trial.ID] {
			done[i%2]++
		}
		if w.flying[trial.ID] {
			flying[i%2]++
		}
	}
	stored := w.read()
	skipped := 0
	for i, m := range []string{"m0", "m1"} {
		s := w.live.Standing(m)
		if s.Planned != planned[i] || s.Done != done[i] || s.InFlight != flying[i] {
			t.Fatalf("%s: %+v, want %d planned, %d done, %d in flight", m, s, planned[i], done[i], flying[i])
		}
		if s.Pending < s.InFlight || s.Parked < 0 || s.Skipped < 0 ||
			s.Done+s.Pending+s.Parked+s.Skipped != s.Planned {
			t.Fatalf("%s: the states do not add up: %+v", m, s)
		}
		skipped += s.Skipped
		if len(w.flying) > 0 {
			continue
		}
		if diff := cmp.Diff(s, stored.Standing(m)); diff != "" {
			t.Fatalf("%s (-run +store):\n%s", m, diff)
		}
		if diff := cmp.Diff(w.live.InRun(m), stored.InRun(m)); diff != "" {
			t.Fatalf("%s in the run (-run +store):\n%s", m, diff)
		}
		all := stored.InRuns(m)
		if diff := cmp.Diff(w.live.InRuns(m), all); diff != "" {
			t.Fatalf("%s in all runs (-run +store):\n%s", m, diff)
		}
		if all.Settled() != s.Done || all.Outcomes[assay.FullSuccess] != s.Full || all.Faulted() != s.Attempts() {
			t.Fatalf("%s: %+v in all runs, but %+v", m, all, s)
		}
	}
	for _, s := range w.live.Stops() {
		skipped -= s.Skipped
	}
	if skipped != 0 {
		t.Fatalf("stops %+v skip %d fewer trials", w.live.Stops(), skipped)
	}
	if len(w.flying) > 0 {
		return
	}
	if diff := cmp.Diff(w.live.Stops(), stored.Stops()); diff != "" {
		t.Fatalf("stops (-run +store):\n%s", diff)
	}
	if diff := cmp.Diff(w.live.Parked(), stored.Parked()); diff != "" {
		t.Fatalf("parked (-run +store):\n%s", diff)
	}
	parked := 0
	for _, n := range stored.ParkedFor() {
		parked += n
	}
	if a, b := w.live.Standing("m0"), w.live.Standing("m1"); parked != a.Parked+b.Parked {
		t.Fatalf("%v trials are parked for a reason, want %d", stored.ParkedFor(), a.Parked+b.Parked)
	}
}
