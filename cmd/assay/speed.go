package main

import (
	"fmt"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/job"
)

// laneSpeed is what the done event tells of one lane.
type laneSpeed struct {
	Model     string             `json:"model"`
	Lane      string             `json:"lane"`
	Occupancy float64            `json:"occupancy"`
	Used      float64            `json:"used_s"`
	Available float64            `json:"available_s"`
	Waited    map[string]float64 `json:"waited_s"`
	Requests  int                `json:"requests"`
	Limits    lane.Limits        `json:"limits"`
	Learned   lane.Limits        `json:"learned"`
}

// speeds returns the lanes of all models that were asked anything.
func (s *session) speeds() []laneSpeed {
	all := []laneSpeed{}
	for _, model := range s.Experiment.Models {
		states, _ := s.pools.ByModel[model].Status()
		for i, l := range s.pools.ByModel[model].Ledgers() {
			waited := make(map[string]float64, len(l.Waited))
			for reason, d := range l.Waited {
				waited[reason] = d.Seconds()
			}
			all = append(all, laneSpeed{
				model, l.Name, l.Occupancy(), l.Used.Seconds(), l.Available.Seconds(), waited, l.Requests, l.Limits, states[i].Learned,
			})
		}
	}
	return all
}

// least is the shortest time in which this run's requests could have been
// made: by the limits of the slowest model's lanes, or the longest episode.
func (s *session) least() time.Duration {
	least := s.longest
	for _, p := range s.pools.ByModel {
		least = max(least, lane.Least(p.Ledgers()))
	}
	return least
}

// speedText says in a line how full a model's lanes were and what bound them;
// "" for a model that was asked nothing.
func speedText(model string, ledgers []lane.Ledger, wall time.Duration) string {
	var used, available time.Duration
	for _, l := range ledgers {
		used += l.Used
		available += l.Available
	}
	if available == 0 {
		return ""
	}
	text := fmt.Sprintf("%s: lanes %.0f %% full", model, 100*float64(used)/float64(available))
	bound, waited := job.Bottleneck(ledgers, wall)
	switch {
	case waited > 0:
		text += fmt.Sprintf(", bound by %s (for %s)", bound, waited.Round(100*time.Millisecond))
	case bound != "":
		text += ", bound by " + bound
	}
	return text
}
