package job

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/store"
)

// A Forecast estimates requests, tokens, dollars and time of pending trials, for each model.
type Forecast struct {
	Models []ModelForecast `json:"models"`
	// Wall is the time in seconds of the slowest model, because models run side by side.
	Wall float64 `json:"wall_s"`
	Range
}

// A Range holds the time that the work may take, in seconds. It is zero if the time is known.
type Range struct {
	Low  float64 `json:"wall_low_s,omitempty"`
	High float64 `json:"wall_high_s,omitempty"`
	// Unknown is the reason for the range, such as "the endpoint's speed is unknown".
	Unknown string `json:"unknown,omitempty"`
}

// A ModelForecast is the forecast of one model.
type ModelForecast struct {
	Model        string  `json:"model"`
	Trials       int     `json:"trials"`
	Requests     int     `json:"requests"`
	InputTokens  int     `json:"input_tokens"`
	OutputTokens int     `json:"output_tokens"`
	Cost         float64 `json:"cost_usd"`
	// Unpriced is true if a lane of the model has no price. Cost leaves its requests out.
	Unpriced bool    `json:"unpriced,omitempty"`
	Wall     float64 `json:"wall_s"`
	Range
	// Bound is the bottleneck, and Basis the source of the estimate.
	Bound string `json:"bound_by"`
	Basis string `json:"basis"`
	// Earlier counts the attempts that are the basis, or is 0. Besides is what else their trials have cost.
	Earlier int        `json:"-"`
	Besides assay.Bill `json:"-"`
}

// Assumptions about a model without earlier attempts. Everything else comes from a rehearsal with
// simulated agents.
const (
	assumedLatency = 3 * time.Second
	assumedReply   = 150 // output tokens
	rehearsed      = 40  // trials
	servedTrials   = 3   // trials if each of them starts a server

	// The range of an unknown endpoint. A small model of one's own is as fast as the first, and a
	// model that thinks as slow as the second.
	fastestReply = 100 * time.Millisecond
	slowestReply = 10 * time.Second
	// A lane without stated limits may allow only this many requests at once, and one a second.
	fewestAtOnce = 8
)

// assumed is the basis of a forecast for an endpoint whose speed is unknown.
var assumed = fmt.Sprintf("a rehearsal, assuming %v a reply", assumedLatency)

// Forecast estimates the pending trials of each model without any request. The store may be nil.
func (j *Job) Forecast(
	ctx context.Context, db *store.DB, pools *Pools,
	pending map[string]int, simLatency time.Duration,
) (Forecast, error) {
	profiles := make(map[string]map[string]store.Profile) // by model and variant
	if db != nil {
		all, err := db.Profile(ctx)
		if err != nil {
			return Forecast{}, err
		}
		for _, p := range all {
			if profiles[p.Model] == nil {
				profiles[p.Model] = make(map[string]store.Profile)
			}
			profiles[p.Model][p.Variant] = p
		}
	}

	f := Forecast{Models: []ModelForecast{}}
	walls := make(map[string]ModelForecast) // of the models that share lanes together
	var unknown doubt
	for _, model := range j.Experiment.Models {
		configs := pools.Configs[model] // a preview of an order may leave none
		builtin := sim.Is(j.Experiment.Base(model)) && len(configs) > 0 && configs[0].Name == builtinLane
		work, past, basis, err := j.work(ctx, model, builtin, profiles[model], simLatency)
		if err != nil {
			return Forecast{}, err
		}
		work.Conversations = pending[model]
		s := lane.Foresee(pools.Configs[model], work)
		bound := limitName(s.Bottleneck, s.Lane)
		doubt := doubtOf(pools.Configs[model], basis)
		m := ModelForecast{
			Model: model, Trials: pending[model], Requests: s.Requests,
			InputTokens: s.InputTokens, OutputTokens: s.OutputTokens,
			Cost: s.Cost, Unpriced: slices.ContainsFunc(pools.Configs[model], hasNoPrice),
			Wall: s.Wall.Seconds(), Bound: bound, Basis: basis, Earlier: past.Attempts, Besides: past.Besides,
			Range: doubt.span(pools.Configs[model], work, s),
		}
		f.Models = append(f.Models, m)

		all := walls[pools.owners[model]]
		all.Wall += m.Wall
		all.Low += cmp.Or(m.Low, m.Wall)
		all.High += cmp.Or(m.High, m.Wall)
		walls[pools.owners[model]] = all
		f.Wall, f.Low, f.High = max(f.Wall, all.Wall), max(f.Low, all.Low), max(f.High, all.High)
		if m.Unknown != "" {
			unknown = doubt.and(unknown)
		}
	}
	if f.Unknown = unknown.String(); f.Unknown == "" {
		f.Range = Range{}
	}
	return f, nil
}

// A doubt marks the unknown properties of endpoints.
type doubt struct{ speed, limits bool }

func doubtOf(lanes []lane.Config, basis string) doubt {
	unlimited := func(c lane.Config) bool { return c.Limits == lane.Limits{} }
	return doubt{basis == assumed, slices.ContainsFunc(lanes, unlimited)}
}

func (d doubt) and(other doubt) doubt {
	return doubt{d.speed || other.speed, d.limits || other.limits}
}

func (d doubt) String() string {
	switch {
	case d.speed && d.limits:
		return "the endpoint's speed and limits are unknown"
	case d.speed:
		return "the endpoint's speed is unknown"
	case d.limits:
		return "the endpoint's limits are unknown"
	}
	return ""
}

// span foresees work on endpoints that are as good and as bad as they may be. It returns an empty
// range if the stated limits decide about the time.
func (d doubt) span(lanes []lane.Config, work lane.Work, expected lane.Forecast) Range {
	if d == (doubt{}) || work.Conversations == 0 {
		return Range{}
	}
	best, worst := work, work
	if d.speed {
		best.Latency, worst.Latency = fastestReply, slowestReply
	}
	few, many := slices.Clone(lanes), slices.Clone(lanes)
	least := time.Duration(0)
	for i, c := range lanes {
		if (c.Limits == lane.Limits{}) {
			few[i].Limits.Concurrency, many[i].Limits.Concurrency = fewestAtOnce, c.Limits.Widest()
			least = time.Duration(expected.Requests/len(lanes)) * time.Second
		}
	}
	low := lane.Foresee(many, best).Wall
	high := max(lane.Foresee(few, worst).Wall, least)
	if float64(high) < 1.2*float64(low) {
		return Range{}
	}
	return Range{Low: low.Seconds(), High: high.Seconds(), Unknown: d.String()}
}

func hasNoPrice(c lane.Config) bool { return c.Price.Unknown() }

// work estimates one trial of a model from earlier attempts at the same variants, which it counts, or
// from a rehearsal if there are no attempts.
func (j *Job) work(
	ctx context.Context, model string, builtin bool, past map[string]store.Profile,
	simLatency time.Duration,
) (work lane.Work, sum store.Profile, basis string, err error) {
	variants := make(map[string]bool)
	for cell := range j.Plan.Cells(model) {
		variants[cell.Variant] = true
	}
	for variant := range variants {
		p := past[variant]
		sum.Attempts += p.Attempts
		sum.Turns += p.Turns
		sum.Requests += p.Requests
		sum.Spend = sum.Spend.Add(p.Spend)
		sum.Besides.Add(p.Besides)
		sum.WorkingMS += p.WorkingMS
	}
	if sum.Attempts > 0 && sum.Requests > 0 {
		n := float64(sum.Requests)
		return lane.Work{
			Turns:  n / float64(sum.Attempts),
			Prompt: float64(sum.InputTokens) / n, Reply: float64(sum.OutputTokens) / n,
			Cached:     float64(sum.CachedTokens) / float64(max(1, sum.InputTokens)),
			CacheWrite: float64(sum.CacheWriteTokens) / float64(max(1, sum.InputTokens)),
			Latency:    time.Duration(float64(sum.WorkingMS) / n * float64(time.Millisecond)),
		}, sum, fmt.Sprintf("%d earlier attempts", sum.Attempts), nil
	}

	if work, err = j.rehearse(ctx, model); err != nil {
		return lane.Work{}, sum, "", err
	}
	if builtin {
		// This is the mean of a log-normal distribution with a known median.
		work.Latency = time.Duration(float64(simLatency) * math.Exp(simSigma*simSigma/2))
		return work, sum, "a rehearsal", nil
	}
	work.Latency = assumedLatency
	work.Reply = max(work.Reply, assumedReply)
	return work, sum, assumed, nil
}

// rehearse runs some of a model's trials with simulated agents that reply at once, to measure how
// long conversations and prompts are.
func (j *Job) rehearse(ctx context.Context, model string) (lane.Work, error) {
	agent := j.Experiment.Base(model)
	if !sim.Is(agent) {
		agent = sim.Listed
	}
	var task assay.Task // the only one that the agents need to know, so the library is not read
	agents := sim.New(j.Library.Catalog(), sim.Latency{}).Knowing(j.Library.Answer).
		KnowingTasks(func(text string) (assay.Task, bool) {
			return task, strings.TrimSpace(task.Description) == strings.TrimSpace(text)
		})
	runner := episode.NewRunner(j.Library.Catalog(), 0)

	random := rand.New(rand.NewPCG(1, 1)) // the same sample each time
	chosen, trials := make(map[int]bool), rehearsed
	if j.Library.Catalog().Server() != nil {
		trials = servedTrials
	}
	for range trials {
		chosen[random.IntN(max(1, j.Plan.Planned(model)))] = true
	}

	var sum assay.Attempt
	trials = 0
	for trial := range j.Plan.Some(model, func(place int) bool { return chosen[place] }) {
		var err error
		if task, err = j.Library.TaskOf(ctx, &trial); err != nil {
			return lane.Work{}, err
		}
		trial.Model = agent
		a, _ := runner.Run(ctx, agents, &trial, &task)
		trials++
		sum.Requests += a.Outcome.Turns
		if trial.AsksConfidence { // whose request is no turn
			sum.Requests++
		}
		sum.Spend = sum.Spend.Add(a.Spend)
	}

	n := float64(max(1, sum.Requests))
	return lane.Work{
		Turns:  n / float64(max(1, trials)),
		Prompt: float64(sum.InputTokens) / n,
		Reply:  float64(sum.OutputTokens) / n,
	}, nil
}
