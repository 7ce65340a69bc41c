package plan

import (
	_ "embed"

	"github.com/assay-eval/assay/internal/model/sim"
)

// QuickstartFile is the file of the built-in experiment, to run and to learn
// from.
//
//go:embed quickstart.yaml
var QuickstartFile []byte

// Quickstart returns the built-in experiment.
func Quickstart() *Experiment {
	doc, err := parseDocument("quickstart.yaml", QuickstartFile)
	if err == nil {
		var e *Experiment
		if e, err = load(doc); err == nil {
			return e
		}
	}
	panic("plan: quickstart: " + err.Error())
}

// About completes the sentence "the model …" for a simulated model that stands for people's. It is ""
// for others.
func About(model string) string { return sim.About(model) }
