//go:build !race

package workflow_test

import (
	"math"
	"reflect"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestObeyIsExact compares the chances of obedient agents in assay-1 with those that follow from
// the number of calls that each step takes, for the right plan and for one with repeated steps.
func TestObeyIsExact(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog(library.Tools())
	i, helped, hurt := 0, 0, 0
	for task := range library.Generate() {
		if i++; i%29 > 0 || testing.Short() && i%87 > 0 {
			continue
		}
		for _, severity := range []string{assay.Light, assay.Severe} {
			if !workflow.Applies(
				catalog, world.Assay1Name, &task, assay.RedundantOperations, severity,
			) {
				continue
			}
			trial := perfect()
			trial.Variant, trial.Severity = "flawed_redundant_operations", severity
			trial.Reliability, trial.Calls, trial.Turns = .8, 10, 15
			plan := workflow.For(catalog, trial.World, &task)
			flawed, _ := workflow.Flawed(
				catalog, plan, &task, assay.RedundantOperations, severity, trial.Seed)
			shown, right := workflow.Obey(catalog, trial, &task)
			calls := workflow.ProblemOf(trial, task.Required).Calls
			for _, c := range []struct {
				plan workflow.Plan
				got  workflow.Obeyed
			}{{plan, right}, {flawed, shown}} {
				want := workflow.Obeyed{
					Once:     obedient(catalog, c.plan.Steps, .8, calls, false),
					Retrying: obedient(catalog, c.plan.Steps, .8, calls, true),
				}
				if math.Abs(c.got.Once-want.Once) > 1e-9 ||
					math.Abs(c.got.Retrying-want.Retrying) > 1e-9 {
					t.Errorf("%s, %v: got %+v, want %+v", task.ID, stepTools(c.plan.Steps), c.got, want)
				}
			}
			if workflow.Hurts(catalog, trial, &task) {
				hurt++
			} else if shown.Once > right.Once {
				helped++
			}
		}
	}
	t.Logf("repeated steps hurt %d plans and help %d", hurt, helped)
	if hurt == 0 || helped == 0 {
		t.Error("want plans of both kinds")
	}
}

// obedient adds up the chances of all numbers of calls that the steps may take. A step that is
// repeated takes two calls at least. If it has an effect, only one of them may succeed.
func obedient(
	catalog *assay.Catalog, steps []workflow.Step, r float64, calls int, retries bool,
) float64 {
	used := make([]float64, calls+1) // by the number of calls so far
	used[0] = 1
	for i := 0; i < len(steps); i++ {
		tool, _ := catalog.Tool(steps[i].Tool)
		copies := 1
		if i+1 < len(steps) && reflect.DeepEqual(steps[i], steps[i+1]) {
			copies, i = 2, i+1
		}
		next := make([]float64, calls+1)
		for n, p := range used {
			for first := 1; n+first <= calls; first++ { // the call that is the first success
				switch p := p * r * math.Pow(1-r, float64(first-1)); {
				case first > copies && !retries:
				case first >= copies:
					next[n+first] += p
				case n+first == calls: // too late to repeat it
					next[calls] += p
				case tool.Effect != "":
					next[n+copies] += p * (1 - r)
				default:
					next[n+copies] += p
				}
			}
		}
		used = next
	}
	sum := 0.0
	for _, p := range used {
		sum += p
	}
	return sum
}

// TestWhatHurts checks which flaws hurt in which world.
func TestWhatHurts(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog(library.Tools())
	hurts := make(map[string]map[assay.Flaw][2]int) // by world; tasks without and with harm
	i := 0
	for task := range library.Generate() {
		if i++; i%97 > 0 || testing.Short() && i%291 > 0 {
			continue
		}
		for _, name := range world.Simulated {
			if hurts[name] == nil {
				hurts[name] = make(map[assay.Flaw][2]int)
			}
			for _, flaw := range assay.Flaws {
				if !workflow.Applies(catalog, name, &task, flaw, assay.Severe) {
					continue
				}
				trial := perfect()
				trial.World, trial.Reliability, trial.Calls, trial.Turns = name, .8, 10, 15
				trial.Variant, trial.Severity = "flawed_"+string(flaw), assay.Severe
				n := hurts[name][flaw]
				if workflow.Hurts(catalog, trial, &task) {
					n[1]++
				} else {
					n[0]++
				}
				hurts[name][flaw] = n
			}
		}
	}
	for _, flaw := range assay.Flaws {
		some := flaw == assay.RedundantOperations
		for _, name := range world.Simulated {
			ignored := name == world.PilotName &&
				(flaw == assay.ParameterError || flaw == assay.LogicalInconsistency)
			n := hurts[name][flaw]
			if got, want := n[1] > 0, some || !ignored; got != want {
				t.Errorf("%s: %s hurts %d tasks", name, flaw, n[1])
			}
			if got, want := n[0] > 0, some || ignored; got != want {
				t.Errorf("%s: %s does not hurt %d tasks", name, flaw, n[0])
			}
		}
	}
}
