package job

import (
	"cmp"
	"maps"
	"slices"

	"github.com/assay-eval/assay/internal/task/workflow"
)

// Unsolvable counts the planned tasks that no policy can fully solve in the experiment's setting,
// however reliable the tools are.
type Unsolvable struct {
	Tasks   int    `json:"tasks"`
	Of      int    `json:"of"`
	Example string `json:"example,omitempty"`
}

// unsolvable counts the tasks whose sequence cannot be solved.
func (j *Job) unsolvable(of sequences) (u Unsolvable) {
	hopeless := make(map[string]bool)
	for key, problem := range of.problems {
		hopeless[key] = workflow.Solve(j.Library.Catalog(), problem).Success() == 0
	}
	for _, id := range slices.Sorted(maps.Keys(of.tasks)) {
		if u.Of++; hopeless[of.tasks[id]] {
			u.Tasks++
			u.Example = cmp.Or(u.Example, string(id))
		}
	}
	return u
}
