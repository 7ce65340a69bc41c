package job

import (
	"slices"

	"github.com/assay-eval/assay"
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
	var examples []assay.TaskID
	for ref, key := range of.tasks {
		if hopeless[key] {
			examples = append(examples, ref.ID)
		}
	}
	u = Unsolvable{Tasks: len(examples), Of: len(of.tasks)}
	if len(examples) > 0 {
		u.Example = string(slices.Min(examples))
	}
	return u
}
