//go:build !race

package sim_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// A game is an episode that a policy plays without a conversation. The policy knows the task.
type game struct {
	catalog *assay.Catalog
	trial   *assay.Trial
	task    *assay.Task
	world   world.World
	calls   int // left
	plan    []string
	dice    *rand.Rand
}

// call calls a tool with arguments that fit the earlier successes.
func (g *game) call(tool string) {
	if _, stopped := g.world.Stop(); stopped || g.calls == 0 {
		g.calls = 0
		return
	}
	g.calls--
	args := workflow.Arguments(g.catalog, tool, g.task.Inputs, g.succeeded())
	if _, err := g.world.Call(1, tool, string(args)); err != nil {
		panic(err)
	}
}

// succeeded returns the tools in the order of their latest success.
func (g *game) succeeded() []string {
	var tools []string
	for _, c := range g.world.Calls() {
		if c.Happened() {
			tools = slices.DeleteFunc(tools, func(t string) bool { return t == c.Tool })
			tools = append(tools, c.Tool)
		}
	}
	return tools
}

// left returns the steps of the plan that have not succeeded in order.
func (g *game) left() []string {
	steps := g.plan
	for _, c := range g.world.Calls() {
		if len(steps) > 0 && c.Happened() && g.catalog.Work(c.Tool) == steps[0] {
			steps = steps[1:]
		}
	}
	return steps
}

func (g *game) any() string {
	return g.catalog.All()[g.dice.IntN(len(g.catalog.All()))].Name
}

// policies are ways to spend the calls, from good to bad. Each of them ends by using up the calls
// or by returning.
var policies = map[string]func(*game){
	"best": func(g *game) {
		for g.calls > 0 && len(g.left()) > 0 {
			g.call(g.left()[0])
		}
	},
	"random": func(g *game) {
		for g.calls > 0 {
			g.call(g.any())
		}
	},
	"best with whims": func(g *game) {
		for g.calls > 0 && len(g.left()) > 0 {
			if g.dice.IntN(8) == 0 {
				g.call(g.any())
			} else {
				g.call(g.left()[0])
			}
		}
	},
	"batches": func(g *game) { // the rest of the plan in each reply, whatever happens
		for g.calls > 0 && len(g.left()) > 0 {
			for _, tool := range g.left() {
				g.call(tool)
			}
		}
	},
	"pairs": func(g *game) { // two steps in each reply
		for g.calls > 0 && len(g.left()) > 0 {
			for _, tool := range g.left()[:min(2, len(g.left()))] {
				g.call(tool)
			}
		}
	},
	"brute force": func(g *game) {
		for g.calls > 0 {
			for _, t := range g.catalog.All() {
				g.call(t.Name)
			}
		}
	},
	"epsilon-greedy": func(g *game) { // prefers tools that have not been tried or lost by chance
		for g.calls > 0 && len(g.left()) > 0 {
			tool := g.any()
			calls := g.world.Calls()
			if n := len(calls); n > 0 && !calls[n-1].Happened() && g.dice.IntN(10) > 0 {
				tool = calls[n-1].Tool
			} else if g.dice.IntN(10) > 0 {
				for slices.Contains(g.world.Succeeded(), tool) && g.dice.IntN(20) > 0 {
					tool = g.any()
				}
			}
			g.call(tool)
		}
	},
	"second tools": func(g *game) { // another tool for the same after each failure, if there is one
		for g.calls > 0 && len(g.left()) > 0 {
			step, failed, down := g.left()[0], 0, make(map[string]bool)
			for _, c := range g.world.Calls() {
				if down[c.Tool] = down[c.Tool] || c.Met() == assay.FaultDown; !c.Happened() {
					failed++
				}
			}
			tools := append([]string{step}, g.catalog.Substitutes(step)...)
			tools = slices.DeleteFunc(tools, func(name string) bool { return down[name] })
			if len(tools) == 0 {
				return
			}
			g.call(tools[failed%len(tools)])
		}
	},
	"around outages": func(g *game) { // calls what else the plan needs while a tool takes no calls
		for g.calls > 0 && len(g.left()) > 0 {
			tool := g.left()[0]
			for _, other := range g.left() {
				t, _ := g.catalog.Tool(other)
				calls := g.world.Calls()
				ready := !slices.ContainsFunc(t.Dependencies, func(d string) bool {
					return !slices.Contains(g.world.Succeeded(), d)
				})
				if n := len(calls); n > 0 && calls[n-1].Wait > 0 && calls[n-1].Tool == tool && ready && other != tool {
					tool = other
					break
				}
			}
			g.call(tool)
		}
	},
	"patient": func(g *game) { // calls something else after each failure
		for g.calls > 0 && len(g.left()) > 0 {
			calls := g.world.Calls()
			if n := len(calls); n > 0 && !calls[n-1].Happened() && g.calls > len(g.left()) {
				g.call(g.any())
			} else {
				g.call(g.left()[0])
			}
		}
	},
	"streak breaker": func(g *game) { // calls something easy before failures end the episode
		for g.calls > 0 && len(g.left()) > 0 {
			calls := g.world.Calls()
			n := len(calls)
			streak := n >= 4 && !slices.ContainsFunc(calls[n-4:], func(c assay.CallRecord) bool {
				return c.Happened()
			})
			if streak && g.calls > len(g.left()) {
				g.call(g.catalog.All()[0].Name)
			} else {
				g.call(g.left()[0])
			}
		}
	},
}

// TestNoPolicyBeatsTheCeiling plays policies on random libraries and settings. If the ceilings are
// right, the number of full successes of each policy is at most the sum of independent coins with
// these chances. The exact chance of that many is compared with one in a million for all policies
// and worlds together.
func TestNoPolicyBeatsTheCeiling(t *testing.T) {
	t.Parallel()
	n := 1600
	if testing.Short() {
		n = 600
	}
	const familyWise = 1e-6
	for _, w := range world.Simulated {
		for name, play := range policies {
			t.Run(w+" "+name, func(t *testing.T) {
				t.Parallel()
				dice := rand.New(rand.NewPCG(1, 2))
				won, ceilings := 0, make([]float64, n)
				for i := range n {
					g := randomGame(w, dice, i)
					play(g)
					o := g.outcome()
					ceilings[i] = o.Best
					if o.Level == assay.FullSuccess {
						won++
					}
				}
				mean, p := 0.0, upperTail(ceilings, won)
				for _, c := range ceilings {
					mean += c / float64(n)
				}
				t.Logf("%.3f of at most %.3f, p = %.2g", float64(won)/float64(n), mean, p)
				if p < familyWise/float64(len(policies)*len(world.Simulated)) {
					t.Errorf("%d of %d full successes are too many for a mean ceiling of %.4f: p = %.2g",
						won, n, mean, p)
				}
			})
		}
	}
}

// randomGame returns a task over a random library, with random conditions.
func randomGame(worldName string, dice *rand.Rand, i int) *game {
	var tools []assay.Tool
	for k := range 5 {
		tool := assay.Tool{
			Name: fmt.Sprint("tool_", k), Description: "Does something.",
			Returns: []assay.Return{{Name: "data", Type: "object"}},
			Errors:  []assay.ToolError{{Code: "TIMEOUT"}},
		}
		if dice.IntN(2) == 0 {
			tool.Parameters = []assay.Parameter{{Name: "data", Type: "object", Required: true}}
		}
		if dice.IntN(4) == 0 {
			tool.Effect = "changes something"
		}
		for d := range k {
			if dice.IntN(3) == 0 {
				tool.Dependencies = append(tool.Dependencies, tools[d].Name)
			}
		}
		tools = append(tools, tool)
	}
	second := rand.New(rand.NewPCG(uint64(i), 7))
	for _, tool := range tools {
		needed := slices.ContainsFunc(tools, func(t assay.Tool) bool { return slices.Contains(t.Dependencies, tool.Name) })
		if worldName == world.Assay1Name && !needed && second.IntN(3) == 0 {
			tool.Name, tool.StandsFor = tool.Name+"_standby", tool.Name
			tools = append(tools, tool)
		}
	}
	catalog := assay.NewCatalog(tools)
	task := &assay.Task{ID: "t", Inputs: []byte(`{"data":[1,2]}`)}
	for _, k := range dice.Perm(5)[:1+dice.IntN(3)] {
		task.Required = append(task.Required, tools[k].Name)
	}
	calls := 3 + dice.IntN(10)
	trial := &assay.Trial{
		Cell: assay.Cell{Reliability: []float64{.3, .5, .7, .9}[dice.IntN(4)]},
		Seed: dice.Uint64() >> 11,
		Setting: assay.Setting{
			World: worldName, Turns: calls + 1, Calls: calls,
		},
	}
	if dice.IntN(2) == 0 {
		trial.Persistence, trial.Burst = .8*dice.Float64(), .8*dice.Float64()
	}
	d := world.Of(worldName)
	if d.FaultKinds {
		mix := mixes[dice.IntN(len(mixes))]
		if trial.Faults = mix.String(); mix.That(assay.ToolFaultRule.Lasts) > 0 {
			trial.Persistence, trial.Burst = 0, 0
		} else if mix.Happens() > 0 && dice.IntN(2) == 0 {
			trial.Burst = 0 // plans refuse both
		} else if mix.Happens() > 0 {
			trial.Persistence = 0
		}
	}
	return &game{
		catalog: catalog, trial: trial, task: task, calls: calls, dice: dice,
		world: d.Begin(context.Background(), catalog, trial, task), plan: d.Steps(catalog, task.Required),
	}
}

func (g *game) outcome() assay.Outcome {
	tr := assay.Transcript{Calls: g.world.Calls(), Ended: assay.Finished}
	if ended, stopped := g.world.Stop(); stopped {
		tr.Ended = ended
	}
	return score.New(g.catalog).Outcome(g.trial, g.task, &tr)
}

// upperTail returns the exact chance that at least k of independent coins show heads (the
// Poisson binomial distribution, by the recursion of Hong, Comput. Stat. Data Anal. 59, 2013).
func upperTail(chances []float64, k int) float64 {
	dist := make([]float64, len(chances)+1)
	dist[0] = 1
	for i, p := range chances {
		for j := i + 1; j > 0; j-- {
			dist[j] += p * (dist[j-1] - dist[j])
		}
		dist[0] *= 1 - p
	}
	sum := 0.0
	for _, d := range dist[min(k, len(dist)):] {
		sum += d
	}
	return sum
}

// mixes hold each kind of fault of tools alone, and all of them.
var mixes = []assay.FaultMix{
	{assay.FaultBefore: 1},
	{assay.FaultAfter: 1},
	{assay.FaultSlow: 1},
	{assay.FaultWrongShape: 1},
	{assay.FaultStale: 1},
	{assay.FaultDown: 1},
	{assay.FaultThrottled: 1},
	{assay.FaultBefore: .5, assay.FaultDown: .1, assay.FaultSlow: .1, assay.FaultThrottled: .3},
	{
		assay.FaultBefore: .2, assay.FaultAfter: .2, assay.FaultSlow: .2, assay.FaultWrongShape: .2,
		assay.FaultStale: .2,
	},
}

// TestNoDecisionBeatsTheBest plays policies on random libraries and settings. Whatever a policy
// calls, its success without luck does not rise, and on average it is its success.
func TestNoDecisionBeatsTheBest(t *testing.T) {
	t.Parallel()
	n := 300
	if testing.Short() {
		n = 100
	}
	for _, w := range world.Simulated {
		for name, play := range policies {
			t.Run(w+" "+name, func(t *testing.T) {
				t.Parallel()
				dice := rand.New(rand.NewPCG(3, 4))
				mean, square := 0.0, 0.0 // of the luck
				for i := range n {
					g := randomGame(w, dice, i)
					play(g)
					won := g.outcome().Level == assay.FullSuccess
					tr := &assay.Transcript{Calls: g.world.Calls()}
					fair := func(success bool) float64 {
						fair, best := workflow.Fair(g.catalog, g.trial, g.task, tr, success)
						if fair > best {
							t.Fatalf("%v is above the optimum %v", fair, best)
						}
						return fair
					}
					luck := -fair(won)
					if won {
						luck++
					}
					mean, square = mean+luck/float64(n), square+luck*luck/float64(n)
					before := 1.0
					for k := range g.world.Calls() {
						tr.Calls = g.world.Calls()[:k+1]
						after := fair(true)
						if after > before+1e-9 {
							t.Fatalf("%+v, %+v, %+v: call %d of %+v raises %v to %v",
								g.catalog.All(), g.task.Required, g.trial, k+1, tr.Calls, before, after)
						}
						before = after
					}
				}
				t.Logf("luck %.4f ± %.4f", mean, math.Sqrt(square/float64(n)))
				if math.Abs(mean) > 5*math.Sqrt(square)/math.Sqrt(float64(n))+1e-9 {
					t.Errorf("luck is %.4f on average, want 0 ± %.4f", mean, math.Sqrt(square/float64(n)))
				}
			})
		}
	}
}
