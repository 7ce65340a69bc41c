package export

import "github.com/assay-eval/assay"

// attempts is the table of attempts.
var attempts = complete(table[assay.Attempt]{
	name:     AttemptTable,
	distinct: []string{"trial", "fault_detail"},
	absences: []absence[assay.Attempt]{
		// A mean over attempts is a mean over outcomes.
		newAbsence(noOutcome(), "null for a fault", settles),
		newAbsence(struct {
			CostUSD float64 `json:"cost_usd"`
		}{}, "null if nothing of it is known", (*assay.Attempt).CostKnown),
	},
	label:     func(a *assay.Attempt) string { return "trial " + string(a.ID) },
	canonical: canonical,
})

func settles(a *assay.Attempt) bool { return a.Settles() }

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
