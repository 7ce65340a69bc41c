package session

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/budget"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/fleet"
	"github.com/assay-eval/assay/internal/run/live"
)

// A State describes a run that is working.
type State struct {
	Run        assay.RunID `json:"run"`
	Experiment string      `json:"experiment"`
	// Counts are those of all models.
	Counts
	Models []ModelState `json:"models"`
	// Workers is missing if the run itself carries out the attempts.
	Workers []fleet.WorkerState `json:"workers,omitempty"`
	Elapsed float64             `json:"elapsed_s"`
	// Left is missing if it is unknown, because the run is paused or a model makes no progress.
	Left *Left `json:"left,omitempty"`
	// Forecast is how long the run was to take when it began, in seconds. 0 means unknown.
	Forecast float64 `json:"forecast_s"`
	// ForecastRange has the range of that if the endpoint is unknown.
	ForecastRange job.Range `json:"forecast_range,omitzero"`
	// Tokens and Cost are those of this run, which Budget limits.
	Tokens int     `json:"tokens"`
	Cost   float64 `json:"cost_usd"`
	// Unpriced names the models with replies of unknown cost, which Cost leaves out.
	Unpriced []string       `json:"unpriced,omitempty"`
	Budget   budget.Budgets `json:"budget,omitzero"`
	// Stopping is true if the run starts no new trials.
	Stopping bool `json:"stopping"`
	// PausedSince is when the user paused all lanes. It is missing if a lane is not paused.
	PausedSince time.Time `json:"paused_since,omitzero"`
	// Attention lists what keeps trials from ending well, most trials first.
	Attention []Attention `json:"attention"`
	Notes     []string    `json:"notes"`
}

// Counts count trials. They include those of earlier runs of the experiment.
type Counts struct {
	Planned  int `json:"planned"`
	Done     int `json:"done"`
	Pending  int `json:"pending"`
	Parked   int `json:"parked"`
	Skipped  int `json:"skipped"`
	InFlight int `json:"in_flight"`
	// Full counts the full successes among the trials that are done. Success is their share with
	// its 95 % interval (Wilson's, as if no task were repeated). It is missing if none is done.
	Full    int      `json:"full_success"`
	Success *Success `json:"success,omitempty"`
}

// A Success is a rate of full success.
type Success struct {
	Rate     float64       `json:"rate"`
	Interval stat.Interval `json:"interval"`
}

// Left is the expected time until a run ends, in seconds, and its 90 % interval.
type Left struct {
	Seconds float64 `json:"seconds"`
	Low     float64 `json:"low,omitempty"`
	High    float64 `json:"high,omitempty"`
	// Basis is pace, or plan if the time is the forecast from before the run. That has an interval
	// only if the endpoint is unknown.
	Basis string `json:"basis"`
}

// A ModelState describes a model of a run.
type ModelState struct {
	Model string `json:"model"`
	Counts
	Waiting int `json:"waiting"`
	// Lost is the share of the lanes' time, from 0 to 1, that went to requests without a reply.
	Lost float64 `json:"lost"`
	// Agents counts the agents by what they are doing. It is missing for a bare model.
	Agents map[assay.AgentState]int `json:"agents,omitzero"`
	// Requests counts requests, and Faults the failed ones by kind.
	Requests        int                     `json:"requests"`
	Faults          map[assay.FaultKind]int `json:"faults"`
	TokensPerMinute float64                 `json:"tokens_per_minute"`
	// WaitsFor describes what requests wait for.
	WaitsFor string `json:"waits_for,omitempty"`
	// Left is like that of the run.
	Left *Left `json:"left,omitempty"`
	// Closed is why the model cannot serve any more.
	Closed string      `json:"closed,omitempty"`
	Lanes  []LaneState `json:"lanes"`
}

// A LaneState describes a lane of a run.
type LaneState struct {
	Lane     string      `json:"lane"`
	InFlight int         `json:"in_flight"`
	Limits   lane.Limits `json:"limits"`
	// Found says which limits the run found out; see [limit.Limiter.Words].
	Found string `json:"found,omitempty"`
	Waits string `json:"waits"`
	// Words are the endpoint's own words about a wait.
	Words  string `json:"words,omitempty"`
	Paused bool   `json:"paused"`
}

// LimitsText lists the limits that are stated, and what the run found out.
func (l *LaneState) LimitsText() string {
	var words []string
	for _, b := range lane.Buckets {
		if n := *l.Limits.Of(b); n > 0 {
			words = append(words, fmt.Sprintf("%s %d", b, n))
		}
	}
	if l.Found != "" {
		words = append(words, "found: "+l.Found)
	}
	return strings.Join(words, ", ")
}

func (s *Session) state() State {
	snapshot := s.meter.Snapshot()
	total := snapshot.Total()
	out := State{
		Run: s.id, Experiment: s.Experiment.Name, Elapsed: snapshot.Elapsed.Seconds(),
		Counts: countsOf(total), Left: leftOf(total.Left), Budget: s.stopper.Budgets(),
		Forecast: s.forecast.Wall, ForecastRange: s.forecast.Range,
		Stopping: snapshot.Stopping, Attention: s.attention(snapshot),
		Notes: snapshot.Notes, Models: []ModelState{}, Workers: s.workers(),
	}
	for _, of := range snapshot.Models {
		lanes, waiting := s.pools.ByModel[of.Name].Status()
		m := ModelState{
			Model: of.Name, Counts: countsOf(of), Waiting: waiting.Requests, Lost: of.Lost,
			Requests: of.Requests, Faults: of.Faults, TokensPerMinute: of.TokensPerMinute,
			WaitsFor: of.Waits, Left: leftOf(of.Left),
			Agents: of.Agents, Closed: of.Closed, Lanes: []LaneState{},
		}
		for _, l := range lanes {
			m.Lanes = append(m.Lanes, LaneState{
				Lane: l.Name, InFlight: l.InFlight, Limits: l.Limits, Found: l.Found,
				Waits: l.Waits, Words: l.Words, Paused: l.Held,
			})
		}
		out.Models = append(out.Models, m)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.Tokens, out.Cost, out.PausedSince = s.tokens, s.cost, snapshot.PausedSince
	out.Unpriced = slices.Clone(s.unpriced)
	return out
}

// Snapshot returns what a view of the run shows.
func (s State) Snapshot() live.Snapshot {
	out := live.Snapshot{
		Elapsed: seconds(s.Elapsed), Stopping: s.Stopping, PausedSince: s.PausedSince,
		Success: s.Success.interval(), Notes: s.Notes, Workers: liveWorkers(s.Workers),
	}
	for _, a := range s.Attention {
		out.Attention = append(out.Attention, a.Attention)
	}
	for _, m := range s.Models {
		out.Models = append(out.Models, live.ModelState{
			Name: m.Model, Planned: m.Planned, Done: m.Done, Full: m.Full, Parked: m.Parked,
			Skipped: m.Skipped, InFlight: m.InFlight, Agents: m.Agents, Requests: m.Requests,
			Faults: m.Faults, Lost: m.Lost, TokensPerMinute: m.TokensPerMinute,
			Waits: m.WaitsFor, Success: m.Success.interval(), Left: m.Left.live(), Closed: m.Closed,
		})
	}
	return out
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func (s *Success) interval() live.Interval {
	if s == nil {
		return live.Interval{}
	}
	return live.Interval(s.Interval)
}

func (l *Left) live() live.Left {
	if l == nil {
		return live.Left{}
	}
	return live.Left{
		Expected: seconds(l.Seconds), Low: seconds(l.Low), High: seconds(l.High),
		ByPlan: l.Basis == "plan",
	}
}

func countsOf(m live.ModelState) Counts {
	c := Counts{
		Planned: m.Planned, Done: m.Done, Pending: m.Pending(), Parked: m.Parked,
		Skipped: m.Skipped, InFlight: m.InFlight, Full: m.Full,
	}
	if m.Done > 0 {
		c.Success = &Success{float64(m.Full) / float64(m.Done), stat.Interval(m.Success)}
	}
	return c
}

func leftOf(l live.Left) *Left {
	basis := "pace"
	switch {
	case l.Expected == 0:
		return nil
	case l.ByPlan:
		basis = "plan"
	}
	return &Left{
		Seconds: l.Expected.Seconds(), Low: l.Low.Seconds(), High: l.High.Seconds(), Basis: basis,
	}
}

// noteHeld remembers since when the user has paused all lanes.
func (s *Session) noteHeld(now time.Time) {
	held := true
	for _, p := range s.pools.ByModel {
		lanes, _ := p.Status()
		for _, l := range lanes {
			held = held && (l.Held || l.Closed != nil)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !held:
		s.heldSince = time.Time{}
	case s.heldSince.IsZero():
		s.heldSince = now
	}
}
