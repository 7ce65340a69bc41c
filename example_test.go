package assay_test

import (
	"fmt"

	"github.com/assay-eval/assay"
)

// Two models have the same luck in the same task, so their results can be compared in pairs.
func ExampleNewTrial() {
	task := assay.TaskRef{ID: "task_1", Digest: "0f3a"}
	setting := assay.Setting{
		World: "assay-1", Protocol: assay.Native, Tools: assay.Discover, Turns: 10,
	}

	cell := assay.Cell{Model: "gpt-4o", Variant: assay.Optimal, Reliability: 0.8}
	first := assay.NewTrial(cell, task, setting, 2025, 1)
	cell.Model = "qwen2.5-7b"
	second := assay.NewTrial(cell, task, setting, 2025, 1)

	fmt.Println("same trial:", first.ID == second.ID)
	fmt.Println("same luck:", first.Seed == second.Seed)
	// Output:
	// same trial: false
	// same luck: true
}

func ExampleNameHint() {
	fmt.Println(assay.NameHint("variant", []string{"models", "variants", "reliabilities"}))
	// Output: did you mean variants?
}
