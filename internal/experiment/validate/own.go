package validate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
)

// A Doubt is a problem with a task whose tools users wrote.
type Doubt string

// The doubts, worst first.
const (
	Breaks            Doubt = "a tool or check breaks"
	OwnUnsolvable     Doubt = "unsolvable"
	SolvedByNothing   Doubt = "solved by doing nothing"
	NotDiscriminating Doubt = "not discriminating"
	JudgedTwice       Doubt = "judged differently twice"
	PlayedTwice       Doubt = "different when it is played twice with one seed"
	Unproved          Doubt = "has no plan, so nothing proves that it can be solved"
)

// A Finding is a doubt about a task.
type Finding struct {
	Task   string `json:"task"`
	Doubt  Doubt  `json:"doubt"`
	Detail string `json:"detail,omitempty"`
}

// Grave reports whether the library is not sound because of the finding.
func (f *Finding) Grave() bool { return f.Doubt != Unproved }

func (f *Finding) String() string {
	text := fmt.Sprintf("%s: %s", f.Task, f.Doubt)
	if f.Detail != "" {
		text += " (" + f.Detail + ")"
	}
	return text
}

// The random agent plays each task randomGames times, and solves it if it does so more often than
// randomWins times.
const (
	randomGames = 12
	randomWins  = randomGames / 4
)

// A server starts for each attempt that calls its tools, so tasks with a server are played less
// often: servedGames times with random calls, and servedEpisodes times in all on tools that fail.
const (
	servedGames    = 4
	servedEpisodes = 20
)

// randomGames returns the number of games of the random agent, and how many it wins without a
// doubt.
func (v *validator) randomGames() (games, wins int) {
	if v.served() {
		return servedGames, servedGames / 4
	}
	return randomGames, randomWins
}

func (v *validator) served() bool { return v.library.Catalog().Server() != nil }

// playOwn plays a task whose tools users wrote: with its plan, with an agent that calls no tool,
// and with agents that do not read it.
func (v *validator) playOwn(ctx context.Context, task *assay.Task) {
	v.proof.Tasks++
	doubt := func(d Doubt, detail string) {
		same := func(f Finding) bool { return f.Task == label(task) && f.Doubt == d }
		if !slices.ContainsFunc(v.proof.Findings, same) {
			v.proof.Findings = append(v.proof.Findings, Finding{label(task), d, detail})
		}
	}
	play := func(agent assay.Provider, cell assay.Cell, round int) (*assay.Attempt, string) {
		return v.ownEpisode(ctx, task, cell, agent, round, doubt)
	}

	v.playPlan(task, play, doubt)
	if world.Of(v.proof.World).Environments {
		v.playTwice(ctx, task, doubt)
	}
	v.won.begin(task)
	nothing := cellOf(sim.Claimer, assay.Baseline, 1)
	if a, _ := play(v.models, nothing, 0); a.Level != assay.Failure && a.FaultKind == "" {
		doubt(SolvedByNothing, string(a.Level))
		if a.Level == assay.FullSuccess {
			v.won.add(task, sim.Claimer)
			return
		}
	}
	for _, p := range floor.Policies(v.proof.World) {
		if !p.Copies && p.Name != sim.Claimer && v.solves(ctx, task, p, doubt) {
			v.won.add(task, p.Name)
		}
	}
}

// solves plays a task with a policy without skill, and reports whether it solves the task. A policy
// that does not even compare words gives rise to a doubt. The random one plays often.
func (v *validator) solves(
	ctx context.Context, task *assay.Task, p floor.Policy, doubt func(Doubt, string),
) bool {
	cell := cellOf(p.Name, assay.Baseline, 1)
	if p.Name != floor.Random {
		trial := v.trial(task, cell, assay.Listed, 0)
		trial.Calls = max(trial.Calls, len(v.library.Catalog().All()))
		a, _ := v.floors.Play(ctx, p, trial, task, 0)
		if a.Level == assay.FullSuccess && p.Name != sim.Expert {
			doubt(NotDiscriminating, "an agent solves it that "+p.Does)
		}
		return a.Level == assay.FullSuccess
	}
	wins := 0
	games, lucky := v.randomGames()
	for game := range games {
		trial := v.trial(task, cell, assay.Listed, game)
		if a, _ := v.floors.Play(ctx, p, trial, task, uint64(game)); a.Level == assay.FullSuccess {
			wins++
		}
	}
	if wins > lucky {
		doubt(NotDiscriminating, fmt.Sprintf("random calls solve it in %d of %d episodes", wins,
			games))
	}
	return wins > lucky
}

// playPlan plays a task with its reference plan: once on tools that always work, and often on tools
// that fail sometimes.
func (v *validator) playPlan(
	task *assay.Task, play func(assay.Provider, assay.Cell, int) (*assay.Attempt, string),
	doubt func(Doubt, string),
) {
	p := &v.proof
	if task.Reference == nil {
		p.WithoutPlan++
		doubt(Unproved, "")
		return
	}
	a, why := play(v.models, cellOf(sim.Optimal, assay.Optimal, 1), 0)
	if a.Level != assay.FullSuccess && a.FaultKind == "" {
		p.Unsolvable++
		doubt(OwnUnsolvable, "its own plan does not solve it: "+why)
	}
	if a.Level != assay.FullSuccess {
		return // luck makes no task better
	}
	for round := range v.rounds {
		a, _ := play(v.models, cellOf(sim.Optimal, assay.Optimal, Reliability), round)
		if a.Level == assay.FullSuccess {
			v.full++
		}
		v.planned += a.Best
		v.variance += a.Best * (1 - a.Best)
		v.played++
	}
}

func cellOf(model, variant string, reliability float64) assay.Cell {
	return assay.Cell{Model: model, Variant: variant, Reliability: reliability}
}

// ownEpisode plays a task once. Why is the first condition of full success that does not hold.
func (v *validator) ownEpisode(
	ctx context.Context, task *assay.Task, cell assay.Cell, agent assay.Provider, round int,
	doubt func(Doubt, string),
) (a *assay.Attempt, why string) {
	trial := v.trial(task, cell, assay.Listed, round)
	a, tr := v.runner.Run(ctx, agent, &trial, task)
	if a.FaultKind != "" {
		if ctx.Err() == nil {
			doubt(Breaks, strings.TrimPrefix(a.FaultDetail, string(a.FaultKind)+": "))
		}
		return a, ""
	}
	e := score.New(v.library.Catalog()).Explain(&trial, task, tr)
	if e.Outcome.Level != a.Level || e.Outcome.ErrorCategory != a.ErrorCategory {
		doubt(JudgedTwice, fmt.Sprintf("first %s, then %s", a.Level, e.Outcome.Level))
	}
	for _, r := range e.Rules {
		if !r.Holds && r.Verdict == "level" {
			because, _, _ := strings.Cut(r.Because, " → ")
			return a, fmt.Sprintf("it is not true that %s (%s)", r.Rule, because)
		}
	}
	return a, ""
}

// concludeOwn sorts the findings by task.
func (v *validator) concludeOwn(p *Proof) {
	slices.SortStableFunc(p.Findings, func(a, b Finding) int { return cmp.Compare(a.Task, b.Task) })
	if slices.ContainsFunc(p.Findings, func(f Finding) bool { return f.Grave() }) {
		p.Sound = false
	}
}
