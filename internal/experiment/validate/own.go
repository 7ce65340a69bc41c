package validate

import (
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
	LosesToLuck       Doubt = "its own plan fails too often on tools that fail sometimes"
	BeatsOptimum      Doubt = "its own plan succeeds more often than the optimum"
	Unproved          Doubt = "has no plan, so nothing proves that it can be solved"
	OnlyJudge         Doubt = "a model judges it alone, so nothing proves what it takes"
)

// A Finding is a doubt about a task.
type Finding struct {
	Task   string `json:"task"`
	Doubt  Doubt  `json:"doubt"`
	Detail string `json:"detail,omitempty"`
}

// Grave reports whether the library is not sound because of the finding.
func (f *Finding) Grave() bool { return f.Doubt != Unproved && f.Doubt != OnlyJudge }

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

// doubt adds a finding, unless the task has one of the kind.
func (r *result) doubt(d Doubt, detail string) {
	if !slices.ContainsFunc(r.findings, func(f Finding) bool { return f.Doubt == d }) {
		r.findings = append(r.findings, Finding{r.label, d, detail})
	}
}

// playOwn plays a task whose tools users wrote: with its plan, with an agent that calls no tool,
// and with agents that do not read it.
func (v *taskPlayer) playOwn(ctx context.Context) {
	v.playPlan(ctx)
	if world.Of(v.world).Environments {
		v.playTwice(ctx)
	}
	if j := v.task.Judge; j != nil && j.Model != "" {
		v.playJudged(ctx, j)
		return
	}
	v.tried = true
	nothing := cellOf(sim.Claimer, assay.Baseline, 1)
	if a := v.ownEpisode(ctx, nothing, 0); a.Level != assay.Failure && a.FaultKind == "" {
		v.doubt(SolvedByNothing, string(a.Level))
		if a.Level == assay.FullSuccess {
			v.solvedBy = []string{sim.Claimer}
			return
		}
	}
	for _, p := range floor.Policies(v.world) {
		if !p.Copies && p.Name != sim.Claimer && v.solves(ctx, p) {
			v.solvedBy = append(v.solvedBy, p.Name)
		}
	}
}

// playJudged plays a task that a model judges, without asking it: only what the other conditions are
// worth can be found out.
func (v *taskPlayer) playJudged(ctx context.Context, j *assay.Judge) {
	if j.Alone() {
		v.doubt(OnlyJudge, j.Model)
		return
	}
	a := v.ownEpisode(ctx, cellOf(sim.Claimer, assay.Baseline, 1), 0)
	if a.Level == assay.FullSuccess {
		v.doubt(OnlyJudge, j.Model+", because its other conditions hold if nothing is done")
	}
}

// solves plays the task with a policy without skill, and reports whether it solves the task. A
// policy that does not even compare words gives rise to a doubt. The random one plays often.
func (v *taskPlayer) solves(ctx context.Context, p floor.Policy) bool {
	cell := cellOf(p.Name, assay.Baseline, 1)
	if p.Name != floor.Random {
		trial := v.trial(cell, assay.Listed, 0)
		trial.Calls = max(trial.Calls, len(v.library.Catalog().All()))
		a, _ := v.floors.Play(ctx, p, trial, v.task, 0)
		if a.Level == assay.FullSuccess && p.Name != sim.Expert {
			v.doubt(NotDiscriminating, "an agent solves it that "+p.Does)
		}
		return a.Level == assay.FullSuccess
	}
	wins := 0
	games, lucky := v.randomGames()
	for game := range games {
		trial := v.trial(cell, assay.Listed, game)
		if a, _ := v.floors.Play(ctx, p, trial, v.task, uint64(game)); a.Level == assay.FullSuccess {
			wins++
		}
	}
	if wins > lucky {
		v.doubt(NotDiscriminating, fmt.Sprintf("random calls solve it in %d of %d episodes", wins,
			games))
	}
	return wins > lucky
}

// playPlan plays the task with its reference plan: once on tools that always work, and often on
// tools that fail sometimes.
func (v *taskPlayer) playPlan(ctx context.Context) {
	if v.task.Reference == nil {
		v.withoutPlan = true
		v.doubt(Unproved, "")
		return
	}
	a := v.ownEpisode(ctx, cellOf(sim.Optimal, assay.Optimal, 1), 0)
	if a.Level != assay.FullSuccess && a.FaultKind == "" {
		v.unsolvable = true
		v.doubt(OwnUnsolvable, fmt.Sprintf("its own plan does not solve it: it is not true that %s (%s)",
			a.rule, a.because))
	}
	if a.Level != assay.FullSuccess {
		return // luck makes no task better
	}
	for round := range v.rounds {
		a := v.ownEpisode(ctx, cellOf(sim.Optimal, assay.Optimal, Reliability), round)
		if a.FaultKind != "" {
			continue // it is a finding by itself
		}
		v.count(a.Attempt)
		if a.Level != assay.FullSuccess {
			v.lose(lossOf(a.calls, a.rule))
		}
	}
}

func cellOf(model, variant string, reliability float64) assay.Cell {
	return assay.Cell{Model: model, Variant: variant, Reliability: reliability}
}

// A playedEpisode is an episode with the first condition of full success that does not hold in it,
// and the reason.
type playedEpisode struct {
	*assay.Attempt
	calls         []assay.CallRecord
	rule, because string
}

// ownEpisode plays the task once.
func (v *taskPlayer) ownEpisode(ctx context.Context, cell assay.Cell, round int) playedEpisode {
	trial := v.trial(cell, assay.Listed, round)
	a, tr := v.runner.Run(ctx, v.models, &trial, v.task)
	p := playedEpisode{Attempt: a}
	if a.FaultKind != "" {
		if ctx.Err() == nil {
			v.doubt(Breaks, strings.TrimPrefix(a.FaultDetail, string(a.FaultKind)+": "))
		}
		return p
	}
	e := score.New(v.library.Catalog()).Explain(&trial, v.task, tr)
	if e.Outcome.Level != a.Level || e.Outcome.ErrorCategory != a.ErrorCategory {
		v.doubt(JudgedTwice, fmt.Sprintf("first %s, then %s", a.Level, e.Outcome.Level))
	}
	p.calls = tr.Calls
	for _, r := range e.Rules {
		if !r.Holds && r.Verdict == "level" {
			p.rule = r.Rule
			p.because, _, _ = strings.Cut(r.Because, " → ")
			break
		}
	}
	return p
}
