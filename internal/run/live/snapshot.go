package live

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A Snapshot is the state of a run at one moment.
type Snapshot struct {
	Elapsed time.Duration
	Models  []ModelState
	// Stopping is true if the run starts no new trials.
	Stopping bool
	// PausedSince is when the user paused all lanes, or zero.
	PausedSince time.Time
	// Success is the interval of the rate of full success over all models. It is zero if no trial
	// is done.
	Success Interval
	// Notes are messages for the user, one line each, oldest first. A later
	// snapshot has the same notes and perhaps more.
	Notes []string
	// Attention lists what keeps trials from ending well, most trials first.
	Attention []Attention
	// Workers carry out the attempts. There are none if the run itself does.
	Workers []Worker
}

// A Worker is a process that carries out attempts of a run.
type Worker struct {
	Name     string `json:"worker"`
	Slots    int    `json:"slots"`
	InFlight int    `json:"in_flight"`
	Done     int    `json:"done"`
	// Leaving is true if it takes no more attempts, and Lost if nothing was heard from it for a
	// while.
	Leaving bool `json:"leaving,omitempty"`
	Lost    bool `json:"lost,omitempty"`
}

// WorkersText lists workers with their attempts in flight and their slots. It is empty without any.
func WorkersText(workers []Worker) string {
	words := make([]string, len(workers))
	for i, w := range workers {
		words[i] = fmt.Sprintf("%s %d of %d", w.Name, w.InFlight, w.Slots)
		switch {
		case w.Lost:
			words[i] += " (lost)"
		case w.Leaving:
			words[i] += " (leaving)"
		}
	}
	return strings.Join(words, ", ")
}

// An Attention is something that keeps trials from ending well.
type Attention struct {
	Cause string `json:"cause"` // one word, such as closed or parked
	Text  string `json:"text"`
	// Trials counts the trials at stake. It is 0 if they only take longer.
	Trials int `json:"trials"`
	// Mend is what the user can do about it. It may be empty.
	Mend string `json:"mend,omitempty"`
}

// An Interval is a 95 % interval of a rate.
type Interval struct{ Low, High float64 }

// Left is the expected time until work is done, and its 90 % interval. If it is from the forecast
// before the run, ByPlan is true and there is an interval only if the endpoint is unknown.
type Left struct {
	Expected, Low, High time.Duration
	ByPlan              bool
}

// slower returns the longer of two times.
func (l Left) slower(other Left) Left {
	longest := l
	if other.Expected > l.Expected {
		longest = other
	}
	longest.Low, longest.High = max(l.Low, other.Low), max(l.High, other.High)
	return longest
}

// String returns the attention as a line.
func (a Attention) String() string {
	text := a.Text
	if a.Trials > 0 {
		text += fmt.Sprintf(" (trials: %d)", a.Trials)
	}
	if a.Mend != "" {
		text += " → " + a.Mend
	}
	return text
}

// A ModelState is one model's part of a [Snapshot].
type ModelState struct {
	Name string
	// Planned counts the model's trials in the experiment, and Done those that
	// have an outcome from this run or an earlier one. Full counts the full successes among Done.
	Planned, Done, Full int
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
	// Lost is the share of the lanes' time, from 0 to 1, that went to requests without a reply.
	Lost float64
	// TokensPerMinute is the rate over the last minute or since the start.
	TokensPerMinute float64
	// Waits describes what the model's requests are waiting for; it may be
	// empty.
	Waits string
	// Success is the interval of Full / Done.
	Success Interval
	// Left is the time until the model is done. Its Expected is 0 if that is unknown or the model
	// will not finish.
	Left Left
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
		Name: "all", Success: s.Success, Faults: make(map[assay.FaultKind]int),
		Agents: make(map[assay.AgentState]int),
	}
	known := true
	for _, m := range s.Models {
		total.Planned += m.Planned
		total.Done += m.Done
		total.Full += m.Full
		total.Parked += m.Parked
		total.Skipped += m.Skipped
		total.InFlight += m.InFlight
		total.Requests += m.Requests
		total.TokensPerMinute += m.TokensPerMinute
		total.Left = total.Left.slower(m.Left)
		for k, n := range m.Faults {
			total.Faults[k] += n
		}
		for state, n := range m.Agents {
			total.Agents[state] += n
		}
		known = known && (m.Left.Expected > 0 || m.Pending() == 0 || m.Closed != "")
	}
	if !known {
		total.Left = Left{}
	}
	return total
}
