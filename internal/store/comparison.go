package store

import (
	"context"
	"encoding/json"
	"fmt"
)

// JudgeAgreement is the kind of an import whose body is a [Comparison]. Its file has the labels.
const JudgeAgreement = "judge-agreement"

// EnoughLabels is how many labels a comparison needs, so that reports no longer warn of the judge: with 30, the
// interval of an agreement of 90 % is 20 points wide.
const EnoughLabels = 30

// A Comparison says how often a model that judges agreed with people about the same outcomes. The figures
// of outcomes are the same with and without it, but a report warns of a judge without one.
type Comparison struct {
	// Judge is a model, and Prompt the version of the words with which it was asked: see
	// [assay.Outcome.JudgedBy] and [assay.Outcome.JudgePrompt].
	Judge  string `json:"judge"`
	Prompt string `json:"prompt"`
	// Labels counts the outcomes with a label of people, and Agreed those of them with the same verdict.
	Labels int `json:"labels"`
	Agreed int `json:"agreed"`
}

// Comparisons returns what the imports of the kind [JudgeAgreement] say, oldest first.
func (db *DB) Comparisons(ctx context.Context) (all []Comparison, err error) {
	imports, err := db.Imports(ctx)
	for _, i := range imports {
		if i.Kind != JudgeAgreement {
			continue
		}
		var c Comparison
		if err := json.Unmarshal(i.Body, &c); err != nil {
			return nil, fmt.Errorf("the comparison of a judge in %s: %w", i.Name, err)
		}
		all = append(all, c)
	}
	return all, err
}
