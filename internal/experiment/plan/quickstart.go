package plan

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/model/sim"
)

// QuickstartFile is the file of the built-in experiment, to run and to learn
// from.
//
//go:embed quickstart.yaml
var QuickstartFile []byte

// Quickstart returns the built-in experiment.
func Quickstart() *Experiment {
	doc, err := parseDocument(quickstart+".yaml", QuickstartFile)
	if err == nil {
		var e *Experiment
		if e, err = load(doc); err == nil {
			return e
		}
	}
	panic("plan: quickstart: " + err.Error())
}

// quickstart is the name of the built-in experiment.
const quickstart = "quickstart"

// RunVerb returns what follows the program's name in the command that runs a stored experiment again, of
// which the store knows neither the file nor the models of a suite.
func RunVerb(experiment string) string {
	switch of, forks := strings.CutSuffix(experiment, forksSuffix); {
	case forks:
		return "fork " + of
	case experiment == quickstart:
		return "run"
	case slices.Contains(Suites, experiment):
		return "run --suite " + experiment + " --model MODEL"
	}
	return "run FILE"
}

// About completes the sentence "the model …" for a simulated model that stands for people's. It is ""
// for others.
func About(model string) string { return sim.About(model) }
