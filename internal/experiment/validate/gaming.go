package validate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// A Game is the result in one cell of an agent that does not do the task.
type Game struct {
	Agent       string  `json:"agent"`
	Tools       string  `json:"tools"`
	Reliability float64 `json:"reliability"`
	Variant     string  `json:"variant"`
	Severity    string  `json:"severity,omitempty"`
	Type        string  `json:"task_type"`
	Difficulty  string  `json:"difficulty"`
	Tasks       int     `json:"tasks"`
	Full        int     `json:"full"`
	Partial     int     `json:"partial"`
	// Fair is the reason why the agent may have partial success, or "". With sim/inputs it may
	// have any.
	Fair string `json:"fair,omitempty"`
}

// The shares of full and partial success that an agent has to stay below.
const (
	MaxFull    = 0.02
	MaxPartial = 0.05
)

// minTasks is the number of tasks below which a cell is no evidence about an agent.
const minTasks = 20

// chance is the risk that luck alone makes an agent look as if it succeeded too often in a cell.
const chance = 0.001

// Pays reports whether the agent succeeds too often. If tools can fail, the rates have to exceed
// the limits beyond chance: the exact 99.9 % lower bounds of Clopper and Pearson (Biometrika 26,
// 1934) are above them.
func (g *Game) Pays() bool {
	full, partial := g.held()
	switch {
	case g.Agent == sim.Copier && full > 0: // it cannot happen, however lucky the agent is
		return true
	case g.Reliability == 1:
		return g.Tasks >= minTasks && g.gain() >= 1
	}
	return atLeast(full, g.Tasks, MaxFull) < chance ||
		atLeast(partial, g.Tasks, MaxPartial) < chance
}

// held returns the successes that are held to the limits.
func (g *Game) held() (full, partial int) {
	switch {
	case g.Agent == sim.Inputs:
		return 0, 0
	case g.Fair != "":
		return g.Full, 0
	}
	return g.Full, g.Partial
}

// fair returns the reason why some successes of a game are shown without being held to the limits,
// or "".
func (g *Game) fair() string {
	switch {
	case g.Agent == sim.Inputs:
		return "it knows the plan, and a first step works on the inputs"
	case g.Agent == sim.Starter:
		return "its calls are part of many tasks"
	case g.Agent == sim.Copier && g.Severity != assay.Severe:
		return "a plan with a small flaw does most of the task"
	}
	return ""
}

// atLeast returns the chance of at least k successes in n tries of chance p.
func atLeast(k, n int, p float64) float64 {
	sum, term := 0.0, math.Pow(1-p, float64(n))
	for i := range k {
		sum += term
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return 1 - sum
}

// gain compares the agent's rates with the most that is accepted.
func (g *Game) gain() float64 {
	full, partial := g.held()
	return max(float64(full)/MaxFull, float64(partial)/MaxPartial) / float64(g.Tasks)
}

func (g *Game) String() string {
	return fmt.Sprintf("%s with %d full and %d partial successes at %d tasks "+
		"(%s, %s, reliability %v, tools %s)", g.Agent, g.Full, g.Partial, g.Tasks, g.Type,
		g.Difficulty, g.Reliability, strings.TrimSpace(g.Tools+" "+g.Variant+" "+g.Severity))
}

// reliabilities are the reliabilities at which the agents play, the highest first.
var reliabilities = []float64{1, 0.9, 0.8, 0.6}

// reliabilitiesOf returns the reliabilities of the nth task in all its wordings, so that they share
// episodes: the first, and the others in turn. A share of the tasks is enough for each of the
// others, because luck decides there.
func reliabilitiesOf(n int) []float64 {
	others := reliabilities[1:]
	return []float64{reliabilities[0], others[n%len(others)]}
}

// A planShape is a plan that an agent is given.
type planShape struct{ variant, severity string }

// shapes returns the plans that an agent is given. The copier is tried on plans with a flaw,
// because a good plan is worth copying. A plan that only repeats steps is good, too.
func shapes(agent string) []planShape {
	switch agent {
	case sim.Copier:
	case sim.Inputs: // needs the steps
		return []planShape{{assay.Optimal, ""}}
	default:
		return []planShape{{assay.Baseline, ""}}
	}
	var all []planShape
	for _, v := range assay.Variants {
		flaw, flawed := assay.FlawOf(v)
		for _, severity := range assay.Severities {
			if flawed && flaw != assay.RedundantOperations {
				all = append(all, planShape{v, severity})
			}
		}
	}
	return all
}

// playGames lets every agent that does not do the task play it in the world assay-1. In pilot they
// succeed, by its rules. Such an agent does not read the description, so different wordings of a
// task share an episode. All but the sprayer know the tools without a list, so both tool settings
// share one, too.
func (v *taskPlayer) playGames(ctx context.Context) error {
	for _, agent := range sim.Gaming {
		for _, s := range shapes(agent) {
			for _, reliability := range reliabilitiesOf(v.number) {
				for _, tools := range []string{assay.Discover, assay.Listed} {
					cell := assay.Cell{
						Model: agent, Variant: s.variant, Severity: s.severity,
						Reliability: reliability,
					}
					if err := v.playGame(ctx, cell, tools); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// playGame plays the task in a cell, unless its flaw does not apply.
func (v *taskPlayer) playGame(ctx context.Context, cell assay.Cell, tools string) error {
	key := fmt.Sprintf("%+v %q %s", cell, v.task.Required, v.task.Inputs)
	if cell.Model == sim.Sprayer {
		key += tools
	}
	level, ok := v.known[key]
	if !ok {
		if v.applies(cell) {
			a, err := v.episode(ctx, cell, tools, v.models, 0)
			if err != nil {
				return err
			}
			level = a.Level
		}
		v.known[key] = level
	}
	if level == "" {
		return nil
	}
	g := Game{
		Agent: cell.Model, Tools: tools, Reliability: cell.Reliability, Variant: cell.Variant,
		Severity: cell.Severity, Type: v.task.Type, Difficulty: v.task.Difficulty,
	}
	g.Fair = g.fair()
	v.mu.Lock()
	defer v.mu.Unlock()
	sum := v.games[g]
	if sum == nil {
		sum = &g
		v.games[g] = sum
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

// applies reports whether the task's plan can have the flaw of a cell.
func (v *taskPlayer) applies(cell assay.Cell) bool {
	flaw, flawed := assay.FlawOf(cell.Variant)
	return !flawed ||
		workflow.Applies(v.library.Catalog(), world.Assay1Name, v.task, flaw, cell.Severity)
}

// worst returns the cell in which each agent achieves most, for each tool setting and reliability.
func (v *validator) worst() []Game {
	var worst []Game
	for _, agent := range sim.Gaming {
		for _, tools := range []string{assay.Discover, assay.Listed} {
			for _, reliability := range reliabilities {
				var cells []Game
				for g, sum := range v.games {
					if g.Agent == agent && g.Tools == tools && g.Reliability == reliability {
						cells = append(cells, *sum)
					}
				}
				if len(cells) > 0 {
					worst = append(worst, slices.MaxFunc(cells, better))
				}
			}
		}
	}
	return worst
}

// better compares the results of agents. Successes beyond the limits come first.
func better(a, b Game) int {
	rank := func(g Game) (pays, share float64) {
		if g.Pays() {
			pays = 1
		}
		return pays, float64(g.Full+g.Partial) / float64(g.Tasks)
	}
	aPays, aShare := rank(a)
	bPays, bShare := rank(b)
	return cmp.Or(cmp.Compare(aPays, bPays), cmp.Compare(a.gain(), b.gain()),
		cmp.Compare(aShare, bShare), strings.Compare(b.String(), a.String()))
}
