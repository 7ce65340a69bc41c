package workflow_test

import (
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// A task requires one tool, which depends on another. Every call succeeds with 80 %, and there is
// time for three calls. The best policy reads first and retries once.
func ExampleSolve() {
	catalog := assay.NewCatalog([]assay.Tool{
		{Name: "read"},
		{Name: "write", Dependencies: []string{"read"}},
	})
	policy := workflow.Solve(catalog, workflow.Problem{
		World:       world.Assay1Name,
		Required:    []string{"write"},
		Reliability: .8,
		Calls:       3,
	})
	fmt.Println("plan:", policy.Linear())
	fmt.Println("after a failure:", policy.Next([]workflow.Call{{Tool: "read", OK: false}}))
	fmt.Printf("full success: %.1f %%\n", 100*policy.Success())
	// Output:
	// plan: [read write]
	// after a failure: read
	// full success: 89.6 %
}
