package plan_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// The plan of forks has as many that meet the fault as are spared it, each with an ID of its own, and
// comes back from the text that stores keep.
func TestForksArePlanned(t *testing.T) {
	t.Parallel()
	e := load(t, "name: e\nmodels: [a, b]\ntasks_per_type: 2\ntask_types: [basic_task]\nreliabilities: [0.8]\n")
	base := expand(t, e, 3)
	var points []plan.Forked
	for i, trial := range slices.Collect(base.Trials("b")) {
		points = append(points, plan.Forked{
			ForkPoint: assay.ForkPoint{Trial: trial.ID, Attempt: 1, Call: 2 + i, Fault: assay.FaultAfter}, Each: 3,
		})
	}
	text, err := json.Marshal(e.Fork(points, nil))
	if err != nil {
		t.Fatal(err)
	}
	var stored plan.Experiment
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	p := expand(t, &stored, 3)
	if err := p.PlanForks(); err != nil {
		t.Fatal(err)
	}
	ids, spared := make(map[assay.TrialID]bool), 0
	for trial := range p.Trials("b") {
		ids[trial.ID] = true
		if trial.Spared {
			spared++
		}
		at, err := trial.Point()
		if err != nil || !slices.Contains(points, plan.Forked{ForkPoint: at, Each: 3}) || trial.CheckID() != nil {
			t.Errorf("trial %s: %+v, %v", trial.ID, at, err)
		}
	}
	want := 2 * 3 * len(points)
	if len(ids) != want || spared != want/2 || p.Planned("b") != want || p.Planned("a") != 0 {
		t.Errorf("%d trials of which %d are spared, %d planned, and %d of a; want %d",
			len(ids), spared, p.Planned("b"), p.Planned("a"), want)
	}
	n := 0
	for cell, planned := range p.Cells("b") {
		n += planned
		if cell.Model != "b" {
			t.Errorf("cell %+v", cell)
		}
	}
	if limited := p.Limit(5); n != want || limited.Planned("b") != 5 || len(slices.Collect(limited.Trials("b"))) != 5 {
		t.Errorf("cells have %d trials, want %d", n, want)
	}
	some := expand(t, e.Fork(points, map[assay.ForkPoint]bool{points[1].ForkPoint: true}), 3)
	if err := some.PlanForks(); err != nil || some.Planned("b") != 6 {
		t.Errorf("%d forks of one point, %v", some.Planned("b"), err)
	}
	points[0].Trial = "0123456789abcdef0123456789abcdef"
	if err := expand(t, e.Fork(points, nil), 3).PlanForks(); err == nil {
		t.Error("forks of a trial that is not planned were planned")
	}
	if of, ok := plan.ForkedFrom(stored.Name); !ok || of != "e" || plan.RunVerb(stored.Name) != "fork e" {
		t.Errorf("%s is taken for forks of %q", stored.Name, of)
	}
}
