package main

import (
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// flaws computes the exact chances of full success with each severe flaw: of agents that follow the
// plan to the letter, without and with retries, and of the best policy, which does not follow it.
// The reliability is 0.8 and the budget is the default.
func flaws() []row {
	catalog := assay.NewCatalog(library.Tools())
	tasks := tasksAt("easy")
	var rows []row
	for _, flaw := range assay.Flaws {
		var once, retrying, rightOnce, rightRetrying, best, n float64
		for _, task := range tasks {
			if !workflow.Applies(catalog, world.Assay1Name, &task, flaw, assay.Severe) {
				continue
			}
			trial := assay.Trial{
				Cell: assay.Cell{
					Variant: "flawed_" + string(flaw), Severity: assay.Severe, Reliability: .8,
				},
				Setting: assay.Setting{
					World: world.Assay1Name, Turns: plan.DefaultTurns, Calls: plan.DefaultCalls,
				},
			}
			shown, right := workflow.Obey(catalog, &trial, &task)
			once, retrying, n = once+shown.Once, retrying+shown.Retrying, n+1
			rightOnce, rightRetrying = rightOnce+right.Once, rightRetrying+right.Retrying
			problem := workflow.ProblemOf(&trial, task.Required)
			best += workflow.Solve(catalog, problem).Success()
		}
		name := fmt.Sprintf("%s (%v tasks): ", flaw, n)
		rows = append(rows,
			newRow(name+"the plan followed without retries", share, once/n),
			newRow(name+"the right plan followed without retries", share, rightOnce/n),
			newRow(name+"the plan followed with retries", share, retrying/n),
			newRow(name+"the right plan followed with retries", share, rightRetrying/n),
			newRow(name+"the best policy", share, best/n),
		)
	}
	return rows
}
