package report

import (
	"strings"

	"github.com/assay-eval/assay"
)

// Pilot holds the three definitions of full success side by side that the 2025
// original had, over the outcomes that were judged by all of them.
type Pilot struct {
	Rows     []PilotRow `json:"rows"`
	Averaged []string   `json:"averaged_over"`
}

// A PilotRow is of a model and a variant. See [assay.PilotScores].
type PilotRow struct {
	Model    string `json:"model"`
	Variant  string `json:"variant"`
	Done     int    `json:"done"` // with all three verdicts
	Executor Share  `json:"executor"`
	Paper    Share  `json:"paper"`
	Batch    Share  `json:"batch"`
}

func pilot(cells []*cell) Pilot {
	var judged []*cell
	for _, c := range cells {
		if c.total().judged > 0 {
			judged = append(judged, c)
		}
	}
	type key struct{ model, variant string }
	pools, averaged := pool(judged, func(c assay.Cell) key { return key{c.Model, c.Variant} })
	out := Pilot{Rows: []PilotRow{}, Averaged: averaged}
	for _, p := range pools {
		by := func(definition func(outcomes) int32) Share {
			return p.share(func(_ task, o outcomes) (some, of int32) { return definition(o), o.judged })
		}
		out.Rows = append(out.Rows, PilotRow{
			Model: p.key.model, Variant: p.key.variant, Done: int(p.total().judged),
			Executor: by(func(o outcomes) int32 { return o.executor }),
			Paper:    by(func(o outcomes) int32 { return o.paper }),
			Batch:    by(func(o outcomes) int32 { return o.batch }),
		})
	}
	return out
}

func (p Pilot) notes() []string {
	notes := []string{
		"The 2025 original published numbers of all three under the one name of full success.",
		"Executor asks for all required tools in order, paper also for output and a claim to be done, and batch for a",
		"workflow score and a phase 2 score of at least 0.8.",
	}
	if len(p.Averaged) > 0 {
		notes = append(notes, "They average over "+strings.Join(p.Averaged, ", ")+".")
	}
	return notes
}
