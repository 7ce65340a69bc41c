package stat_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// TestSharedRateIsClusteredRate checks that tasks with equally many trials have the rate and the
// interval of their trials, and that weights that are all alike change nothing.
func TestSharedRateIsClusteredRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "trials")
		weight := rapid.Float64Range(.1, 5).Draw(t, "weight")
		var tasks []stat.Shared
		var groups []stat.Group
		for range rapid.IntRange(1, 30).Draw(t, "tasks") {
			g := stat.Group{Full: rapid.IntRange(0, n).Draw(t, "full"), N: n}
			tasks = append(tasks, stat.Shared{Weight: weight, Cells: [][]stat.Group{{g}}})
			groups = append(groups, g)
		}
		got, want := stat.SharedRate(tasks, 0, false, .95), stat.Clustered(groups, .95)
		for i, d := range []float64{
			got.Rate - want.Rate, got.Interval.Low - want.Interval.Low,
			got.Interval.High - want.Interval.High, got.DesignEffect - want.DesignEffect,
		} {
			if math.Abs(d) > 1e-9 {
				t.Fatalf("figure %d: %+v, want %+v", i, got, want)
			}
		}
	})
}

// TestSharedRateWeighsTasks checks that a task with many trials counts like any other, that a weight
// of 3 counts like three tasks, and that the rate is that of the ranking.
func TestSharedRateWeighsTasks(t *testing.T) {
	t.Parallel()
	tasks := []stat.Shared{
		{Cells: [][]stat.Group{{{Full: 10, N: 10}}}},
		{Cells: [][]stat.Group{{{Full: 0, N: 1}}}, Weight: 3},
	}
	r := stat.SharedRate(tasks, 0, false, .95)
	if r.Rate != .25 || stat.Rank(tasks, false).Models[0].Rate != .25 {
		t.Errorf("rate %v, and %v in the ranking", r.Rate, stat.Rank(tasks, false).Models[0].Rate)
	}
	if r.Interval.Low > .25 || r.Interval.High < .25 {
		t.Errorf("interval %v", r.Interval)
	}
}
