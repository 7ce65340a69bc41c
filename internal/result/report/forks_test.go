package report_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/report"
)

// forksOf returns a point of the n-th task and its forks. Of the forks that meet the fault, and of those
// that are spared it, so many succeed.
func forksOf(n, step int, fault assay.ToolFault, each, met, spared int) (assay.ForkPoint, []assay.Attempt) {
	base := assay.Trial{
		ID: assay.TrialID(fmt.Sprintf("%032x", n)), Task: assay.TaskID(fmt.Sprint("t", n/2)),
		Cell: assay.Cell{Model: "m"}, Repeat: 1,
	}
	at := assay.ForkPoint{Trial: base.ID, Attempt: 1, Call: 2, Fault: fault, Step: step, Steps: 6}
	var all []assay.Attempt
	for i := range each {
		for _, side := range []struct {
			spared bool
			full   int
		}{{false, met}, {true, spared}} {
			a := assay.Attempt{Trial: base.Forked(at, side.spared, i+1), Number: 1}
			a.Level = assay.Failure
			if i < side.full {
				a.Level = assay.FullSuccess
			}
			a.InputTokens = 10
			all = append(all, a)
		}
	}
	return at, all
}

// The figures of forks are those of a calculation by hand.
func TestForksByHand(t *testing.T) {
	t.Parallel()
	const each = 4
	f := &plan.Forks{Of: "e"}
	var all []assay.Attempt
	for i, c := range []struct {
		step        int
		fault       assay.ToolFault
		met, spared int
	}{
		{1, assay.FaultAfter, 1, 3},
		{2, assay.FaultAfter, 2, 4},
		{6, assay.FaultAfter, 0, 2},
		{0, assay.FaultAfter, 3, 3},
		{3, assay.FaultBefore, 4, 4},
		{4, assay.FaultBefore, 4, 4},
	} {
		at, forks := forksOf(i, c.step, c.fault, each, c.met, c.spared)
		f.Points, all = append(f.Points, plan.Forked{ForkPoint: at, Each: each}), append(all, forks...)
	}
	all = all[:len(all)-4] // of the last point, half are pending
	found, err := report.AnalyzeForks("e-forks", f, 48, func(yield func(assay.Attempt, error) bool) {
		for _, a := range all {
			if !yield(a, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if found.Done != 44 || found.Planned != 48 || found.Points != 6 || found.Compared != 6 || found.Spent.InputTokens != 440 {
		t.Errorf("counts: %+v", found)
	}
	before, after := found.Effect("m", assay.FaultBefore), found.Effect("m", assay.FaultAfter)
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
	}
	near("spared", after.RateA, 12./16)
	near("with the fault", after.RateB, 6./16)
	near("lost", *after.Lost.Share, .5)
	near("difference", before.Difference, 0)
	if after.Calls != 4 || after.OfTasks != 2 || before.Calls != 2 || before.OfTasks != 1 || before.Pending != 4 {
		t.Errorf("calls and tasks: %+v, %+v", after.Comparison, before.Comparison)
	}
	text, err := json.Marshal(after)
	if err != nil || !strings.Contains(string(text), `"calls":4,"tasks":2,"method":"t over tasks"`) ||
		strings.Contains(string(text), `"sequences":`) {
		t.Errorf("JSON says otherwise than the text: %s, %v", text, err)
	}
	var places []string
	for _, p := range found.Places {
		places = append(places, fmt.Sprint(p.Fault, " ", p.Place, " ", p.Calls))
	}
	want := "before middle 2, after first third 2, after last third 1, after outside the plan 1"
	if got := strings.Join(places, ", "); got != want {
		t.Errorf("places: %s, want %s", got, want)
	}
}
