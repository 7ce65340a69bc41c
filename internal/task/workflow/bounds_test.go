//go:build !race

package workflow_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestBestKnown checks when the planner's chance is that of the best policy. It does not know
// tokens, dollars and loops, but never searches. With own tools, it knows what has happened although
// no answer may say so.
func TestBestKnown(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{
		{Name: "a"},
		{Name: "lossy", Faults: "after=1", Reliability: .9},
		{Name: "slow", Faults: "slow=1"},
		{Name: "effect", Effect: "changes something"},
	})
	plan := func(tools ...string) *assay.Task {
		task := &assay.Task{Required: tools, Judge: &assay.Judge{}, Reference: &assay.Reference{}}
		for _, name := range tools {
			task.Reference.Calls = append(task.Reference.Calls, assay.Expected{Tool: name})
		}
		return task
	}
	own := assay.Setting{World: "own-1"}
	for name, tc := range map[string]struct {
		setting     assay.Setting
		task        *assay.Task
		reliability float64
		faults      string
		want        bool
	}{
		"plain":                     {assay.Setting{World: world.Assay1Name}, plan("a"), .8, "", true},
		"lists what has happened":   {assay.Setting{World: world.Assay1Name}, plan("a"), .8, "after=0.5,stale=0.5", true},
		"tokens":                    {assay.Setting{World: world.Assay1Name, Tokens: 9}, plan("a"), 1, "", false},
		"dollars":                   {assay.Setting{World: world.PilotName, USD: .1}, plan("a"), 1, "", false},
		"stops at a loop":           {assay.Setting{World: world.Assay1Name, Loops: "repeat=3! search=3"}, plan("a"), 1, "", false},
		"stops at a search":         {assay.Setting{World: world.Assay1Name, Loops: "repeat=3 search=3!"}, plan("a"), 1, "", true},
		"no plan":                   {own, &assay.Task{Judge: &assay.Judge{}}, 1, "", false},
		"own tools":                 {own, plan("a"), .8, "", true},
		"late answers":              {own, plan("a"), .8, "before=0.5,slow=0.5", true},
		"lost answers":              {own, plan("a"), .8, "after=0.5,before=0.5", false},
		"old answers":               {own, plan("a"), .8, "stale=1", false},
		"parts of answers":          {own, plan("a"), .8, "wrong_shape=1", false},
		"wrong answers":             {own, plan("a"), .8, "before=0.5,wrong_value=0.5", false},
		"wrong, but only effects":   {own, plan("effect"), .8, "partial=0.5,wrong_value=0.5", true},
		"tools that are down":       {own, plan("a"), .8, "before=0.5,down=0.5", true},
		"renamed parameters":        {own, plan("a"), .8, "drift=1", true},
		"throttled tools":           {own, plan("a"), .8, "throttled=1", false},
		"lost, but never failing":   {own, plan("a"), 1, "after=1", true},
		"a tool that loses answers": {own, plan("a", "lossy"), 1, "", false},
		"it is not in the plan":     {own, plan("a"), 1, "", true},
		"a tool with its own mix":   {own, plan("slow"), .5, "after=1", true},
		"an environment":            {assay.Setting{World: "openenv"}, plan("a"), .8, "after=1", false},
	} {
		trial := &assay.Trial{Cell: assay.Cell{Reliability: tc.reliability, Faults: tc.faults}, Setting: tc.setting}
		if got := workflow.BestKnown(catalog, trial, tc.task); got != tc.want {
			t.Errorf("%s: known %v, want %v", name, got, tc.want)
		}
	}
}

// TestDriftCostsOneCall checks that an agent that reads the error of a renamed parameter has the chances
// that it has after a call that did not happen.
func TestDriftCostsOneCall(t *testing.T) {
	t.Parallel()
	catalog := chain()
	for _, name := range []string{world.Assay1Name, "own-1"} {
		success := make(map[string]float64)
		for _, faults := range []string{"", "drift=1", "after=0.3,before=0.7", "after=0.3,drift=0.7"} {
			trial := assay.Trial{
				Cell:    assay.Cell{Reliability: .7, Faults: faults},
				Setting: assay.Setting{World: name, Turns: 9, Calls: 6},
			}
			success[faults] = workflow.Solve(catalog, workflow.ProblemOf(&trial, []string{"c", "e", "b"})).Success()
		}
		if success["drift=1"] != success[""] || success["after=0.3,drift=0.7"] != success["after=0.3,before=0.7"] ||
			!(success[""] > 0 && success[""] < 1) {
			t.Errorf("%s: %v", name, success)
		}
	}
}
