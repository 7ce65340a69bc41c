package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/stat"
)

// TestDetectablePower sums the distributions: at the detectable difference the
// test of TwoSample calls 80 % of runs. Near the border and with few trials the
// steps of the test make the formula cautious, never careless.
func TestDetectablePower(t *testing.T) {
	t.Parallel()
	for _, n := range []int{30, 60, 120} {
		for _, p := range []float64{.5, .75, .1} {
			d := stat.Detectable(n, p)
			low := min(1-d, max(0, p-d/2))
			power := 0.
			for k1 := range n + 1 {
				for k2 := range n + 1 {
					if w := binomial(n, k1, low+d) * binomial(n, k2, max(low, 1e-12)); w > 1e-9 && stat.TwoSample(k1, n, k2, n).P <= .05 {
						power += w
					}
				}
			}
			t.Logf("n = %d around %v: %.3f detectable, power %.3f", n, p, d, power)
			if power < .785 || power > .88 || n*int(100*p) >= 4500 && power > .82 {
				t.Errorf("n = %d around %v: power %.3f", n, p, power)
			}
		}
	}
}

// TestDetectablePairedPower sums the distributions of the discordant pairs for
// the exact test of McNemar: 80 % of runs, and up to 93 % where so few pairs
// are discordant that the test's steps are wide.
func TestDetectablePairedPower(t *testing.T) {
	t.Parallel()
	for _, n := range []int{30, 60, 120, 240} {
		for _, rho := range []float64{0, .5, .8} {
			d := stat.DetectablePaired(n, 1, .5, rho)
			discordance := max(d, (1-rho)/2)
			up := min(1-1e-12, (1+d/discordance)/2)
			power := 0.
			for m := range n + 1 {
				w := binomial(n, m, discordance)
				if w < 1e-9 {
					continue
				}
				for b := range m + 1 {
					if p, _ := stat.McNemar(b, m-b); p <= .05 {
						power += w * binomial(m, b, up)
					}
				}
			}
			t.Logf("%d tasks, rho %v: %.3f detectable, power %.3f", n, rho, d, power)
			if power < .795 || power > .93 || n >= 120 && rho <= .5 && power > .82 {
				t.Errorf("%d tasks, rho %v: power %.3f", n, rho, power)
			}
		}
	}
}

// TestDetectableRepeatsPower simulates several trials a task under what
// DetectablePaired assumes: a task is as good or bad for both sides but for the
// same small step. 2,000 draws: standard error 0.9 points.
func TestDetectableRepeatsPower(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	for _, tc := range []struct {
		tasks, repeats int
		rho            float64
	}{{40, 4, .3}, {100, 2, .5}} {
		d := stat.DetectablePaired(tc.tasks, tc.repeats, .5, tc.rho)
		pairs := make([]stat.Pair, tc.tasks)
		called, after := 0, 0.
		for range 2000 {
			for i := range pairs {
				task := .5 + .5*math.Sqrt(tc.rho)*float64(2*r.IntN(2)-1)
				pairs[i] = stat.Pair{
					A: betaBinomial(r, tc.repeats, task+d/2, 0), NA: tc.repeats,
					B: betaBinomial(r, tc.repeats, task-d/2, 0), NB: tc.repeats,
				}
			}
			c := stat.Compare(pairs)
			after += c.Detectable / 2000
			if c.P <= .05 {
				called++
			}
		}
		power := float64(called) / 2000
		t.Logf("%+v: %.3f detectable, power %.3f; %.3f from the data", tc, d, power, after)
		near(t, "power", power, .8, .03)
		near(t, "detectable from the data", after/d, 1, .1)
	}
}

func TestDetectableLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5000).Draw(t, "n")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		rho := rapid.Float64Range(0, 1).Draw(t, "rho")
		repeats := rapid.IntRange(1, 9).Draw(t, "repeats")
		d, paired := stat.Detectable(n, p), stat.DetectablePaired(n, repeats, p, rho)
		if d <= 0 || d > 1 || paired <= 0 || paired > 1 {
			t.Fatalf("%v, paired %v", d, paired)
		}
		if more := stat.Detectable(n+1+n/2, p); more > d+1e-9 {
			t.Fatalf("%v, with more trials %v", d, more)
		}
		if more := stat.DetectablePaired(n+1+n/2, repeats, p, rho); more > paired+1e-9 {
			t.Fatalf("paired %v, with more tasks %v", paired, more)
		}
		if worst := stat.DetectablePaired(n, repeats, .5, 0); worst < paired-1e-9 {
			t.Fatalf("paired %v, at worst %v", paired, worst)
		}
	})
}
