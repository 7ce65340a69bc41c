package validate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// A Game is what an agent that does not do the task achieves in one cell, on tools that never fail.
type Game struct {
	Agent      string `json:"agent"`
	Variant    string `json:"variant"`
	Type       string `json:"task_type"`
	Difficulty string `json:"difficulty"`
	Tasks      int    `json:"tasks"`
	Full       int    `json:"full"`
	Partial    int    `json:"partial"`
}

// The shares of full and partial success that an agent has to stay below.
const (
	MostFull    = 0.02
	MostPartial = 0.05
)

// leastTasks is the number of tasks below which a cell says nothing about an agent.
const leastTasks = 20

// Pays reports whether the agent succeeds too often.
func (g *Game) Pays() bool { return g.Tasks >= leastTasks && g.gain() >= 1 }

// gain compares the agent's rates with the most that is accepted.
func (g *Game) gain() float64 {
	n := float64(g.Tasks)
	return max(float64(g.Full)/MostFull, float64(g.Partial)/MostPartial) / n
}

func (g *Game) String() string {
	return fmt.Sprintf("%s with %d full and %d partial successes at %d tasks (%s, %s, %s)",
		g.Agent, g.Full, g.Partial, g.Tasks, g.Type, g.Difficulty, g.Variant)
}

// games collects what such agents achieve in the world assay-1. In pilot they succeed, by its
// rules.
type games struct {
	cells  map[Game]*Game // by the game without its counts
	played map[string]assay.Level
}

func newGames() games {
	return games{cells: make(map[Game]*Game), played: make(map[string]assay.Level)}
}

// variants returns the variants in which an agent plays. The copier is tried on plans with a flaw,
// because a good plan is worth copying. A plan that only repeats steps is good, too.
func variants(agent string) []string {
	if agent != sim.Copier {
		return []string{assay.Baseline}
	}
	return slices.DeleteFunc(slices.Clone(assay.Variants), func(v string) bool {
		flaw, flawed := assay.FlawOf(v)
		return !flawed || flaw == assay.RedundantOperations
	})
}

// playGames lets every agent that does not do the task play it. Such an agent does not read the
// description, so different wordings of a task share an episode.
func (v *validator) playGames(ctx context.Context, task *assay.Task) error {
	for _, agent := range sim.Gaming {
		if agent == sim.Inputs { // a fair way to do a task of one step
			continue
		}
		for _, variant := range variants(agent) {
			flaw, flawed := assay.FlawOf(variant)
			if flawed && !workflow.Applies(v.library.Catalog(), world.Assay1Name, task, flaw,
				assay.Severe) {
				continue
			}
			if err := v.playGame(ctx, task, agent, variant); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *validator) playGame(
	ctx context.Context, task *assay.Task, agent, variant string,
) error {
	key := fmt.Sprintf("%s %s %s %q %s", agent, variant, task.ID, task.Required, task.Inputs)
	level, ok := v.games.played[key]
	if !ok {
		cell := assay.Cell{Model: agent, Variant: variant, Reliability: 1}
		if _, flawed := assay.FlawOf(variant); flawed {
			cell.Severity = assay.Severe
		}
		a, err := v.episode(ctx, task, cell, v.models, 0)
		if err != nil {
			return err
		}
		level = a.Level
		v.games.played[key] = level
	}
	g := Game{Agent: agent, Variant: variant, Type: task.Type, Difficulty: task.Difficulty}
	sum := v.games.cells[g]
	if sum == nil {
		sum = &g
		v.games.cells[g] = sum
	}
	sum.Tasks++
	switch level {
	case assay.FullSuccess:
		sum.Full++
	case assay.PartialSuccess:
		sum.Partial++
	}
	return nil
}

// worst returns the cell in which each agent achieves most, in the order of [sim.Gaming].
func (s *games) worst() []Game {
	var worst []Game
	for _, agent := range sim.Gaming {
		var cells []Game
		for g, sum := range s.cells {
			if g.Agent == agent {
				cells = append(cells, *sum)
			}
		}
		if len(cells) > 0 {
			worst = append(worst, slices.MaxFunc(cells, func(a, b Game) int {
				return cmp.Or(cmp.Compare(a.gain(), b.gain()),
					strings.Compare(b.String(), a.String()))
			}))
		}
	}
	return worst
}
