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
	"github.com/assay-eval/assay/internal/result/stat"
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

// leastEpisodes is the minimum number of episodes that the oracle plays.
const leastEpisodes = 1000

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
	own bool // users wrote the tools
	// most limits the tasks that are played, if it is not 0, and wanted chooses them.
	most   int
	wanted func(assay.TaskID) bool
	// turns and calls are the limits of an episode.
	turns, calls int
	library      *library.Library
	runner       *episode.Runner
	models       *sim.Models
	proof        Proof
	// rounds is the number of times that the oracle plays each task on tools that fail. The other
	// fields are sums over all these episodes.
	rounds, full      int
	played            int // by plans that users wrote
	planned, variance float64
	games             games
	floors            *floor.Player
	won               wins
	show              func(done, of int)
	// number is the number of the task that is played, in the order of the library.
	number int
	// failed, null and unsolvable are examples for the proof.
	failed, null, unsolvable []listedTask
}

// A listedTask is a task that a proof may name, with its number in the order of the library.
type listedTask struct {
	number int
	label  string
}

func newValidator(lib *library.Library, worldName string) *validator {
	v := &validator{
		library: lib,
		runner:  episode.NewRunner(lib.Catalog(), 0),
		models:  sim.New(lib.Catalog(), sim.Latency{}).Knowing(lib.Answer),
		rounds:  1 + leastEpisodes/max(1, lib.Meta().Tasks),
		proof:   Proof{World: worldName},
		games:   newGames(),
		floors:  floor.NewPlayer(lib),
		won:     wins{by: make(map[[2]string]int), played: make(map[string]bool)},
		show:    func(int, int) {},
		own:     world.Of(worldName).OwnTools,
		wanted:  func(assay.TaskID) bool { return true },
		turns:   plan.DefaultTurns,
		calls:   plan.DefaultCalls,
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

func (v *validator) playAll(ctx context.Context) error {
	jobs, err := v.jobs(ctx)
	switch {
	case err != nil:
		return err
	case v.own: // their programs and states are played one at a time
		return v.playJobs(ctx, jobs, func() { v.show(v.proof.Tasks, len(jobs)) })
	}
	// The wordings of a task share episodes, so they stay together. The number of shards does not
	// depend on the machine, because the sums of reals depend on it.
	shards := make([]*validator, 16)
	lists := make([][]job, len(shards))
	places := make(map[assay.TaskID]int)
	for _, j := range jobs {
		if _, known := places[j.id]; !known {
			places[j.id] = len(places) % len(shards)
		}
		lists[places[j.id]] = append(lists[places[j.id]], j)
	}
	var mu sync.Mutex
	played := 0
	show := func() {
		mu.Lock()
		defer mu.Unlock()
		v.show(played, len(jobs))
		played++
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range shards {
		s := *v // they share the agents
		s.proof, s.games = Proof{World: v.proof.World}, newGames()
		s.won = wins{by: make(map[[2]string]int), played: make(map[string]bool)}
		shards[i] = &s
		g.Go(func() error {
			return shards[i].playJobs(ctx, lists[i], show)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, s := range shards {
		v.merge(s)
	}
	number := make(map[assay.TaskID]int)
	for _, j := range jobs {
		number[j.id] = j.number
	}
	v.won.sort(number)
	return nil
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

// playJobs plays tasks one after the other.
func (v *validator) playJobs(ctx context.Context, jobs []job, show func()) error {
	for _, j := range jobs {
		if v.most > 0 && v.proof.Tasks >= v.most {
			break
		}
		task, err := v.library.Task(ctx, j.id, j.difficulty)
		if err != nil {
			return err
		}
		show()
		v.number = j.number
		if v.own {
			v.playOwn(ctx, &task)
			err = context.Cause(ctx)
		} else {
			err = v.play(ctx, &task)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge adds what another validator found at other tasks.
func (v *validator) merge(o *validator) {
	v.full += o.full
	v.planned += o.planned
	v.variance += o.variance
	v.proof.Tasks += o.proof.Tasks
	v.proof.Unsolvable += o.proof.Unsolvable
	v.failed = append(v.failed, o.failed...)
	v.null = append(v.null, o.null...)
	v.unsolvable = append(v.unsolvable, o.unsolvable...)
	v.games.merge(&o.games)
	v.won.merge(&o.won)
}

// conclude computes the oracle's rate and decides whether the library is sound.
func (v *validator) conclude() Proof {
	p := v.proof
	p.Failed, p.Null, p.Examples = first(v.failed), first(v.null), first(v.unsolvable)
	full := float64(v.full)
	n := float64(p.Tasks * v.rounds)
	if v.own {
		n = float64(v.played)
	}
	if n > 0 {
		p.Oracle, p.Planned = full/n, v.planned/n
	}
	if v.variance > 0 {
		p.Z = (full - v.planned) / math.Sqrt(v.variance)
	}
	// If hardly any episode can fail, a difference of one episode is not evidence.
	within := math.Abs(full-v.planned) <= stat.Z999*math.Sqrt(v.variance)+1
	p.Sound = within && len(p.Failed) == 0 && len(p.Null) == 0
	p.Floors = v.won.floors()
	if v.own {
		v.concludeOwn(&p)
		return p
	}
	p.Games = v.games.worst()
	if v.library.Meta().Name == library.BuiltinName {
		p.Sound = p.Sound && !slices.ContainsFunc(p.Games, func(g Game) bool { return g.Pays() })
	}
	return p
}

// play plays one task: the oracle plays it on tools that always work and on tools that fail
// sometimes, and the null agent plays it once.
func (v *validator) play(ctx context.Context, task *assay.Task) error {
	p := &v.proof
	p.Tasks++
	play := func(
		model string, reliability float64, agent assay.Provider, round int,
	) (*assay.Attempt, error) {
		cell := cellOf(model, assay.Baseline, reliability)
		return v.episode(ctx, task, cell, assay.Discover, agent, round)
	}
	best := 0.0
	for round := range v.rounds {
		oracle := v.models.Oracle(task.Required, Reliability)
		a, err := play("oracle", Reliability, oracle, round)
		if err != nil {
			return err
		}
		if a.Level == assay.FullSuccess {
			v.full++
		}
		best = a.Best
		v.planned += best
		v.variance += best * (1 - best)
	}
	if best == 0 {
		p.Unsolvable++
		v.unsolvable = append(v.unsolvable, listedTask{v.number, label(task)})
	}

	oracle := v.models.Oracle(task.Required, 1)
	reliable, err := play("oracle", 1, oracle, 0)
	if err != nil {
		return err
	}
	if reliable.Best == 1 && reliable.Level != assay.FullSuccess {
		v.failed = append(v.failed, listedTask{v.number, label(task)})
	}

	null, err := play(sim.Mute, Reliability, v.models, 0)
	if err != nil {
		return err
	}
	if null.Level != assay.Failure || null.Coverage != 0 {
		v.null = append(v.null, listedTask{v.number, label(task)})
	}
	if best == 0 {
		return nil
	}
	v.playFloors(ctx, task)
	if p.World == world.Assay1Name {
		return v.playGames(ctx, task)
	}
	return context.Cause(ctx)
}

// episode plays a task once.
func (v *validator) episode(
	ctx context.Context, task *assay.Task, cell assay.Cell, tools string, agent assay.Provider,
	round int,
) (*assay.Attempt, error) {
	trial := v.trial(task, cell, tools, round)
	a, _ := v.runner.Run(ctx, agent, &trial, task)
	if a.FaultKind != "" {
		return nil, fmt.Errorf("task %s: %s", label(task), a.FaultDetail)
	}
	return a, nil
}

// trial returns a trial of a task.
func (v *validator) trial(
	task *assay.Task, cell assay.Cell, tools string, round int,
) assay.Trial {
	cell.Difficulty, cell.TaskType = task.Difficulty, task.Type
	setting := assay.Setting{
		World: v.proof.World, Protocol: assay.Native, Tools: tools, Turns: v.turns, Calls: v.calls,
	}
	if world.Of(v.proof.World).Environments {
		setting.Calls, setting.Turns = room(task, v.calls, v.turns)
	}
	ref := assay.TaskRef{ID: task.ID, Digest: v.library.Digest(task)}
	return assay.NewTrial(cell, ref, setting, plan.DefaultSeed, repeatOf(task, round))
}

// Difficulties are the difficulties that a task can be worded at, and the mixtures of them.
var Difficulties = slices.Concat(assay.Difficulties, assay.Mixtures)

// repeatOf numbers the wordings of a task and the rounds, so that each episode has its own luck.
func repeatOf(task *assay.Task, round int) int {
	return 1 + (1+slices.Index(Difficulties, task.Difficulty))*(leastEpisodes+1) + round
}

func label(task *assay.Task) string { return fmt.Sprintf("%s (%s)", task.ID, task.Difficulty) }

// first returns the labels of the first examples.
func first(all []listedTask) (labels []string) {
	slices.SortFunc(all, func(a, b listedTask) int { return cmp.Compare(a.number, b.number) })
	const most = 5
	for _, e := range all[:min(most, len(all))] {
		labels = append(labels, e.label)
	}
	return labels
}
