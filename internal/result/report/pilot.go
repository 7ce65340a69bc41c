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
		if c.total()[judged] > 0 {
			judgedCells = append(judgedCells, c)
		}
	}
	pools, averaged := byModelAnd(judgedCells, variant)
	out := Pilot{Rows: []PilotRow{}, Averaged: averaged}
	for _, p := range pools {
		out.Rows = append(out.Rows, PilotRow{
			Model: p.key.model, Variant: p.key.level, Done: int(p.total()[judged]),
			Executor: p.among(judged, executor), Paper: p.among(judged, paper),
			Batch: p.among(judged, batch),
		})
	}
	return out
}
