// Package validate proves that the tasks of a library can be solved, and that an idle agent does
// not solve them.
//
// It plays every task of a library in a world, with agents that need no model: an oracle that knows
// the required tools, and a null agent that never calls one. Package library owns the tasks and
// checks their form.
package validate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// Solvable reports whether some policy can fully solve a task with the required tools in the
// default setting of experiments.
func Solvable(catalog *assay.Catalog, required []string) bool {
	trial := assay.Trial{
		Cell:    assay.Cell{Reliability: 1},
		Setting: assay.Setting{World: world.Names[0], Turns: plan.DefaultTurns, Calls: plan.DefaultCalls},
	}
	return workflow.Solve(catalog, workflow.ProblemOf(&trial, required)).Success() > 0
}

// A Proof is the result of playing all tasks of a library in one world.
type Proof struct {
	World string `json:"world"`
	Tasks int    `json:"tasks"`
	// Unsolvable counts the tasks that no policy can fully solve within the limit of calls.
	// Examples names some of them.
	Unsolvable int      `json:"unsolvable"`
	Examples   []string `json:"examples,omitempty"`
	// Oracle is the oracle's rate of full success, Planned is the rate that the planner computes
	// for it, and Z is their distance in standard deviations.
	Oracle  float64 `json:"oracle"`
	Planned float64 `json:"planned"`
	Z       float64 `json:"z"`
	// Failed names tasks at which the oracle fails although every call works. Null names tasks at
	// which the agent that calls no tool scores.
	Failed []string `json:"failed,omitempty"`
	Null   []string `json:"null,omitempty"`
	// Games holds the worst cell of each agent that does not do the task, for each tool setting and
	// reliability.
	Games []Game `json:"games,omitempty"`
	// Floors has the tasks of each difficulty that need no skill.
	Floors []Floor `json:"floors,omitempty"`
	// Findings are the doubts about tasks whose tools users wrote, and WithoutPlan counts such
	// tasks without a reference plan.
	Findings    []Finding `json:"findings,omitempty"`
	WithoutPlan int       `json:"without_plan,omitempty"`
	// Sound is true if the oracle's rate is as planned and Failed and Null are empty. In the
	// built-in library, no game pays either.
	Sound bool `json:"sound"`
}

// Reliability is the reliability of tools that sometimes fail.
const Reliability = 0.8

// minEpisodes is the minimum number of episodes that the oracle plays.
const minEpisodes = 1000

// Library plays all tasks of a library in a world. It calls show with the number of tasks that were
// played, and of all of them. [Quick] remembers what it finds out about an environment.
func Library(
	ctx context.Context, lib *library.Library, worldName string, show func(done, of int),
) (Proof, error) {
	v := newValidator(lib, worldName)
	v.show = show
	if err := v.playAll(ctx); err != nil {
		return Proof{}, err
	}
	proof := v.conclude()
	if server := lib.Catalog().Server(); server != nil && server.OpenEnv {
		remember(lib, &proof)
	}
	return proof, nil
}

// A validator plays tasks in one world.
type validator struct {
	library *library.Library
	world   string
	own     bool // users wrote the tools
	// most limits the tasks that are played, if it is not 0, and wanted chooses them.
	most   int
	wanted func(assay.TaskID) bool
	// turns and calls are the limits of an episode.
	turns, calls int
	// rounds is the number of times that the oracle plays each task on tools that fail.
	rounds int
	runner *episode.Runner
	models *sim.Models
	floors *floor.Player
	show   func(done, of int)

	results []result // in the order of the library

	mu    sync.Mutex // guards the fields below
	begun int
	games map[Game]*Game // by the game without its counts
}

// A result is what playing one task has shown.
type result struct {
	id                assay.TaskID // "" if the task was not played
	label, difficulty string
	// Full counts the full successes of the oracle in episodes on tools that fail. The planner
	// computes their mean and variance.
	episodes, full    int
	planned, variance float64

	unsolvable, failed, null, withoutPlan bool
	// tried is true if policies without skill played the task, and solvedBy names those that solved
	// it.
	tried    bool
	solvedBy []string
	findings []Finding
	losses   map[loss]int
}

func newValidator(lib *library.Library, worldName string) *validator {
	v := &validator{
		library: lib, world: worldName, own: world.Of(worldName).OwnTools,
		wanted: func(assay.TaskID) bool { return true },
		turns:  plan.DefaultTurns, calls: plan.DefaultCalls,
		rounds: 1 + minEpisodes/max(1, lib.Meta().Tasks),
		runner: episode.NewRunner(lib.Catalog(), 0),
		models: sim.New(lib.Catalog(), sim.Latency{}).Knowing(lib.Answer),
		floors: floor.NewPlayer(lib),
		show:   func(int, int) {},
		games:  make(map[Game]*Game),
	}
	if v.served() {
		v.rounds = 1 + servedEpisodes/max(1, lib.Meta().Tasks)
	}
	return v
}

// A job is a task to play, with its number in the order of the library.
type job struct {
	id         assay.TaskID
	difficulty string
	number     int
}

// playAll plays all tasks at once, but tasks with own tools one at a time, because they have
// programs and states. The wordings of a task share episodes, so they are played together.
func (v *validator) playAll(ctx context.Context) error {
	jobs, err := v.jobs(ctx)
	if err != nil {
		return err
	}
	v.results = make([]result, len(jobs))
	if v.most > 0 {
		jobs = jobs[:min(v.most, len(jobs))]
	}
	var tasks []assay.TaskID
	wordings := make(map[assay.TaskID][]job)
	for _, j := range jobs {
		if wordings[j.id] == nil {
			tasks = append(tasks, j.id)
		}
		wordings[j.id] = append(wordings[j.id], j)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	if v.own {
		g.SetLimit(1)
	}
	for n, id := range tasks {
		g.Go(func() error { return v.playWordings(ctx, n, wordings[id]) })
	}
	return g.Wait()
}

// jobs lists the tasks to play.
func (v *validator) jobs(ctx context.Context) (jobs []job, err error) {
	counts, err := v.library.Counts(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range counts {
		refs, err := v.library.Refs(ctx, c.Type, c.Difficulty)
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			if v.wanted(ref.ID) {
				jobs = append(jobs, job{ref.ID, c.Difficulty, len(jobs)})
			}
		}
	}
	return jobs, nil
}

// playWordings plays the wordings of the nth task one after the other.
func (v *validator) playWordings(ctx context.Context, n int, jobs []job) error {
	known := make(map[string]assay.Level)
	for _, j := range jobs {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		task, err := v.library.Task(ctx, j.id, j.difficulty)
		if err != nil {
			return err
		}
		v.mu.Lock()
		v.show(v.begun, len(v.results))
		v.begun++
		v.mu.Unlock()
		p := &taskPlayer{v, &task, n, known, &v.results[j.number]}
		*p.result = result{id: task.ID, label: label(&task), difficulty: task.Difficulty}
		if v.own {
			p.playOwn(ctx)
			err = context.Cause(ctx)
		} else {
			err = p.play(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// conclude computes the oracle's rate and decides whether the library is sound.
func (v *validator) conclude() Proof {
	p := Proof{World: v.world, Floors: floorsOf(v.results)}
	var episodes, full int
	var planned, variance float64
	for i := range v.results {
		r := &v.results[i]
		episodes, full = episodes+r.episodes, full+r.full
		planned, variance = planned+r.planned, variance+r.variance
	}
	within := isWithin(float64(full)-planned, variance)
	if v.own && !within {
		v.nameLuck(float64(full) - planned)
	}
	for i := range v.results {
		r := &v.results[i]
		if r.id == "" {
			continue
		}
		p.Tasks++
		if r.unsolvable {
			p.Unsolvable++
		}
		if r.withoutPlan {
			p.WithoutPlan++
		}
		p.Findings = append(p.Findings, r.findings...)
		for _, list := range []struct {
			named bool
			of    *[]string
		}{{r.unsolvable && !v.own, &p.Examples}, {r.failed, &p.Failed}, {r.null, &p.Null}} {
			if list.named && len(*list.of) < maxExamples {
				*list.of = append(*list.of, r.label)
			}
		}
	}
	if episodes > 0 {
		p.Oracle, p.Planned = float64(full)/float64(episodes), planned/float64(episodes)
	}
	if variance > 0 {
		p.Z = (float64(full) - planned) / math.Sqrt(variance)
	}
	p.Sound = within && len(p.Failed) == 0 && len(p.Null) == 0
	if v.own {
		slices.SortStableFunc(p.Findings, func(a, b Finding) int { return cmp.Compare(a.Task, b.Task) })
		p.Sound = p.Sound && !slices.ContainsFunc(p.Findings, func(f Finding) bool { return f.Grave() })
		return p
	}
	p.Games = v.worst()
	if v.library.Meta().Name == library.BuiltinName {
		p.Sound = p.Sound && !slices.ContainsFunc(p.Games, func(g Game) bool { return g.Pays() })
	}
	return p
}

// maxExamples is how many tasks each list of a proof names.
const maxExamples = 5

// A taskPlayer plays one task.
type taskPlayer struct {
	*validator
	task   *assay.Task
	number int // of the task, whatever its wording
	// known has the levels of episodes that other wordings of the task have had, too.
	known map[string]assay.Level
	*result
}

// play plays one task: the oracle plays it on tools that always work and on tools that fail
// sometimes, and the null agent plays it once.
func (v *taskPlayer) play(ctx context.Context) error {
	play := func(
		model string, reliability float64, agent assay.Provider, round int,
	) (*assay.Attempt, error) {
		return v.episode(ctx, cellOf(model, assay.Baseline, reliability), assay.Discover, agent, round)
	}
	best := 0.0
	for round := range v.rounds {
		a, err := play("oracle", Reliability, v.models.Oracle(v.task.Required, Reliability), round)
		if err != nil {
			return err
		}
		v.count(a)
		best = a.Best
	}
	v.unsolvable = best == 0

	reliable, err := play("oracle", 1, v.models.Oracle(v.task.Required, 1), 0)
	if err != nil {
		return err
	}
	v.failed = reliable.Best == 1 && reliable.Level != assay.FullSuccess
	null, err := play(sim.Mute, Reliability, v.models, 0)
	if err != nil {
		return err
	}
	v.null = null.Level != assay.Failure || null.Coverage != 0
	if v.unsolvable {
		return nil
	}
	v.playFloors(ctx)
	if v.world == world.Assay1Name {
		return v.playGames(ctx)
	}
	return context.Cause(ctx)
}

// count counts an episode of the oracle on tools that fail.
func (r *result) count(a *assay.Attempt) {
	r.episodes++
	if a.Level == assay.FullSuccess {
		r.full++
	}
	r.planned += a.Best
	r.variance += a.Best * (1 - a.Best)
}

// episode plays the task once.
func (v *taskPlayer) episode(
	ctx context.Context, cell assay.Cell, tools string, agent assay.Provider, round int,
) (*assay.Attempt, error) {
	trial := v.trial(cell, tools, round)
	a, _ := v.runner.Run(ctx, agent, &trial, v.task)
	if a.FaultKind != "" {
		return nil, fmt.Errorf("task %s: %s", v.label, a.FaultDetail)
	}
	return a, nil
}

// trial returns a trial of the task.
func (v *taskPlayer) trial(cell assay.Cell, tools string, round int) assay.Trial {
	cell.Difficulty, cell.TaskType = v.task.Difficulty, v.task.Type
	setting := assay.Setting{
		World: v.world, Protocol: assay.Native, Tools: tools, Turns: v.turns, Calls: v.calls,
	}
	if world.Of(v.world).Environments {
		setting.Calls, setting.Turns = room(v.task, v.calls, v.turns)
	}
	ref := assay.TaskRef{ID: v.task.ID, Digest: v.library.Digest(v.task)}
	return assay.NewTrial(cell, ref, setting, plan.DefaultSeed, repeatOf(v.task, round))
}

// Difficulties are the difficulties that a task can be worded at, and the mixtures of them.
var Difficulties = slices.Concat(assay.Difficulties, assay.Mixtures)

// repeatOf numbers the wordings of a task and the rounds, so that each episode has its own luck.
func repeatOf(task *assay.Task, round int) int {
	return 1 + (1+slices.Index(Difficulties, task.Difficulty))*(minEpisodes+1) + round
}

func label(task *assay.Task) string { return fmt.Sprintf("%s (%s)", task.ID, task.Difficulty) }
