package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/stat"
)

// TestNoiseReference: pairs of repeats, of which one task in four flipped. The
// variance between its repeats is 1/2, so the difference of two runs of four
// tasks has a variance of 2·(1/8)/4 = 1/16.
func TestNoiseReference(t *testing.T) {
	t.Parallel()
	got := stat.Noise([]stat.Group{{2, 2}, {1, 2}, {0, 2}, {2, 2}, {}})
	want := stat.NoiseFloor{
		Tasks: 4, Repeated: 4, Flip: .25, FlipInterval: stat.Wilson(1, 4, stat.Z95),
		Unstable: .25, SD: .25, Change: .25 * math.Sqrt(2/math.Pi), Limit: .25 * stat.Z95,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNoiseWithoutRepeats(t *testing.T) {
	t.Parallel()
	got := stat.Noise([]stat.Group{{1, 1}, {0, 1}, {}})
	if diff := cmp.Diff(stat.NoiseFloor{Tasks: 2, FlipInterval: stat.Interval{High: 1}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNoisePrediction: the floor from three repeats is what pairs of new runs of
// the same tasks show, on average over experiments (4,000 of them: 2 %).
func TestNoisePrediction(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 9))
	const tasks, experiments = 40, 4000
	var variance, change, seen, seenChange, beyond float64
	groups := make([]stat.Group, tasks)
	for range experiments {
		var difference float64
		for i := range groups {
			p := r.Float64()
			groups[i] = stat.Group{Full: betaBinomial(r, 3, p, 0), N: 3}
			first, second := betaBinomial(r, 1, p, 0), betaBinomial(r, 1, p, 0)
			difference += float64(first-second) / tasks
		}
		f := stat.Noise(groups)
		variance += f.SD * f.SD / experiments
		change += f.Change / experiments
		seen += difference * difference / experiments
		seenChange += math.Abs(difference) / experiments
		if math.Abs(difference) > f.Limit {
			beyond += 1. / experiments
		}
	}
	t.Logf("variance %.6f, seen %.6f; change %.4f, seen %.4f; beyond the limit %.3f", variance, seen, change, seenChange, beyond)
	// Elementary: two runs differ by 2·E p(1-p)/tasks = 1/3/tasks in variance.
	if math.Abs(variance*3*tasks-1) > .02 || math.Abs(seen*3*tasks-1) > .07 || math.Abs(change/seenChange-1) > .05 {
		t.Errorf("variance %v, seen %v, want %v; change %v, seen %v", variance, seen, 1./3/tasks, change, seenChange)
	}
	if math.Abs(beyond-.05) > .02 {
		t.Errorf("%v of differences are beyond the limit, want 0.05", beyond)
	}
}

func TestNoiseLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := stat.Noise(groups(t))
		if f.Flip < 0 || f.Flip > 1 || f.Unstable < 0 || f.Unstable > 1 || f.Change > f.SD || f.SD > f.Limit || f.SD > 1 {
			t.Fatalf("%+v", f)
		}
		if f.Flip < f.FlipInterval.Low-1e-12 || f.Flip > f.FlipInterval.High+1e-12 || (f.Flip > 0) != (f.Unstable > 0) {
			t.Fatalf("%+v", f)
		}
	})
}
