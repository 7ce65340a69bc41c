//go:build !race

// The tests of this file play 26,400 episodes, one after the other in each goroutine, and 480 with
// -short. `make test-all` runs them without the race detector.

package sim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestSkillIsAsComputed checks that in assay-1 the agents that carry out a plan succeed as often as
// the planner predicts, under both protocols and both tool settings.
func TestSkillIsAsComputed(t *testing.T) {
	t.Parallel()
	models := sim.New(catalog, sim.Latency{})
	for _, tc := range []struct {
		model       string
		reliability float64
		required    []string
	}{
		{sim.Listed, .5, []string{fetcher, parser, transformer}},
		{sim.Optimal, .6, []string{parser, transformer, checker, writer}},
		{sim.Obedient, .5, []string{fetcher, writer}}, // the writer needs three more tools
	} {
		n := uint64(500)
		if testing.Short() {
			n = 160
		}
		won, best := 0, 0.0
		for seed := range n {
			trial := trial(tc.model, settings[seed%2], assay.Optimal, tc.reliability, seed)
			trial.World, trial.Protocol = world.Assay1Name, assay.Protocols[seed/2%2]
			a, _ := runner.Run(t.Context(), models, &trial, new(task(tc.required...)))
			if a.Level == assay.FullSuccess {
				won++
			}
			best = a.Best
		}
		got, sigma := float64(won)/float64(n), math.Sqrt(best*(1-best)/float64(n))
		name := fmt.Sprintf("%s, %v at %v", tc.model, tc.required, tc.reliability)
		t.Logf("%s: %.4f, computed %.4f ± %.4f", name, got, best, 4*sigma)
		if math.Abs(got-best) > 4*sigma || best < .1 || best > .99 {
			t.Errorf("%s: success of %d trials = %.4f, want %.4f ± %.4f",
				name, n, got, best, 4*sigma)
		}
	}
}

// TestOptimalIsOnItsCeiling plays sim/optimal and sim/batcher in real episodes at every budget.
// Each rate has to lie in the central 99.8 % of its exact distribution, if the ceilings are right.
func TestOptimalIsOnItsCeiling(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: thousands of episodes")
	}
	models := sim.New(catalog, sim.Latency{})
	var tasks []assay.Task
	for task := range library.Generate() {
		if task.Difficulty == "easy" && len(policy.Missing(catalog, task.Required)) == 0 {
			tasks = append(tasks, task)
		}
	}
	for _, w := range world.Simulated {
		for _, model := range []string{sim.Optimal, sim.Batcher} {
			for calls := 4; calls <= 20; calls += 2 {
				t.Run(fmt.Sprintf("%s %s %d", w, model, calls), func(t *testing.T) {
					t.Parallel()
					runner := episode.NewRunner(catalog, 0)
					const n = 200
					won, ceilings := 0, make([]float64, n)
					for i := range n {
						task := tasks[(i*31+calls)%len(tasks)]
						trial := trial(model, assay.Listed, assay.Optimal, .6, uint64(i*100+calls))
						trial.World, trial.Calls = w, calls
						trial.Turns = calls + 1
						if world.Of(w).FaultKinds {
							trial.Faults = mixes[i%len(mixes)].String()
						}
						a, _ := runner.Run(t.Context(), models, &trial, &task)
						ceilings[i] = a.Best
						if a.Level == assay.FullSuccess {
							won++
						}
					}
					above, below := upperTail(ceilings, won), 1-upperTail(ceilings, won+1)
					if above < .001 || below < .001 {
						t.Errorf("%d of %d: the chance of as many or more is %.4f, as few or fewer %.4f",
							won, n, above, below)
					}
				})
			}
		}
	}
}
