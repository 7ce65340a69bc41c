package main

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
)

// TestAssay1Figures runs agents that carry plans out over all built-in tasks
// and holds how often they fully succeed against what the planner computed for
// their own trials: by reliability, and by reliability and task type. The
// agents' luck is independent from trial to trial, so the tails are exact, and
// all comparisons together fail by chance once in a hundred seeds.
//
// What the planner computed is worked out a second time: the built-in tasks
// require whatever they build on, so that full success takes one success a
// required tool in as many calls as there are replies but the last.
func TestAssay1Figures(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("thousands of trials")
	}
	dir := t.TempDir()
	db := filepath.Join(dir, "figures.db")
	experiment := file(t, dir, "figures.yaml", `
models: [sim/listed, sim/optimal]
variants: [optimal]
reliabilities: [0.9, 0.8, 0.7, 0.6]
tasks_per_type: all
`)
	mustProgram(t, "run", experiment, "--store", db, "--sim-latency", "0", "--display", "none")
	all := attempts(t, db)
	if want := 2 * 4 * 630; len(all) != want {
		t.Fatalf("%d attempts, want %d", len(all), want)
	}
	groups := make(map[string]*figure)
	for _, a := range all {
		rate := fmt.Sprintf("%s at %v", a.Model, a.Reliability)
		for _, name := range []string{rate, rate + ", " + a.TaskType} {
			if groups[name] == nil {
				groups[name] = new(figure)
			}
			groups[name].add(a)
		}
		if want := binomialTail(a.Setting.Turns-1, len(a.RequiredTools), a.Reliability, a.Reliability); math.Abs(a.Best-want) > 1e-9 {
			t.Fatalf("task %s at %v: best possible is %v, want %v", a.Task, a.Reliability, a.Best, want)
		}
	}
	if want := 2 * 4 * (1 + len(assay.TaskTypes)); len(groups) != want {
		t.Fatalf("%d comparisons, want %d", len(groups), want)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		groups[name].check(t, name, 0.01/float64(len(groups)))
	}
}

// TestAssay1FiguresOfLastingFailures: the same where failures last and cluster.
func TestAssay1FiguresOfLastingFailures(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("thousands of trials")
	}
	dir := t.TempDir()
	db := filepath.Join(dir, "lasting.db")
	experiment := file(t, dir, "lasting.yaml", `
models: [sim/optimal]
variants: [optimal]
reliabilities: [0.8]
tasks_per_type: all
failures: {persistence: 0.4, burst: 0.3}
`)
	mustProgram(t, "run", experiment, "--store", db, "--sim-latency", "0", "--display", "none")
	var f figure
	independent := 0.0
	for _, a := range attempts(t, db) {
		f.add(a)
		// Whoever repeats what failed meets both after every failure, and
		// neither after a success.
		want := binomialTail(a.Setting.Turns-1, len(a.RequiredTools), 0.8, 0.8*(1-0.4)*(1-0.3))
		if math.Abs(a.Best-want) > 1e-9 {
			t.Fatalf("task %s: best possible is %v, want %v", a.Task, a.Best, want)
		}
		independent += binomialTail(a.Setting.Turns-1, len(a.RequiredTools), 0.8, 0.8)
	}
	f.check(t, "sim/optimal at 0.8 with lasting failures", 0.01)
	if n := float64(len(f.best)); n != 630 || f.mean() > independent/n-0.05 {
		t.Errorf("best possible is %.4f over %v tasks, want it far below the %.4f of independent failures", f.mean(), n, independent/n)
	}
}

// figure is how often trials fully succeeded, and how often the best policy
// would.
type figure struct {
	full int
	best []float64 // the chance of each trial
}

func (f *figure) add(a assay.Attempt) {
	if a.Level == assay.FullSuccess {
		f.full++
	}
	f.best = append(f.best, a.Best)
}

func (f *figure) mean() float64 {
	sum := 0.0
	for _, p := range f.best {
		sum += p
	}
	return sum / float64(len(f.best))
}

// check fails the test where so many, or so few, successes have less than half
// the probability alpha.
func (f *figure) check(t *testing.T, name string, alpha float64) {
	t.Helper()
	chance := f.distribution()
	least, most := 0.0, 0.0 // the probability of so few and of so many
	for k, p := range chance {
		if k <= f.full {
			least += p
		}
		if k >= f.full {
			most += p
		}
	}
	n := float64(len(f.best))
	t.Logf("%s: %.4f of %v, best possible %.4f", name, float64(f.full)/n, n, f.mean())
	if min(least, most) < alpha/2 {
		t.Errorf("%s: %.4f of %v, but the best policy has %.4f: so far off or further with a chance of %.2g",
			name, float64(f.full)/n, n, f.mean(), 2*min(least, most))
	}
}

// distribution gives the probability of each number of successes.
func (f *figure) distribution() []float64 {
	chance := make([]float64, len(f.best)+1)
	chance[0] = 1
	for i, p := range f.best {
		for k := i + 1; k > 0; k-- {
			chance[k] = chance[k]*(1-p) + chance[k-1]*p
		}
		chance[0] *= 1 - p
	}
	return chance
}

// binomialTail is the probability of at least k successes in n tries, each with
// one chance at first and after a success, and another after a failure.
func binomialTail(n, k int, after, afterFailure float64) float64 {
	// chance[s][f] is that of s successes so far, with f = 1 after a failure.
	chance := make([][2]float64, n+2)
	chance[0][0] = 1
	for range n {
		next := make([][2]float64, n+2)
		for s := range n + 1 {
			for f, p := range []float64{after, afterFailure} {
				next[s+1][0] += chance[s][f] * p
				next[s][1] += chance[s][f] * (1 - p)
			}
		}
		chance = next
	}
	sum := 0.0
	for s := k; s <= n; s++ {
		sum += chance[s][0] + chance[s][1]
	}
	return sum
}
