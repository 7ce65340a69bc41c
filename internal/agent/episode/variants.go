package episode

import (
	"strings"

	"github.com/assay-eval/assay/internal/task/workflow"
)

// The variants: how the task is put to the model.
const (
	Baseline = "baseline" // the task alone
	CoT      = "cot"      // the task and the advice to think step by step
	Optimal  = "optimal"  // the task and its plan
)

// flawedPrefix begins the name of a variant whose plan has a flaw.
const flawedPrefix = "flawed_"

// Plain lists the variants without a flaw, and Variants all of them, in the
// order of every table.
var (
	Plain    = []string{Baseline, CoT, Optimal}
	Variants = append(append([]string{}, Plain...), flawed(workflow.Flaws)...)
)

func flawed(flaws []workflow.Flaw) []string {
	var names []string
	for _, f := range flaws {
		names = append(names, flawedPrefix+string(f))
	}
	return names
}

// FlawOf returns the flaw of a variant's plan, if it has one.
func FlawOf(variant string) (workflow.Flaw, bool) {
	name, ok := strings.CutPrefix(variant, flawedPrefix)
	return workflow.Flaw(name), ok
}

// The protocols: how a model acts.
const (
	Native = "native" // calls of functions, as the endpoint's API has them
	Tags   = "tags"   // tags in the text of a reply
)

// Protocols lists the protocols.
var Protocols = []string{Native, Tags}
