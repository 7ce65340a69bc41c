package report

import "slices"

// An Exposure describes the faults of tools that a model met. A rate of success gives no
// information about faults that it did not meet.
type Exposure struct {
	Model string `json:"model"`
	// FaultMix is empty if the experiment has a single mix.
	FaultMix string `json:"fault_mix,omitempty"`
	Done     int    `json:"done"`
	// Scheduled counts the faults in the way of the plans of the outcomes, and Met the ones that
	// the model met; see [assay.Outcome.FaultsScheduled].
	Scheduled int `json:"faults_scheduled"`
	Met       int `json:"faults_met"`
	// Exposed counts the outcomes with at least one fault that was met. Despite and Without are the
	// full successes among these and among the others.
	Exposed int   `json:"exposed"`
	Despite Share `json:"full_success_exposed"`
	Without Share `json:"full_success_unexposed"`
}

// exposures covers all models, with each mix if there are several, if a fault was scheduled for any
// of them.
func exposures(cells []*cell) []Exposure {
	all := []Exposure{}
	several := len(levels(cells, faultMix)) > 1
	pools, _ := byModelAnd(cells, faultMix)
	for _, p := range pools {
		mix := ""
		if several {
			mix = p.key.level
		}
		all = append(all, Exposure{
			Model: p.key.model, FaultMix: mix, Done: p.done, Scheduled: p.scheduled, Met: p.met,
			Exposed: int(p.total()[exposed]), Despite: p.among(exposed, despite),
			Without: p.share(func(_ task, o outcomes) (some, of int32) {
				return o[full] - o[despite], o[done] - o[exposed]
			}),
		})
	}
	if !slices.ContainsFunc(all, func(e Exposure) bool { return e.Scheduled > 0 }) {
		return []Exposure{}
	}
	return all
}
