package main

import (
	"fmt"
	"time"

	"github.com/assay-eval/assay/internal/lane"
)

// laneSpeed is what the done event tells of one lane.
type laneSpeed struct {
	Model     string             `json:"model"`
	Lane      string             `json:"lane"`
	Occupancy float64            `json:"occupancy"`
	Used      float64            `json:"used_s"`
	Available float64            `json:"available_s"`
	Waited    map[string]float64 `json:"waited_s"`
}

// speeds returns the lanes of all models that were asked anything.
func (s *session) speeds() []laneSpeed {
	all := []laneSpeed{}
	for _, model := range s.experiment.Models {
		for _, l := range s.pools.byModel[model].Ledgers() {
			waited := make(map[string]float64, len(l.Waited))
			for reason, d := range l.Waited {
				waited[reason] = d.Seconds()
			}
			all = append(all, laneSpeed{model, l.Name, l.Occupancy(), l.Used.Seconds(), l.Available.Seconds(), waited})
		}
	}
	return all
}

// speedText says in a line how full a model's lanes were and what bound them;
// "" for a model that was asked nothing.
func speedText(model string, ledgers []lane.Ledger, wall time.Duration) string {
	var used, available, longest time.Duration
	bound := ""
	for _, l := range ledgers {
		used += l.Used
		available += l.Available
		for reason, d := range l.Waited {
			if d > longest {
				longest, bound = d, reason+" of "+l.Name
			}
		}
	}
	if available == 0 {
		return ""
	}
	occupancy := float64(used) / float64(available)
	text := fmt.Sprintf("%s: lanes %.0f %% full", model, 100*occupancy)
	switch {
	case longest > wall/10:
		text += fmt.Sprintf(", bound by %s (for %s)", bound, longest.Round(100*time.Millisecond))
	case occupancy >= 0.75:
		text += ", bound by concurrency"
	}
	return text
}
