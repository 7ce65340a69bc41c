//go:build !race

package sim_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestOptimalIsOptimalWhateverItsPlan plays sim/optimal with right, flawed and no plans to tasks that
// it knows. Its rate lies in the central 99.8 % of the exact distribution that the ceilings have.
func TestOptimalIsOptimalWhateverItsPlan(t *testing.T) {
	t.Parallel()
	tasks := mediumTasks()
	models, runner := made(tasks), episode.NewRunner(catalog, 0)
	for _, w := range world.Simulated {
		for _, variant := range []string{
			assay.Baseline, assay.Optimal, "flawed_missing_step", "flawed_tool_misuse", "flawed_sequence_disorder",
		} {
			for _, setting := range settings {
				t.Run(w+" "+variant+" "+setting, func(t *testing.T) {
					t.Parallel()
					won, ceilings := 0, []float64(nil)
					for i, task := range tasks {
						if flaw, ok := assay.FlawOf(variant); ok && !workflow.Applies(catalog, w, &task, flaw, assay.Severe) {
							continue
						}
						trial := trial(sim.Optimal, setting, variant, .8, uint64(i))
						trial.World, trial.Calls = w, 8
						trial.Turns = trial.Calls + 1
						if variant != assay.Baseline && variant != assay.Optimal {
							trial.Severity = assay.Severe
						}
						a, _ := runner.Run(t.Context(), models, &trial, &task)
						if a.FaultKind != "" {
							t.Fatalf("task %s: %s", task.ID, a.FaultDetail)
						}
						ceilings = append(ceilings, a.Best)
						if a.Level == assay.FullSuccess {
							won++
						}
					}
					tooMany, enough := upperTail(ceilings, won), upperTail(ceilings, won+1)
					if len(ceilings) < 20 || tooMany < .001 || 1-enough < .001 {
						t.Errorf("%d of %d succeed", won, len(ceilings))
					}
				})
			}
		}
	}
}
