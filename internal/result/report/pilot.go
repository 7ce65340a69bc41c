package report

import "github.com/assay-eval/assay"

// Pilot shows the three definitions of full success that the 2025 original used side by
// side. It covers the outcomes that were judged by all three.
type Pilot struct {
	Rows     []PilotRow `json:"rows"`
	Averaged []string   `json:"averaged_over"`
}

// A PilotRow belongs to a model and a variant. See [assay.PilotScores].
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
			return p.share(
				func(_ task, o outcomes) (some, of int32) { return definition(o), o.judged },
			)
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
