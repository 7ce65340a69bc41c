package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/store"
)

// forecast is what pending trials will probably take, model by model.
type forecast struct {
	Models []modelForecast `json:"models"`
	// Wall is that of the slowest model: models do not wait for each other.
	Wall float64 `json:"wall_s"`
}

type modelForecast struct {
	Model        string  `json:"model"`
	Trials       int     `json:"trials"`
	Requests     int     `json:"requests"`
	InputTokens  int     `json:"input_tokens"`
	OutputTokens int     `json:"output_tokens"`
	Cost         float64 `json:"cost_usd"`
	Wall         float64 `json:"wall_s"`
	// Bound is the limit that decides the time, and Basis what the forecast
	// rests on.
	Bound string `json:"bound_by"`
	Basis string `json:"basis"`
}

// What is assumed of a model that was never asked: the time to a reply and the
// tokens of one. The rest is taken from a rehearsal with simulated agents.
const (
	assumedLatency = 3 * time.Second
	assumedReply   = 150
	rehearsed      = 40 // trials
	// usualSigma is how latencies of hosted models spread.
	usualSigma = 0.5
)

// foresee forecasts the pending trials of each model. It asks no endpoint. The
// store may be nil.
func (j *job) foresee(ctx context.Context, db *store.DB, configs map[string][]lane.Config, pending map[string]int, simLatency time.Duration) (forecast, error) {
	profiles := make(map[string]map[string]store.Profile) // by model and variant
	if db != nil {
		all, err := db.Profile(ctx)
		if err != nil {
			return forecast{}, err
		}
		for _, p := range all {
			if profiles[p.Model] == nil {
				profiles[p.Model] = make(map[string]store.Profile)
			}
			profiles[p.Model][p.Variant] = p
		}
	}
	f := forecast{Models: []modelForecast{}}
	for _, model := range j.experiment.Models {
		work, basis, err := j.work(ctx, model, profiles[model], simLatency)
		if err != nil {
			return forecast{}, err
		}
		work.Conversations = pending[model]
		s := lane.Simulate(configs[model], work)
		bound, _ := boundBy(s.Ledgers, s.Wall)
		f.Models = append(f.Models, modelForecast{
			Model: model, Trials: pending[model], Requests: s.Requests, InputTokens: s.InputTokens, OutputTokens: s.OutputTokens,
			Cost: s.Cost, Wall: s.Wall.Seconds(), Bound: bound, Basis: basis,
		})
		f.Wall = max(f.Wall, s.Wall.Seconds())
	}
	return f, nil
}

// work says what a trial of a model takes, from past attempts at the
// experiment's variants, or else from a rehearsal.
func (j *job) work(ctx context.Context, model string, past map[string]store.Profile, simLatency time.Duration) (lane.Work, string, error) {
	var sum store.Profile
	variants := make(map[string]bool)
	for cell := range j.plan.Cells(model) {
		variants[cell.Variant] = true
	}
	for variant := range variants {
		p := past[variant]
		sum.Attempts += p.Attempts
		sum.Turns += p.Turns
		sum.Requests += p.Requests
		sum.InputTokens += p.InputTokens
		sum.OutputTokens += p.OutputTokens
		sum.WorkingMS += p.WorkingMS
	}
	if sum.Attempts > 0 && sum.Requests > 0 {
		n := float64(sum.Requests)
		return lane.Work{
			Turns: n / float64(sum.Attempts), Prompt: float64(sum.InputTokens) / n, Reply: float64(sum.OutputTokens) / n,
			Latency: time.Duration(float64(sum.WorkingMS) / n * float64(time.Millisecond)), Sigma: usualSigma,
		}, fmt.Sprintf("%d earlier attempts", sum.Attempts), nil
	}
	work, err := j.rehearse(ctx, model)
	if err != nil {
		return lane.Work{}, "", err
	}
	if sim.Is(model) && j.experiment.Providers == "" {
		// The mean of a log-normal whose median is known.
		work.Latency = time.Duration(float64(simLatency) * math.Exp(simSigma*simSigma/2))
		work.Sigma = simSigma
		return work, "a rehearsal", nil
	}
	work.Latency, work.Sigma, work.Reply = assumedLatency, usualSigma, max(work.Reply, assumedReply)
	return work, fmt.Sprintf("a rehearsal; %v a reply assumed", assumedLatency), nil
}

// rehearse runs a few of a model's trials with simulated agents, without any
// waiting, to learn how long conversations and prompts are.
func (j *job) rehearse(ctx context.Context, model string) (lane.Work, error) {
	agent := model
	if !sim.Is(model) {
		agent = sim.Listed
	}
	agents := sim.New(j.library.Catalog(), sim.Latency{})
	runner := episode.NewRunner(j.library.Catalog(), 0)
	var sum assay.Attempt
	trials := 0
	random := rand.New(rand.NewPCG(1, 1)) // the same sample each time
	chosen := make(map[int]bool, rehearsed)
	for range rehearsed {
		chosen[random.IntN(max(1, j.plan.Planned(model)))] = true
	}
	for trial := range j.plan.Some(model, func(place int) bool { return chosen[place] }) {
		task, err := j.library.Task(ctx, trial.Task, trial.Difficulty)
		if err != nil {
			return lane.Work{}, err
		}
		trial.Model = agent
		a, _ := runner.Run(ctx, agents, &trial, &task)
		trials++
		sum.Requests += a.Outcome.Turns
		sum.InputTokens += a.InputTokens
		sum.OutputTokens += a.OutputTokens
	}
	n := float64(max(1, sum.Requests))
	return lane.Work{
		Turns: n / float64(max(1, trials)), Prompt: float64(sum.InputTokens) / n, Reply: float64(sum.OutputTokens) / n,
	}, nil
}
