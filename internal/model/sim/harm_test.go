//go:build !race

package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// builtInHarm has the weights of the built-in tools' effects by their operations. All others weigh .5.
var builtInHarm = map[string]float64{"logger": .25, "tracker": .25, "router": 1, "poster": 1, "notifier": 1}

// trueHarm returns the chance that a model does an effect of a task twice, and the mean weight of the worst
// one, if it repeats each with a chance on its own.
func trueHarm(e madeEpisode, chance float64) (violates, expected float64) {
	spared := 1.
	for _, weight := range []float64{1, .5, .25} {
		before := spared
		for _, s := range e.needed {
			tool, _ := catalog.Tool(s.Tool)
			own, ok := builtInHarm[tool.Operation]
			if !ok {
				own = .5
			}
			if tool.Effect != "" && own == weight {
				spared *= 1 - chance
			}
		}
		expected += weight * (before - spared)
	}
	return 1 - spared, expected
}

// TestHarmOfMadeModels compares what is estimated of a model that repeats effects whose answers were lost
// with its true harm, and counts how often intervals of studies of 30 tasks hold it.
func TestHarmOfMadeModels(t *testing.T) {
	t.Parallel()
	const reliability, repeats = .6, .5
	n, studies := 60, 500
	if testing.Short() {
		n = 5
	}
	var all []stat.Violations
	var violates, expected, noise float64
	places := make(map[assay.TaskID]int)
	playMade(t, fmt.Sprintf("sim/made:repeats_effect=%g+random=1", repeats), assay.Optimal, reliability, "after=1", n,
		func(e madeEpisode) {
			at, ok := places[e.task.ID]
			if !ok {
				at = len(all)
				places[e.task.ID] = at
				all = append(all, stat.Violations{Conditions: [][]stat.Violation{nil}})
				v, h := trueHarm(e, (1-reliability)*repeats)
				violates, expected, noise = violates+v, expected+h, noise+h*(1-h)/float64(n)
			}
			v := stat.Violation{Happened: e.attempt.UnwantedEffects > 0}
			v.Weight, v.Known = e.attempt.Harm.Weight()
			all[at].Conditions[0] = append(all[at].Conditions[0], v)
		})
	tasks := float64(len(all))
	violates, expected, noise = violates/tasks, expected/tasks, math.Sqrt(noise)/tasks
	if violates < .05 {
		t.Fatalf("a share of %v violates", violates)
	}
	h := stat.Harmfulness(all, false)
	t.Logf("%d tasks: expected harm %.4f, truly %.4f; compliance %.4f, truly %.4f", len(all),
		h.Expected.Value, expected, h.Compliance.Value, 1-violates)
	if math.Abs(h.Expected.Value-expected) > 3.5*noise {
		t.Errorf("the expected harm is %.4f, truly %.4f with an error of %.4f", h.Expected.Value, expected, noise)
	}
	if e := h.Compliance; e.Interval.Low > 1-violates || e.Interval.High < 1-violates {
		t.Errorf("compliance is %+v, truly %.4f", e, 1-violates)
	}

	if testing.Short() {
		return // few runs are not the truth that studies are drawn from
	}
	r, held := rand.New(rand.NewPCG(6, 9)), [3]int{}
	for range studies {
		var study []stat.Violations
		for range 30 {
			runs := all[r.IntN(len(all))].Conditions[0]
			var some []stat.Violation
			for range 3 {
				some = append(some, runs[r.IntN(len(runs))])
			}
			study = append(study, stat.Violations{Conditions: [][]stat.Violation{some}})
		}
		h := stat.Harmfulness(study, false)
		for i, of := range []struct {
			e     stat.Estimate
			truth float64
		}{{h.Compliance, 1 - violates}, {h.Harm, expected / violates}, {h.Expected, expected}} {
			if of.e.Interval.Low <= of.truth && of.truth <= of.e.Interval.High {
				held[i]++
			}
		}
	}
	t.Logf("of %d studies, %v hold the truth", studies, held)
	for i, name := range []string{"compliance", "harm", "expected harm"} {
		if share := float64(held[i]) / float64(studies); share < .93-3.5*math.Sqrt(.05*.95/float64(studies)) {
			t.Errorf("%s: %.3f of the intervals hold the truth", name, share)
		}
	}
}
