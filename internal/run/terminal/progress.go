package terminal

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Progress is the state of a run at one moment. Views, `assay ctl status`, the events of
// `--display json` and the pages of `assay view` all show it. Times are in seconds.
type Progress struct {
	Run        assay.RunID `json:"run"`
	Experiment string      `json:"experiment"`
	// Counts add up all models.
	Counts
	Models []ModelState `json:"models"`
	// Workers is missing if the run itself carries out the attempts.
	Workers []Worker `json:"workers,omitempty"`
	Elapsed float64  `json:"elapsed_s"`
	// Left is missing if it is unknown, because the run is paused or a model makes no progress.
	Left *TimeLeft `json:"left,omitempty"`
	// Forecast is how long the run was to take when it began. 0 means unknown.
	Forecast float64 `json:"forecast_s"`
	// ForecastRange has the range of that if the endpoint is unknown.
	ForecastRange job.Range `json:"forecast_range,omitzero"`
	// Tokens and Cost are the usage of this run, which Budget limits.
	Tokens int     `json:"tokens"`
	Cost   float64 `json:"cost_usd"`
	// The simulated user's part of both.
	UserTokens int     `json:"user_tokens,omitempty"`
	UserCost   float64 `json:"user_cost_usd,omitempty"`
	// The judges' part of both.
	JudgeTokens int     `json:"judge_tokens,omitempty"`
	JudgeCost   float64 `json:"judge_cost_usd,omitempty"`
	// Unpriced names the models with requests of unknown cost, which Cost leaves out.
	Unpriced []string     `json:"unpriced,omitempty"`
	Budget   plan.Budgets `json:"budget,omitzero"`
	// Stopping is true if the run starts no new trials.
	Stopping bool `json:"stopping"`
	// PausedSince is when the user paused all lanes. It is missing if a lane is not paused.
	PausedSince time.Time `json:"paused_since,omitzero"`
	// Attention lists the things that keep trials from ending well, most trials first.
	Attention []Attention `json:"attention"`
	// Notes are messages for the user, one line each, oldest first. Later ones are only added.
	Notes []string `json:"notes"`
}

// Counts count trials. They include the trials of earlier runs of the experiment.
type Counts struct {
	job.Standing
	// Success is the share of full successes among the trials that are done, with its 95 % interval,
	// as a report has it. It is missing if no trial is done, and for models together, whose mean says
	// nothing about any of them.
	Success *Success `json:"success,omitempty"`
}

// A Success is a rate of full success.
type Success struct {
	Rate     float64       `json:"rate"`
	Interval stat.Interval `json:"interval"`
}

// TimeLeft is the expected time until work is done, in seconds. Low and High are its range in the
// plan if the endpoint is unknown, or 0.
type TimeLeft struct {
	Seconds float64 `json:"seconds"`
	Low     float64 `json:"low,omitempty"`
	High    float64 `json:"high,omitempty"`
	// Basis is [ByPace] or [ByPlan].
	Basis string `json:"basis"`
}

// The bases of a [TimeLeft]. The plan is the forecast from before the run, and the pace how fast
// replies come.
const (
	ByPace = "pace"
	ByPlan = "plan"
)

// slower returns the longer of two times.
func (l *TimeLeft) slower(other *TimeLeft) *TimeLeft {
	if l == nil || other == nil {
		return cmp.Or(l, other)
	}
	longest := *l
	if other.Seconds > l.Seconds {
		longest = *other
	}
	longest.Low, longest.High = max(l.Low, other.Low), max(l.High, other.High)
	return &longest
}

// A ModelState describes a model of a run.
type ModelState struct {
	Model string `json:"model"`
	Counts
	// InRun is what the attempts of the run came to.
	InRun   *job.RunCount `json:"-"`
	Waiting int           `json:"waiting"`
	// Lost is the share of the lanes' time, from 0 to 1, that went to requests without a reply.
	Lost float64 `json:"lost"`
	// Agents counts the agents by their states. It is missing for a bare model.
	Agents map[assay.AgentState]int `json:"agents,omitzero"`
	// Requests counts the requests of this run.
	Requests int `json:"requests"`
	// TokensPerMinute is the rate over the last minute or since the start.
	TokensPerMinute float64 `json:"tokens_per_minute"`
	// Waits describes why requests wait.
	Waits string `json:"waits_for,omitempty"`
	// Left is like the run's.
	Left *TimeLeft `json:"left,omitempty"`
	// Closed is why the model cannot serve any more.
	Closed string      `json:"closed,omitempty"`
	Lanes  []LaneState `json:"lanes"`
}

// A LaneState describes a lane of a run.
type LaneState struct {
	Lane     string      `json:"lane"`
	InFlight int         `json:"in_flight"`
	Limits   lane.Limits `json:"limits"`
	// Found lists the limits that the run found out; see [limit.Limiter.Words].
	Found string `json:"found,omitempty"`
	Waits string `json:"waits"`
	// Words are the endpoint's own words about a wait.
	Words  string `json:"words,omitempty"`
	Paused bool   `json:"paused"`
}

// LimitsText lists the limits that are stated, and the limits that the run found out.
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

// A Worker is a process that carries out attempts of a run.
type Worker struct {
	Name     string `json:"worker"`
	Slots    int    `json:"slots"`
	InFlight int    `json:"in_flight"`
	// Trials are those in flight, in order.
	Trials []assay.TrialID `json:"trials"`
	// Done counts attempts that have ended.
	Done int `json:"done"`
	// Leaving is true if it takes no more attempts.
	Leaving bool `json:"leaving,omitempty"`
	// Lost is true if it was silent for a lease.
	Lost  bool      `json:"lost,omitempty"`
	Since time.Time `json:"since"`
	Seen  time.Time `json:"seen"`
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
	// Advice is the advice to the user. It may be empty.
	Advice string `json:"mend,omitempty"`
	// Order is the command of `assay ctl` that helps. It is nil if no command does.
	Order *Remedy `json:"order,omitempty"`
}

// A Remedy is a command of `assay ctl` with the names of its lanes or models.
type Remedy struct {
	Do    string   `json:"do"`
	Names []string `json:"names,omitempty"`
}

// String returns the attention as a line.
func (a Attention) String() string {
	text := a.Text
	if a.Trials > 0 {
		text += fmt.Sprintf(" (trials: %d)", a.Trials)
	}
	if a.Advice != "" {
		text += " → " + a.Advice
	}
	return text
}

// Total returns the sum over all models. Its Left is taken from the slowest model, or nil if the
// Left of a working model is unknown. Waits and Closed are empty.
func (p *Progress) Total() ModelState {
	total := ModelState{Model: "all", Agents: make(map[assay.AgentState]int)}
	known := true
	for _, m := range p.Models {
		total.Standing.Add(m.Standing)
		total.Requests += m.Requests
		total.TokensPerMinute += m.TokensPerMinute
		total.Left = total.Left.slower(m.Left)
		for state, n := range m.Agents {
			total.Agents[state] += n
		}
		known = known && (m.Left != nil || m.Pending == 0 || m.Closed != "")
	}
	if !known {
		total.Left = nil
	}
	if len(p.Models) == 1 {
		total.Success = p.Models[0].Success
	}
	return total
}
