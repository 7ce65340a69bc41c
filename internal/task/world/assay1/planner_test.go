package assay1_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// anyTool lets a policy call every tool whose dependencies have succeeded, also if the call does
// not bring the task forward.
type anyTool struct {
	policy.Rules
	work policy.Work
}

func (r anyTool) Worth(s policy.State) (worth policy.Set) {
	for i, t := range r.work.Tools {
		if t.Lacking == 0 && t.Needs&^s.Have == 0 {
			worth |= policy.Only(i)
		}
	}
	return worth
}

// TestNoOtherCallIsBetter compares the planner with one that tries every call in every state. They
// agree with every share of faults at which calls happen or tools go down, and where some tools have a
// second one that does the same. Plans refuse such faults if failures both
// last and cluster: a needless call could end a cluster before a call of a tool whose failures
// last.
func TestNoOtherCallIsBetter(t *testing.T) {
	t.Parallel()
	dice, second := rand.New(rand.NewPCG(5, 6)), rand.New(rand.NewPCG(7, 8))
	for range 400 {
		var tools []assay.Tool
		for k := range 4 {
			tool := assay.Tool{Name: fmt.Sprint("tool_", k)}
			for d := range k {
				if dice.IntN(3) == 0 {
					tool.Dependencies = append(tool.Dependencies, tools[d].Name)
				}
			}
			tools = append(tools, tool)
		}
		for _, tool := range tools[:4] { // a second tool for the same, if no tool needs either
			needed := slices.ContainsFunc(tools, func(t assay.Tool) bool { return slices.Contains(t.Dependencies, tool.Name) })
			if !needed && second.IntN(2) == 0 {
				tool.Name, tool.StandsFor = tool.Name+"_standby", tool.Name
				tools = append(tools, tool)
			}
		}
		catalog := assay.NewCatalog(tools)
		p := policy.Problem{
			World: assay1.Name, Reliability: .3 + .6*dice.Float64(), Calls: 2 + dice.IntN(6),
			Spared: dice.Float64(),
		}
		if dice.IntN(2) == 0 {
			p.Persistence = dice.Float64()
		} else {
			p.Burst = dice.Float64()
		}
		for range 1 + dice.IntN(3) {
			p.Required = append(p.Required, tools[dice.IntN(4)].Name)
		}
		if second.IntN(2) == 0 {
			p.Spared, p.Down, p.Persistence, p.Burst = p.Spared/2, .5*second.Float64(), 0, 0
		}
		got := policy.Solve(catalog, p, assay1.Definition.Planner).Success()
		best := policy.Solve(catalog, p, func(
			catalog *assay.Catalog, p policy.Problem,
		) (policy.Work, policy.Rules) {
			w, r := assay1.Definition.Planner(catalog, p)
			return w, anyTool{r, w}
		}).Success()
		if diff := best - got; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("%+v: the planner's %.6f, the best %.6f", p, got, best)
		}
	}
}
