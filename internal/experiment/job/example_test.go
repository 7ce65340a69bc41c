package job_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// A job can be estimated without a store, a key or a request.
func Example() {
	ctx := context.Background()
	j, err := job.Open(ctx, plan.Quickstart(), 0)
	if err != nil {
		panic(err)
	}
	defer j.Close()
	estimate, err := j.Estimate(ctx, nil, os.LookupEnv, 100*time.Millisecond)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d trials planned, %d pending\n", estimate.Planned, estimate.Pending)
	fmt.Println("bottleneck:", estimate.Models[0].Bound)
	// Output:
	// 588 trials planned, 588 pending
	// bottleneck: concurrency limit of builtin
}
