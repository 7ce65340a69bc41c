package assay

import "strings"

// The variants: how a task is put to the model.
const (
	Baseline = "baseline" // the task alone
	CoT      = "cot"      // the task, and the advice to think step by step
	Optimal  = "optimal"  // the task and its plan
)

// flawedPrefix begins the name of a variant whose plan has a flaw.
const flawedPrefix = "flawed_"

// PlainVariants lists the variants without a flaw, and Variants lists all of them, in the
// order of every table.
var (
	PlainVariants = []string{Baseline, CoT, Optimal}
	Variants      = append(append([]string{}, PlainVariants...), flawedVariants()...)
)

func flawedVariants() []string {
	var names []string
	for _, f := range Flaws {
		names = append(names, flawedPrefix+string(f))
	}
	return names
}

// FlawOf returns the flaw of a variant's plan. It returns false if the plan has no flaw.
func FlawOf(variant string) (Flaw, bool) {
	name, ok := strings.CutPrefix(variant, flawedPrefix)
	return Flaw(name), ok
}

// A Flaw is a kind of mistake that a plan can have.
type Flaw string

// The kinds of flaw.
const (
	SequenceDisorder     Flaw = "sequence_disorder"     // steps are in the wrong order
	ToolMisuse           Flaw = "tool_misuse"           // steps call a similar, wrong tool
	ParameterError       Flaw = "parameter_error"       // steps have arguments that are refused
	MissingStep          Flaw = "missing_step"          // steps are left out
	RedundantOperations  Flaw = "redundant_operations"  // steps occur twice
	LogicalInconsistency Flaw = "logical_inconsistency" // steps use results that don't exist yet
	SemanticDrift        Flaw = "semantic_drift"        // each step leads further from the task
)

// Flaws lists the kinds of flaw, in the order of every table.
var Flaws = []Flaw{
	SequenceDisorder, ToolMisuse, ParameterError, MissingStep, RedundantOperations,
	LogicalInconsistency, SemanticDrift,
}

// The severities: how bad a flaw is.
const (
	Light  = "light"
	Medium = "medium"
	Severe = "severe"
)

// Severities lists the severities, mildest first.
var Severities = []string{Light, Medium, Severe}
