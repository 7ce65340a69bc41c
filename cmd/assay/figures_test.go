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

// TestAssay1Figures runs agents that carry out plans over all built-in tasks. It compares how often
// they fully succeed with the probability that the planner computed for the same trials, by
// reliability, and by reliability and task type. The agents' luck is independent between trials, so
// the tails are exact. All comparisons together fail by chance for one seed in a hundred.
//
// The test also computes the planner's probability in a second way. The built-in tasks require
// every tool that they build on. So full success takes one success of each required tool within the
// limit of calls.
func TestAssay1Figures(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: thousands of trials")
	}
	all := figuresRun(t, `
models: [sim/listed, sim/optimal]
variants: [optimal]
reliabilities: [0.9, 0.6]
tasks_per_type: all
`)
	if want := 2 * 2 * 630; len(all) != want {
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
		tries, tools := a.Calls, len(a.RequiredTools)
		bestIs(t, a, binomialTail(tries, tools, a.Reliability, a.Reliability))
	}
	if want := 2 * 2 * (1 + len(assay.TaskTypes)); len(groups) != want {
		t.Fatalf("%d comparisons, want %d", len(groups), want)
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		groups[name].check(t, name, 0.01/float64(len(groups)))
	}
}

// figuresRun runs an experiment with the built program and returns its attempts.
func figuresRun(t *testing.T, experiment string) []assay.Attempt {
	t.Helper()
	dir := t.TempDir()
	db := filepath.Join(dir, "figures.db")
	mustProgram(t, "run", file(t, dir, "figures.yaml", experiment),
		"--store", db, "--sim-latency", "0", "--display", "none")
	return attempts(t, db)
}

// bestIs checks the probability of full success that the planner computed for a trial.
func bestIs(t *testing.T, a assay.Attempt, want float64) {
	t.Helper()
	if math.Abs(a.Best-want) > 1e-9 {
		t.Fatalf("task %s at %v: best possible is %v, want %v", a.Task, a.Reliability, a.Best, want)
	}
}

// TestAssay1FiguresOfLastingFailures does the same with failures that last and cluster.
func TestAssay1FiguresOfLastingFailures(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: hundreds of trials")
	}
	all := figuresRun(t, `
models: [sim/optimal]
variants: [optimal]
reliabilities: [0.8]
tasks_per_type: all
failures: {persistence: 0.4, burst: 0.3}
`)
	var f figure
	independent := 0.0
	for _, a := range all {
		f.add(a)
		// An agent that repeats a failed call meets both effects after every failure, and neither
		// after a success.
		tries, tools := a.Calls, len(a.RequiredTools)
		bestIs(t, a, binomialTail(tries, tools, 0.8, 0.8*(1-0.4)*(1-0.3)))
		independent += binomialTail(tries, tools, 0.8, 0.8)
	}
	f.check(t, "sim/optimal at 0.8 with lasting failures", 0.01)
	if n := float64(len(f.best)); n != 630 || f.mean() > independent/n-0.05 {
		t.Errorf("best possible is %.4f over %v tasks, want far below %.4f as without persistence",
			f.mean(), n, independent/n)
	}
}

// A figure counts the full successes of some trials next to the chances of the best policy.
type figure struct {
	full int
	best []float64 // the best policy's chance in each trial
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

// check fails the test if the probability of at least this many successes, or of at most this many,
// is below alpha/2.
func (f *figure) check(t *testing.T, name string, alpha float64) {
	t.Helper()
	chance := f.distribution()
	atMost, atLeast := 0.0, 0.0
	for k, p := range chance {
		if k <= f.full {
			atMost += p
		}
		if k >= f.full {
			atLeast += p
		}
	}
	n := float64(len(f.best))
	t.Logf("%s: %.4f of %v, best possible %.4f", name, float64(f.full)/n, n, f.mean())
	if tail := min(atMost, atLeast); tail < alpha/2 {
		t.Errorf("%s: %.4f of %v, but %.4f with the best policy; p = %.2g",
			name, float64(f.full)/n, n, f.mean(), 2*tail)
	}
}

// distribution returns the probability of each number of successes.
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

// binomialTail returns the probability of at least k successes in n tries. A try succeeds with one
// probability at first and after a success, and with another after a failure.
func binomialTail(n, k int, after, afterFailure float64) float64 {
	// chance[s][f] is the probability of s successes so far, where f is 1 after a failure.
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
