package report

import "slices"

// An Exposure describes the faults of tools that a model met. Success is not split by it, because a
// model that gets further meets more.
type Exposure struct {
	Model string `json:"model"`
	// FaultMix is empty if the experiment has a single mix.
	FaultMix string `json:"fault_mix,omitempty"`
	Done     int    `json:"done"`
	// Scheduled counts the faults in the way of the plans of the outcomes, and Met the ones that
	// the model met; see [assay.Outcome.FaultsScheduled].
	Scheduled int `json:"faults_scheduled"`
	Met       int `json:"faults_met"`
}

// exposures covers all models, with each mix if there are several, if a fault was scheduled for any
// of them.
func exposures(cells []*cell) []Exposure {
	all := []Exposure{}
	several := len(levels(cells, faultMix)) > 1
	for _, p := range pool(cells, byModelAnd(faultMix)) {
		mix := ""
		if several {
			mix = MixName(p.Faults)
		}
		all = append(all, Exposure{
			Model: p.Model, FaultMix: mix, Done: p.n(done), Scheduled: p.scheduled, Met: p.met,
		})
	}
	if !slices.ContainsFunc(all, func(e Exposure) bool { return e.Scheduled > 0 }) {
		return []Exposure{}
	}
	return all
}
