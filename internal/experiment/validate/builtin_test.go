//go:build !race

package validate

import (
	"fmt"
	"math"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestBuiltinLibraryIsSound checks that the tasks of the built-in library can be solved, as often as the
// planner computes, and neither without any call nor by agents that do not do them. It plays one task in
// seven, of all types and difficulties; `assay library validate` plays all, in two minutes.
func TestBuiltinLibraryIsSound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: solves hundreds of tasks with each agent")
	}
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v, seen := newValidator(lib, world.Assay1Name), 0
	v.wanted = func(assay.TaskID) bool {
		seen++
		return seen%7 == 0
	}
	if err := v.playAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := v.conclude()
	if want := 630 * len(Difficulties) / 7; p.Tasks < want-1 || p.Tasks > want+1 || p.Unsolvable != 0 ||
		!p.Sound || len(p.Failed)+len(p.Null) != 0 {
		t.Errorf("%+v, want about %d tasks", p, want)
	}
	played := make(map[string]int)
	for _, g := range p.Games {
		played[fmt.Sprint(g.Agent, g.Tools, g.Reliability)]++
		if g.Pays() {
			t.Errorf("not doing the task: %s", &g)
		}
	}
	for _, agent := range sim.Gaming {
		for _, tools := range []string{assay.Discover, assay.Listed} {
			for _, reliability := range []float64{1, .9, .8, .6} {
				if played[fmt.Sprint(agent, tools, reliability)] != 1 {
					t.Errorf("%s does not play with tools %s at %v", agent, tools, reliability)
				}
			}
		}
	}
	if p.Planned < .95 || p.Planned > .995 || math.Abs(p.Z) > 4 || p.Z == 0 {
		t.Errorf("oracle %.4f, planner %.4f, %.2f σ", p.Oracle, p.Planned, p.Z)
	}
}
