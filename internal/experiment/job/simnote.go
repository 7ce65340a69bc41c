package job

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
)

// SimNote explains why simulated models score low although the best possible rate is high. It is
// empty if no simulated model of the job meets a flawed plan.
func (j *Job) SimNote() string {
	var models []string
	for _, m := range j.Experiment.Models {
		if !slices.Contains([]string{sim.Listed, sim.Obedient, sim.Batcher}, m) {
			continue
		}
		for cell := range j.Plan.Cells(m) {
			if _, flawed := assay.FlawOf(cell.Variant); flawed {
				models = append(models, m)
				break
			}
		}
	}
	if len(models) == 0 {
		return ""
	}
	return fmt.Sprintf("Simulated models that trust the plan in the prompt (%s) fail if it is "+
		"flawed, however high the best possible rate is.", strings.Join(models, ", "))
}
