package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
	"github.com/assay-eval/assay/internal/task/policy"
)

// demands returns what the tasks of a fresh library demand. The shape of all libraries is the same, so
// one is enough.
func demands(context.Context) ([]row, error) {
	l, err := freshLesson("1", tasksPerType)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, typ := range assay.TaskTypes {
		calls, references, n := 0.0, 0.0, 0.0
		for _, task := range l.tasks[assay.Difficulties[0]] {
			if task.Type != typ {
				continue
			}
			n++
			plan := policy.Sequence(l.catalog, task.Required)
			calls += float64(len(plan))
			for _, feed := range policy.Feeds(l.catalog, plan) {
				if feed != policy.NoFeed {
					references++
				}
			}
		}
		rows = append(rows, row{typ + ": calls of the plan", fmt.Sprintf("%.1f", calls/n)},
			row{typ + ": results that calls have to refer to", fmt.Sprintf("%.1f", references/n)})
	}
	for _, difficulty := range assay.Difficulties {
		named, steps := 0.0, 0.0
		for _, task := range l.tasks[difficulty] {
			stems := bm25.Words(task.Description)
			for _, name := range task.Required {
				steps++
				tool, _ := l.catalog.Tool(name)
				if slices.Contains(stems, bm25.Words(tool.Operation)[0]) {
					named++
				}
			}
		}
		rows = append(rows, row{difficulty + ": steps that the text names", percent(named / steps)})
	}
	return rows, nil
}
