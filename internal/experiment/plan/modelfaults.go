package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
)

// checkModelFaults checks the rates of the planted faults of models. Whether all models are agents is
// only known once the providers file was read; see [Experiment.CheckAgents].
func (e *Experiment) checkModelFaults() error {
	const field, example = "model_faults", "for example model_faults: {rate_limit: 0.05, cut: 0.02}"
	if e.has(field) && len(e.ModelFaults) == 0 {
		return e.FieldError(field, "no kinds are listed", example)
	}
	for _, kind := range slices.Sorted(maps.Keys(e.ModelFaults)) {
		if !slices.Contains(assay.ModelFaults, kind) {
			var names []string
			for _, known := range assay.ModelFaults {
				names = append(names, string(known))
			}
			return e.source().AtKey("$."+field, string(kind),
				fmt.Sprintf("unknown fault of models %q", kind), assay.NameHint(string(kind), names))
		}
		if rate := e.ModelFaults[kind]; !(rate >= 0 && rate <= 1) {
			return e.FieldError(field+"."+string(kind),
				fmt.Sprintf("the rate of %s is %v, want 0 to 1", kind, rate), percentHint(rate))
		}
	}
	total := e.ModelFaults.Total()
	switch err := e.ModelFaults.Check(); {
	case err != nil:
		return e.FieldError(field, err.Error(), "an agent that asks again has to be answered some time")
	case len(e.ModelFaults) > 0 && total == 0:
		return e.FieldError(field, "all rates are 0", "remove the field")
	}
	return nil
}
