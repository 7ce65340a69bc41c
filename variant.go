package assay

import "strings"

// The variants: how a task is put to the model. A variant with a plan may have the plan's authority
// after a colon, as in "optimal:follow".
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

// ShowsPlan reports whether a variant shows a plan. Variants that users wrote do.
func ShowsPlan(variant string) bool { return variant != Baseline && variant != CoT }

// FlawOf returns the flaw of a variant's plan. It returns false if the plan has no flaw.
func FlawOf(variant string) (Flaw, bool) {
	plain, _ := PlainOf(variant)
	name, ok := strings.CutPrefix(plain, flawedPrefix)
	return Flaw(name), ok
}

// The authorities of a plan: what the prompt says about it besides the plan itself.
const (
	Unstated   = "unstated"     // nothing
	Follow     = "follow"       // to follow it step by step, as the original benchmark says
	MayBeWrong = "may_be_wrong" // that it may be wrong
)

// Authorities lists the authorities of plans, in the order of every table.
var Authorities = []string{Unstated, Follow, MayBeWrong}

// WithAuthority returns a variant with a plan's authority. Unstated is not named.
func WithAuthority(plain, authority string) string {
	if authority == Unstated {
		return plain
	}
	return plain + ":" + authority
}

// PlainOf splits a variant into the variant without an authority, and the authority. It returns the
// variant itself if what follows the colon is not an authority.
func PlainOf(variant string) (plain, authority string) {
	plain, authority, _ = strings.Cut(variant, ":")
	switch authority {
	case Follow, MayBeWrong:
		return plain, authority
	}
	return variant, Unstated
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
