package export

import (
	"errors"
	"fmt"

	"github.com/assay-eval/assay"
)

// attempts is the table of attempts.
var attempts = complete(table[assay.Attempt]{
	name:     AttemptTable,
	distinct: []string{"trial", "fault_detail"},
	absences: []absence[assay.Attempt]{
		// A mean over attempts is a mean over outcomes.
		newAbsence(noOutcome(), "null for a fault", settles),
		newAbsence(struct {
			CostUSD float64 `json:"cost_usd"`
		}{}, "null if nothing of it is known", hasCost),
	},
	required:  attemptRequired,
	label:     func(a *assay.Attempt) string { return "trial " + string(a.ID) },
	canonical: canonical,
	plain:     plain,
	check:     checkAttempt,
})

// attemptRequired lists the fields that every file must have. The other fields
// were added later or may be missing, and are empty then.
var attemptRequired = []string{
	"trial", "attempt", "experiment", "run", "model", "variant", "severity", "difficulty",
	"task_type", "task", "reliability", "repeat", "seed", "world", "lane", "served_model",
	"level", "ended", "fault", "error_category", "turns", "tool_calls", "required_tools",
	"executed_tools", "coverage", "order_correct", "input_tokens", "output_tokens", "cost_usd",
	"queued_ms", "working_ms", "started_at", "finished_at",
}

func settles(a *assay.Attempt) bool { return a.Settles() }
func hasCost(a *assay.Attempt) bool {
	return a.CostUSD != 0 || a.UnpricedTokens == 0 && !a.Unmetered
}

// noOutcome returns the outcome of a fault.
func noOutcome() assay.Outcome {
	return assay.Outcome{RequiredTools: []string{}, ExecutedTools: []string{}}
}

// canonical returns a with times in UTC, without nil lists and maps, and without an outcome if it
// is a fault.
func canonical(a assay.Attempt) assay.Attempt {
	a.StartedAt, a.FinishedAt = a.StartedAt.UTC().Round(0), a.FinishedAt.UTC().Round(0)
	if !a.Settles() {
		a.Outcome = noOutcome()
	}
	if a.RequiredTools == nil {
		a.RequiredTools = []string{}
	}
	if a.ExecutedTools == nil {
		a.ExecutedTools = []string{}
	}
	if a.Retried == nil {
		a.Retried = map[assay.FaultKind]int{}
	}
	return a
}

// plain replaces empty lists and maps by nil, which undoes canonical.
func plain(a assay.Attempt) assay.Attempt {
	if len(a.RequiredTools) == 0 {
		a.RequiredTools = nil
	}
	if len(a.ExecutedTools) == 0 {
		a.ExecutedTools = nil
	}
	if len(a.Retried) == 0 {
		a.Retried = nil
	}
	a.StartedAt, a.FinishedAt = a.StartedAt.UTC(), a.FinishedAt.UTC()
	return a
}

// checkAttempt refuses attempts that would be counted wrongly.
func checkAttempt(a *assay.Attempt) error {
	switch {
	case a.ID == "":
		return errors.New("trial is empty")
	case a.Number < 1:
		return fmt.Errorf("attempt is %d, want at least 1", a.Number)
	}
	return a.Check()
}
