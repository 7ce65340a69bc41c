// Package floor plays policies without skill, to find out how much success needs no skill: the floor
// below a model's rate, as the best policy's rate is the ceiling above it.
//
// It owns the list of these policies. It does not judge whether a library is sound: package validate
// does, with the same policies.
package floor

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// Version names the policies and the sample. It changes whenever a floor can change, so that no
// floor in the cache is out of date.
const Version = "3"

// A Policy plays tasks without understanding them. It sees the conversation and the tools, as a
// model does.
type Policy struct {
	Name string
	// Does completes the sentence "an agent solves it that …".
	Does string
	// Copies means that the policy carries out a plan, so it needs one.
	Copies bool
	// Reads means that the policy compares words of the task's description.
	Reads bool
	// reading is how the policy searches a path of tools, if it does.
	reading *Reading
	// begin returns the policy's agent for a game at a task whose tools users wrote. If it is nil,
	// the simulated model of the policy's name plays.
	begin func(task *assay.Task, game uint64) assay.Provider
}

// The policies of all worlds are simulated models. Expert and Obedient only compare words and carry
// out plans, so they are policies, too.
var simulated = append([]Policy{
	{Name: sim.Expert, Does: "calls the tools whose descriptions share most words with the task", Reads: true},
	{Name: sim.Obedient, Does: "carries out the plan to the letter", Copies: true},
	{Name: sim.Copier, Does: "repeats the whole plan in each reply", Copies: true},
	{Name: sim.Inputs, Does: "runs the plan's tools on the inputs of the task", Copies: true},
	{Name: sim.Guesser, Does: "guesses tools from the names of the inputs"},
	{Name: sim.Alphabet, Does: "calls all tools in alphabetical order"},
	{Name: sim.Sprayer, Does: "searches for general words and calls the tools found"},
	{Name: sim.Starter, Does: "calls the first tools that many tasks need"},
	{Name: sim.Claimer, Does: "claims to be done at once"},
}, readers()...)

// readers returns the policies that search a path of tools.
func readers() (all []Policy) {
	for i := range Readings {
		r := &Readings[i]
		all = append(all, Policy{Name: r.Name, Does: r.Does, Reads: true, reading: r})
	}
	return all
}

// Random is the only policy for tools that users wrote whose games at a task differ.
const Random = "random"

// The policies for tools that users wrote.
var blinds = []Policy{
	{Name: "made-up", Does: "calls every tool with made-up values", begin: madeUp},
	{Name: "inputs", Does: "calls every tool with the values of the prompt", begin: filled},
	{Name: Random, Does: "makes random calls", begin: random},
	{Name: "echo", Does: "answers with the text of the task", begin: echo},
}

// Policies lists the policies that can play in a world.
func Policies(worldName string) []Policy {
	if !world.Of(worldName).OwnTools {
		return simulated
	}
	own := slices.DeleteFunc(slices.Clone(simulated), func(p Policy) bool {
		return !slices.Contains([]string{sim.Expert, sim.Obedient, sim.Claimer}, p.Name)
	})
	return append(own, blinds...)
}

// A Player plays policies at the tasks of a library.
type Player struct {
	library *library.Library
	runner  *episode.Runner
	models  *sim.Models
}

// NewPlayer returns a player of a library.
func NewPlayer(lib *library.Library) *Player {
	models := sim.New(lib.Catalog(), sim.Latency{}).Knowing(lib.Answer)
	return &Player{lib, episode.NewRunner(lib.Catalog(), 0), models}
}

// Play plays a policy once at a trial's task, under the trial's conditions. Policies that do not
// search for tools are given the list of them.
func (p *Player) Play(
	ctx context.Context, policy Policy, trial assay.Trial, task *assay.Task, game uint64,
) (*assay.Attempt, *assay.Transcript) {
	trial.Model, trial.AgentModel, trial.AgentTimeout, trial.ModelFaults = policy.Name, "", "", ""
	var agent assay.Provider = p.models
	if policy.begin != nil || policy.reading != nil {
		trial.Tools, trial.Protocol = assay.Listed, assay.Native
	}
	switch {
	case policy.begin != nil:
		agent = policy.begin(task, game)
	case policy.reading != nil:
		agent = newPathfinder(p.models, *policy.reading, task, game)
	}
	return p.runner.Run(ctx, agent, &trial, task)
}

// A Floor is what the best policy without skill reaches under a condition, over the trials that it
// played.
type Floor struct {
	Policy string `json:"policy"`
	// Full is the number of its full successes without its luck, and Best is that of the best policy
	// at the same trials; see [workflow.Fair].
	Full   float64 `json:"full"`
	Best   float64 `json:"best"`
	Played int     `json:"played"`
}

// Floors has the floor of each condition. A condition is a cell without model and task type.
type Floors map[assay.Cell]Floor

// Rate returns the floor of a cell whose trials have a mean ceiling: the same share of the ceiling
// that the policy reached at its own trials, which is at most all of it. If the ceiling is nil, which
// means that it is unknown, the floor is the rate at these trials. Rate returns false if the floor is
// unknown.
func (f Floors) Rate(cell assay.Cell, ceiling *float64) (rate float64, ok bool) {
	found, ok := f[conditionOf(cell)]
	switch full := max(0, found.Full); {
	case full == 0:
		return 0, ok
	case ceiling == nil:
		return full / float64(found.Played), ok
	default:
		return full / found.Best * *ceiling, ok
	}
}

// conditionOf returns a cell without what makes no difference to a policy, which knows the tools' own
// interface.
func conditionOf(cell assay.Cell) assay.Cell {
	cell.Model, cell.TaskType, cell.Interface = "", "", ""
	return cell
}

// The sizes of the sample. With 40 trials a floor has a standard error of 8 points at most, and a
// model's skill, which uses the sum over all conditions, a much smaller one.
const (
	maxEpisodes  = 2000 // in all, of the policies that were chosen
	maxTrials    = 40   // a condition
	minTrials    = 10
	choosing     = 8 // trials at which all policies play, to choose one
	maxCondition = 400
)

// Find returns the floors of all conditions of planned trials. For each kind of plan and difficulty
// it chooses the policy with most success with the most reliable tools, and plays it at a sample of
// the trials of each condition. Chance hardly raises the floor, because it counts success without
// luck, and the rates of policies are far apart, or equal. Without floors are libraries with a server
// of tools, because each episode would start it, libraries with tasks that a model judges, because it
// would have to be asked, and experiments with more than 400 conditions.
func Find(
	ctx context.Context, lib *library.Library, trials iter.Seq[assay.Trial],
) (Floors, error) {
	if lib.Catalog().Server() != nil {
		return nil, nil
	}
	if lib.Own() {
		if levels, err := lib.Levels(ctx); err != nil || len(levels.Judges) > 0 {
			return nil, err
		}
	}
	s := sampleOf(trials)
	if len(s) == 0 || len(s) > maxCondition {
		return nil, nil
	}
	c := cacheOf(lib, s)
	if floors, ok := c.read(); ok {
		return floors, nil
	}
	floors, err := find(ctx, NewPlayer(lib), s)
	if err == nil {
		c.write(floors)
	}
	return floors, err
}

// A trialSample has trials of each condition, with the same tasks for all conditions if possible.
type trialSample map[assay.Cell][]assay.Trial

// sampleOf takes the trials with the lowest seeds, because the seed of a task is up to chance and
// does not depend on the condition. Trials of different models are the same for a policy.
func sampleOf(trials iter.Seq[assay.Trial]) trialSample {
	s := make(trialSample)
	order := func(a, b assay.Trial) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.TaskType, b.TaskType))
	}
	for t := range trials {
		at := conditionOf(t.Cell)
		t.Model, t.ID, t.AgentModel, t.AgentTimeout, t.ModelFaults, t.Interface = "", "", "", "", "", ""
		t.Sampling = assay.Sampling{}
		list := s[at]
		i, found := slices.BinarySearchFunc(list, t, order)
		if found || i == maxTrials {
			continue
		}
		s[at] = slices.Insert(list, i, t)[:min(len(list)+1, maxTrials)]
	}
	most := max(minTrials, min(maxTrials, maxEpisodes/max(1, len(s))))
	for at, list := range s {
		s[at] = list[:min(len(list), most)]
	}
	return s
}

// A planKind is a kind of plan at a difficulty. All its conditions have the same policy.
type planKind struct{ variant, severity, difficulty string }

func find(ctx context.Context, p *Player, s trialSample) (Floors, error) {
	conditions := slices.SortedFunc(maps.Keys(s), func(a, b assay.Cell) int {
		return cmp.Or(cmp.Compare(b.Reliability, a.Reliability), cmp.Compare(a.Faults, b.Faults),
			cmp.Compare(a.Variant+" "+a.Severity, b.Variant+" "+b.Severity),
			cmp.Compare(a.Difficulty, b.Difficulty))
	})
	chosen := make(map[planKind]Policy)
	floors := make(Floors)
	for _, at := range conditions {
		k := planKind{at.Variant, at.Severity, at.Difficulty}
		var f Floor
		var err error
		if policy, ok := chosen[k]; ok {
			f, err = p.count(ctx, policy, s[at])
		} else { // at the most reliable tools
			chosen[k], f, err = p.choose(ctx, s[at])
		}
		if err != nil {
			return nil, err
		}
		floors[at] = f
	}
	return floors, nil
}

// choose returns the policy that succeeds most, with its floor. All policies play a few trials, and
// the ones that are as good as the best, or nearly, play the others, too.
func (p *Player) choose(
	ctx context.Context, trials []assay.Trial,
) (best Policy, top Floor, err error) {
	few := min(choosing, len(trials))
	able := slices.DeleteFunc(slices.Clone(Policies(trials[0].World)), func(p Policy) bool {
		return p.Copies && !assay.ShowsPlan(trials[0].Variant)
	})
	first, most := make(map[string]Floor), 0.0
	for _, policy := range able {
		f, err := p.count(ctx, policy, trials[:few])
		if err != nil {
			return best, top, err
		}
		first[policy.Name], most = f, max(most, f.Full)
	}
	for _, policy := range able {
		f := first[policy.Name]
		if f.Full < most-1 || most == 0 && top.Played > 0 {
			continue
		}
		others, err := p.count(ctx, policy, trials[few:])
		if err != nil {
			return best, top, err
		}
		f.Full, f.Best, f.Played = f.Full+others.Full, f.Best+others.Best, f.Played+others.Played
		if top.Played == 0 || f.Full > top.Full {
			best, top = policy, f
		}
	}
	return best, top, nil
}

// count returns the floor of a policy at trials. A trial whose tools or checks break is not a
// success.
func (p *Player) count(ctx context.Context, policy Policy, trials []assay.Trial) (Floor, error) {
	fair, best := make([]float64, len(trials)), make([]float64, len(trials))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, t := range trials {
		g.Go(func() error {
			task, err := p.library.TaskOf(ctx, &t)
			if err != nil {
				return fmt.Errorf("floor: %w", err)
			}
			a, tr := p.Play(ctx, policy, t, &task, t.Seed)
			won := a.Level == assay.FullSuccess
			fair[i], best[i] = workflow.Fair(p.library.Catalog(), &t, &task, tr, won)
			return context.Cause(ctx)
		})
	}
	err := g.Wait()
	f := Floor{Policy: policy.Name, Played: len(trials)}
	for i := range trials { // in this order, whichever ended first, so that sums are equal
		f.Full, f.Best = f.Full+fair[i], f.Best+best[i]
	}
	return f, err
}
