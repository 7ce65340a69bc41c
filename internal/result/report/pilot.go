package report

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
	var judgedCells []*cell
	for _, c := range cells {
		if c.n(judged) > 0 {
			judgedCells = append(judgedCells, c)
		}
	}
	by := byModelAnd(variant)
	out := Pilot{Rows: []PilotRow{}, Averaged: averagedBy(judgedCells, by)}
	for _, p := range pool(judgedCells, by) {
		out.Rows = append(out.Rows, PilotRow{
			Model: p.Model, Variant: p.Variant, Done: p.n(judged),
			Executor: p.among(judged, executor), Paper: p.among(judged, paper),
			Batch: p.among(judged, batch),
		})
	}
	return out
}
