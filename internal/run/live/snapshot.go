package live

import (
	"time"

	"github.com/assay-eval/assay"
)

// A Snapshot is the state of a run at one moment.
type Snapshot struct {
	Elapsed time.Duration
	Models  []ModelState
	// Stopping is true if the run starts no new trials.
	Stopping bool
	// Notes are messages for the user, one line each, oldest first. A later
	// snapshot has the same notes and perhaps more.
	Notes []string
}

// A ModelState is one model's part of a [Snapshot].
type ModelState struct {
	Name string
	// Planned counts the model's trials in the experiment, and Done those that
	// have an outcome from this run or an earlier one.
	Planned, Done int
	// Parked counts the trials that this run gave up because of faults.
	Parked int
	// Skipped counts the trials that a stop rule gave up.
	Skipped  int
	InFlight int // episodes
	// Agents counts the episodes by what their agents are doing. It is nil for a bare model.
	Agents map[assay.AgentState]int
	// Requests counts requests, and Faults the failed ones by kind.
	Requests int
	Faults   map[assay.FaultKind]int
	// TokensPerMinute is the rate over the last minute or since the start.
	TokensPerMinute float64
	// Waits describes what the model's requests are waiting for; it may be
	// empty.
	Waits string
	// Left is the time until the model is done at the pace of the last minute.
	// It is 0 if that is unknown or the model will not finish.
	Left time.Duration
	// Closed is the reason why the model cannot serve more requests in this run. It is empty
	// if it can.
	Closed string
}

// Pending returns the number of trials that have no outcome and were not given
// up.
func (m ModelState) Pending() int { return m.Planned - m.Done - m.Parked - m.Skipped }

// Total returns the sum over all models. Its Left is that of the slowest model,
// or 0 if the Left of a working model is unknown. Waits and Closed are empty.
func (s Snapshot) Total() ModelState {
	total := ModelState{
		Name: "all", Faults: make(map[assay.FaultKind]int),
		Agents: make(map[assay.AgentState]int),
	}
	known := true
	for _, m := range s.Models {
		total.Planned += m.Planned
		total.Done += m.Done
		total.Parked += m.Parked
		total.Skipped += m.Skipped
		total.InFlight += m.InFlight
		total.Requests += m.Requests
		total.TokensPerMinute += m.TokensPerMinute
		total.Left = max(total.Left, m.Left)
		for k, n := range m.Faults {
			total.Faults[k] += n
		}
		for state, n := range m.Agents {
			total.Agents[state] += n
		}
		known = known && (m.Left > 0 || m.Pending() == 0 || m.Closed != "")
	}
	if !known {
		total.Left = 0
	}
	return total
}
