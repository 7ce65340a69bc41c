package job_test

import (
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// A cell that never succeeds is stopped as soon as its rule has enough outcomes.
func ExampleStopper() {
	g := job.NewStopper(plan.Budgets{}, plan.StopRules{
		Hopeless: &plan.StopRule{After: 20, Below: 0.2, Per: plan.PerCell},
	})
	cell := assay.Cell{
		Model: "my-model", Variant: "cot", Difficulty: "easy",
		TaskType: "basic_task", Reliability: 0.8,
	}
	for range 20 {
		for _, stop := range g.Outcome(cell, assay.Failure, false) {
			fmt.Println(stop)
		}
	}
	_, byRule := g.Skip(cell)
	fmt.Println("skipped by a rule:", byRule)
	// Output:
	// my-model cot easy basic_task 0.8 stopped early: full success is below 20 % with 95 % confidence after 20 trials
	// skipped by a rule: true
}
