package score_test

import (
	"context"
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
)

// A model called a tool before its dependency and then stopped.
func ExampleJudge_Outcome() {
	catalog := assay.NewCatalog([]assay.Tool{
		{Name: "read"},
		{Name: "write", Dependencies: []string{"read"}},
	})
	trial := &assay.Trial{
		Cell:    assay.Cell{Reliability: 1},
		Setting: assay.Setting{World: world.Assay1Name, Turns: 5},
	}
	task := &assay.Task{ID: "copy", Required: []string{"read", "write"}}

	episode := world.Begin(context.Background(), catalog, trial, task)
	for turn, tool := range []string{"write", "read"} {
		if _, err := episode.Call(turn+1, tool, "{}"); err != nil {
			fmt.Println(err)
		}
	}
	outcome := score.New(catalog).Outcome(trial, task, &assay.Transcript{
		Calls: episode.Calls(),
		Turns: make([]assay.TurnRecord, 3),
		Ended: assay.Finished,
	})
	fmt.Println(outcome.Level, "because of", outcome.ErrorCategory)
	fmt.Println("coverage:", outcome.Coverage, "mistakes:", outcome.Mistakes)
	// Output:
	// failure because of dependency
	// coverage: 0.5 mistakes: 1
}
