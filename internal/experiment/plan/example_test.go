package plan_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "first.yaml")
	text := "models: [sim/expert]\nvariants: [optimal]\n" +
		"task_types: [basic_task]\ntasks_per_type: 2\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		panic(err)
	}

	experiment, err := plan.Load(file)
	if err != nil {
		panic(err)
	}
	library := func(_ context.Context, taskType, difficulty string) ([]assay.TaskRef, error) {
		return []assay.TaskRef{{ID: "t1"}, {ID: "t2"}, {ID: "t3"}}, nil
	}
	p, err := experiment.Expand(context.Background(), library, nil)
	if err != nil {
		panic(err)
	}
	for trial := range p.Trials("sim/expert") {
		fmt.Println(trial.Task, trial.Variant, trial.Reliability)
	}
	// Output:
	// t3 optimal 0.8
	// t2 optimal 0.8
}
