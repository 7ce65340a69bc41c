//go:build !race

package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestVerdictsAreTheSameUnderEachInterface plays the same tasks with the same luck under each interface: to
// agents that never err, err, and follow flawed plans. The outcomes are those of the tools' own interface, and so
// are the calls in the tools' own terms.
func TestVerdictsAreTheSameUnderEachInterface(t *testing.T) {
	t.Parallel()
	tasks := mediumTasks()
	models, runner := made(tasks), episode.NewRunner(catalog, 0)
	every := 6
	if testing.Short() {
		every = 24
	}
	for _, model := range []string{
		sim.Optimal, sim.Obedient, sim.Made + ":right_arguments=0.7+right_tool=0.8+follows_flaw=0.5+retries=0.6",
	} {
		for _, variant := range []string{assay.Baseline, assay.Optimal, "flawed_parameter_error", "flawed_logical_inconsistency"} {
			for _, setting := range settings {
				t.Run(model+" "+variant+" "+setting, func(t *testing.T) {
					t.Parallel()
					levels, seen := make(map[assay.Level]int), 0
					for i, task := range tasks {
						if i%every != 0 {
							continue
						}
						trial := trial(model, setting, variant, .8, uint64(i))
						trial.World, trial.Calls, trial.Turns = world.Assay1Name, 10, 12
						if flaw, ok := assay.FlawOf(variant); ok {
							trial.Severity = assay.Severe
							if !workflow.Applies(catalog, trial.World, &task, flaw, assay.Severe) {
								continue
							}
						}
						plain, own := runner.Run(t.Context(), models, &trial, &task)
						levels[plain.Level]++
						for _, level := range assay.Interfaces[1:] {
							trial.Interface = level
							a, tr := runner.Run(t.Context(), models, &trial, &task)
							if x, y := verdictOf(plain), verdictOf(a); x != y {
								t.Errorf("task %s: the %s interface makes %s of %s", task.ID, level, y, x)
							}
							if !slices.EqualFunc(own.Calls, tr.Calls, sameCall) {
								t.Errorf("task %s: the %s interface changes the calls from\n%v to\n%v", task.ID, level, own.Calls, tr.Calls)
							}
							for _, c := range tr.Calls {
								if c.Written != "" {
									seen++
								}
							}
						}
					}
					if _, flawed := assay.FlawOf(variant); seen == 0 || levels[assay.FullSuccess] == 0 && !flawed && model != sim.Obedient {
						t.Errorf("%d calls were translated; outcomes: %v", seen, levels)
					}
				})
			}
		}
	}
}

// verdictOf has what an interface must not change.
func verdictOf(a *assay.Attempt) string {
	o := a.Outcome
	return fmt.Sprint(a.FaultKind, o.Level, o.Ended, o.Cause, o.Turns, o.ToolCalls, o.Coverage, o.UnwantedEffects, o.Mistakes)
}

// sameCall compares two calls without the spelling of their arguments and errors.
func sameCall(a, b assay.CallRecord) bool {
	return a.Tool == b.Tool && a.OK == b.OK && a.Mistake == b.Mistake && a.Code == b.Code && a.Luck == b.Luck &&
		a.Output == b.Output
}

// TestLostModelsFail holds that a model with hurt_by_interface=1 never succeeds under another interface, and
// loses nothing under the tools' own one.
func TestLostModelsFail(t *testing.T) {
	t.Parallel()
	tasks := mediumTasks()
	models, runner := made(tasks), episode.NewRunner(catalog, 0)
	for _, level := range append([]string{""}, assay.Interfaces[1:]...) {
		won := 0
		for i, task := range tasks {
			trial := trial(sim.Made+":hurt_by_interface=1", settings[0], assay.Optimal, 1, uint64(i))
			trial.World, trial.Calls, trial.Turns = world.Assay1Name, 10, 12
			trial.Interface = level
			if a, _ := runner.Run(t.Context(), models, &trial, &task); a.Level == assay.FullSuccess {
				won++
			}
		}
		if want := map[bool]int{true: len(tasks)}[level == ""]; won != want {
			t.Errorf("interface %q: %d of %d succeed, want %d", level, won, len(tasks), want)
		}
	}
}
