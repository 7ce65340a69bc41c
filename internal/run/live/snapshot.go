package live

import (
	"time"

	"github.com/assay-eval/assay"
)

// A Snapshot is the state of a run at one moment.
type Snapshot struct {
	Elapsed time.Duration
	Models  []ModelState
	// Stopping says that the run starts nothing new.
	Stopping bool
	// Notes are what the user should know, oldest first, a line each. A later
	// snapshot has the same ones and perhaps more.
	Notes []string
}

// A ModelState is one model's part of a [Snapshot].
type ModelState struct {
	Name string
	// Planned counts the experiment's trials of the model, Done those with an
	// outcome, of this run or an earlier one.
	Planned, Done int
	// Parked counts the trials that this run gave up.
	Parked int
	// Skipped counts the trials that a stop rule gave up.
	Skipped  int
	InFlight int // episodes
	// Requests counts exchanges; Faults those of them that failed, by kind.
	Requests int
	Faults   map[assay.FaultKind]int
	// TokensPerMinute is over the last minute, or since the start.
	TokensPerMinute float64
	// Waits says what requests of the model wait for now; empty for nothing.
	Waits string
	// Left is the time until the model is done at the pace of the last minute;
	// 0 when that is not known, or never to be.
	Left time.Duration
	// Closed says why the model can serve nothing more in this run; empty if
	// it can.
	Closed string
}

// Pending is how many trials have no outcome and were not given up.
func (m ModelState) Pending() int { return m.Planned - m.Done - m.Parked - m.Skipped }

// Total sums the models up. It waits for nothing and is not closed; its Left
// is the longest, 0 when that of a model at work is not known.
func (s Snapshot) Total() ModelState {
	total := ModelState{Name: "all", Faults: make(map[assay.FaultKind]int)}
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
		known = known && (m.Left > 0 || m.Pending() == 0 || m.Closed != "")
	}
	if !known {
		total.Left = 0
	}
	return total
}
