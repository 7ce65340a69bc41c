package spec

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
)

// A Rule is one question that a verdict asked about an episode, and its answer.
type Rule struct {
	// Verdict is the decision that the rule helps with: level or category, in pilot also signs,
	// executor, paper and batch. The last rule has "verdict".
	Verdict string `json:"verdict"`
	Rule    string `json:"rule"`
	Holds   bool   `json:"holds"`
	// Because gives the figures.
	Because string `json:"because"`
}

// A Rationale records the rules that a judge asks while it judges. This way the explanation cannot
// differ from the verdict. A nil Rationale never records a rule or words a reason.
type Rationale struct {
	verdict string // being decided
	Rules   []Rule
}

// Decide states which verdict the following rules are for.
func (why *Rationale) Decide(verdict string) {
	if why != nil {
		why.verdict = verdict
	}
}

// Ask records a rule and returns whether it holds.
func (why *Rationale) Ask(rule string, holds bool, because func() string) bool {
	if why != nil {
		why.Rules = append(why.Rules, Rule{why.verdict, rule, holds, because()})
	}
	return holds
}

// Need records a condition of full success and returns whether it holds.
func (why *Rationale) Need(rule string, holds bool, because func() string) bool {
	return why.Ask(rule, holds, func() string {
		if holds {
			return because()
		}
		return because() + " → no full success"
	})
}

// Remains records that no other rule applies and returns the category that is left.
func (why *Rationale) Remains(category string) string {
	why.Ask("none of these", true, func() string { return "what remains is " + category })
	return category
}

// Covered words how many of the required tools succeeded, and which did not.
func Covered(o *assay.Outcome) string {
	n := len(o.RequiredTools)
	if n == 0 {
		return "the task requires none"
	}
	k := int(math.Round(o.Coverage * float64(n)))
	text := fmt.Sprintf("%d of %d", k, n)
	var never []string
	for _, t := range policy.Distinct(o.RequiredTools) {
		if !slices.Contains(o.ExecutedTools, t) {
			never = append(never, t)
		}
	}
	switch {
	case len(never) > 0:
		text += "; " + strings.Join(never, ", ") + " never did"
	case k < n:
		text += "; a tool that is required twice counts once"
	}
	return text
}

// Made words how many calls and turns there were.
func Made(tr *assay.Transcript) string {
	text := assay.Counted(len(tr.Calls), "call") + " in " + assay.Counted(len(tr.Turns), "turn")
	if n := tr.Refused(); n > 0 {
		text += fmt.Sprintf(", and %d refused", n)
	}
	return text
}

// Completed asks whether an episode ended as full success needs it: the model said that it was done,
// or its foreign agent, which need not say anything, ended without an error. The rationale may be nil.
func Completed(tr *assay.Transcript, why *Rationale) bool {
	rule := "the model said that it was done"
	if tr.Agent != nil {
		rule = "the agent ended by itself"
	}
	return why.Need(rule, tr.Ended == assay.Finished, func() string { return endedBy(tr) })
}

// endedBy words how an episode ended, with what a foreign agent left behind.
func endedBy(tr *assay.Transcript) string {
	switch {
	case tr.Agent == nil:
	case tr.Agent.Exit != "":
		return tr.Agent.Exit
	case tr.Ended == assay.Finished:
		return "without an error, such as with exit code 0"
	}
	return EndedBy(tr.Ended)
}

// EndedBy words how an episode ended.
func EndedBy(ended assay.Ended) string {
	if ended == "" {
		return "the episode has no end"
	}
	return "the episode ended by " + string(ended)
}

// Nth names a call by its number, counted from 1.
func Nth(calls []assay.CallRecord, i int) string {
	return fmt.Sprintf("call %d (%s)", i+1, calls[i].Tool)
}
