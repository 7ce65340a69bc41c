package workflow_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// BenchmarkSolve solves the longest task of the original, which has six required tools, with the
// calls of short and long episodes.
func BenchmarkSolve(b *testing.B) {
	catalog, tasks := pilotData(b)
	required := longest(catalog, tasks).Required
	for _, name := range world.Simulated {
		for _, calls := range []int{10, 199} {
			b.Run(fmt.Sprint(name, " ", calls), func(b *testing.B) {
				b.ReportAllocs()
				p := workflow.Problem{
					World: name, Required: required, Reliability: .8, Calls: calls,
				}
				size := 0
				for b.Loop() {
					size = workflow.Solve(catalog, p).Size()
				}
				b.ReportMetric(float64(size), "size")
			})
		}
	}
}

// BenchmarkFlawed applies severe flaws to the longest plan, as the opening of an episode does.
func BenchmarkFlawed(b *testing.B) {
	catalog, tasks := pilotData(b)
	task := longest(catalog, tasks)
	plan := workflow.For(catalog, world.Assay1Name, &task)
	for _, flaw := range assay.Flaws {
		b.Run(string(flaw), func(b *testing.B) {
			b.ReportAllocs()
			for seed := uint64(0); b.Loop(); seed++ {
				workflow.Flawed(catalog, plan, &task, flaw, assay.Severe, seed)
			}
		})
	}
}

func longest(catalog *assay.Catalog, tasks []assay.Task) assay.Task {
	return slices.MaxFunc(tasks, func(a, b assay.Task) int {
		return len(policy.Sequence(catalog, a.Required)) - len(policy.Sequence(catalog, b.Required))
	})
}
