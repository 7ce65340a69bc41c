package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// TestWilsonReference compares with published values (Newcombe, "Two-sided
// confidence intervals for the single proportion", Statistics in Medicine 17,
// 1998, table I, method 3).
func TestWilsonReference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		k, n      int
		low, high float64
	}{
		{81, 263, .2553, .3662},
		{15, 148, .0624, .1605},
		{0, 20, 0, .1611},
		{1, 29, .0061, .1718},
	} {
		got := stat.Wilson(tc.k, tc.n, stat.Z95)
		if math.Abs(got.Low-tc.low) > 5e-5 || math.Abs(got.High-tc.high) > 5e-5 {
			t.Errorf("Wilson(%d, %d) = %.4f, want [%.4f, %.4f]", tc.k, tc.n, got, tc.low, tc.high)
		}
	}
}

func TestWilsonLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5000).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		i, wide := stat.Wilson(k, n, stat.Z95), stat.Wilson(k, n, stat.Z99)
		if i.Low < 0 || i.High > 1 || i.Low > i.High || wide.Low > i.Low || wide.High < i.High {
			t.Fatalf("95 %%: %v, 99 %%: %v", i, wide)
		}
		if p := float64(k) / float64(max(n, 1)); n > 0 && (p < i.Low-1e-12 || p > i.High+1e-12) {
			t.Fatalf("%v does not contain %v", i, p)
		}
		mirror := stat.Wilson(n-k, n, stat.Z95)
		if n > 0 &&
			(math.Abs(mirror.Low-(1-i.High)) > 1e-9 || math.Abs(mirror.High-(1-i.Low)) > 1e-9) {
			t.Fatalf("%v is not the mirror of %v", mirror, i)
		}
	})
}

// TestWilsonCoverage sums the binomial distribution, so its figures are exact.
// Averaged over rates, coverage is within one point of 95 %. At single rates it
// falls lower, as for all intervals of counts.
func TestWilsonCoverage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		n     int
		worst float64 // lowest coverage over the grid, rounded down
	}{{10, .859}, {20, .904}, {50, .910}, {100, .910}, {500, .938}} {
		intervals := make([]stat.Interval, tc.n+1)
		for k := range intervals {
			intervals[k] = stat.Wilson(k, tc.n, stat.Z95)
		}
		mean, worst := 0., 1.
		const steps = 199 // rates of 0.5 to 99.5 %
		for s := 1; s <= steps; s++ {
			p, covered := float64(s)/(steps+1), 0.
			for k, i := range intervals {
				if i.Low <= p && p <= i.High {
					covered += binomial(tc.n, k, p)
				}
			}
			mean += covered / steps
			worst = min(worst, covered)
		}
		t.Logf("n = %d: mean %.4f, worst %.4f", tc.n, mean, worst)
		if math.Abs(mean-.95) > .01 || worst < tc.worst {
			t.Errorf("n = %d: mean coverage %.4f, worst %.4f", tc.n, mean, worst)
		}
	}
}

// binomial returns the probability of k in n at the rate p in (0,1).
func binomial(n, k int, p float64) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// betaBinomial draws the number of fulfilled trials of a new task with n
// trials, at the mean rate p and the intra-cluster correlation rho. It uses
// Pólya's urn, which gets another ball of each colour drawn and corresponds to
// a draw from the beta distribution.
func betaBinomial(r *rand.Rand, n int, p, rho float64) int {
	k := 0
	for i := range n {
		chance := p
		if rho > 0 {
			s := (1 - rho) / rho
			chance = (p*s + float64(k)) / (s + float64(i))
		}
		if r.Float64() < chance {
			k++
		}
	}
	return k
}

// rates represent themselves and their mirror images.
var rates = []float64{.05, .1, .25, .5}

// coverage returns how often the intervals that draw returns contain the truth.
func coverage(draws int, truth float64, draw func() stat.Interval) float64 {
	held := 0
	for range draws {
		// The tolerance is for rounding.
		if i := draw(); i.Low <= truth+1e-9 && truth-1e-9 <= i.High {
			held++
		}
	}
	return float64(held) / float64(draws)
}

// TestClusteredCoverage checks the claims in the comment of Clustered. A mean
// uses at least 4 x 600 draws, so its standard error is 0.45 points; the error of a single rate is
// 1.1 points near its lowest. The bounds are the claims plus two standard errors.
func TestClusteredCoverage(t *testing.T) {
	simulates(t, "92,800 intervals")
	r := rand.New(rand.NewPCG(7, 11))
	for _, tasks := range []int{20, 50, 200} {
		for _, repeats := range []int{1, 2, 5, 8} {
			for _, rho := range []float64{0, .2, .5, .8} {
				if repeats == 1 && rho > 0 || tasks == 200 && repeats != 5 {
					continue // no repeats to correlate, or easy and slow
				}
				mean, worst := 0., 1.
				groups := make([]stat.Group, tasks)
				for _, p := range rates {
					share := coverage(max(600, 20_000/tasks), p, func() stat.Interval {
						for i := range groups {
							groups[i] = stat.Group{
								Full: betaBinomial(r, repeats, p, rho),
								N:    repeats,
							}
						}
						return stat.Clustered(groups, .95).Interval
					})
					mean += share / float64(len(rates))
					worst = min(worst, share)
				}
				t.Logf("%3d tasks x %d, rho %.1f: mean %.3f, worst %.3f",
					tasks, repeats, rho, mean, worst)
				high := .96
				if tasks < 100 && rho < .5 {
					high = .985
				}
				if mean < .94-.009 || mean > high+.009 || worst < .92-.022 {
					t.Errorf("%d tasks x %d, rho %.1f: mean coverage %.3f, worst %.3f",
						tasks, repeats, rho, mean, worst)
				}
			}
		}
	}
}

// TestClusteredReference uses four tasks of two trials with 2, 0, 1 and 2
// successes. The mean squares are 11/24 between and 1/8 within tasks, so the
// correlation is 4/7. Three tasks with a success and two with a failure shrink
// it to 23/35.
func TestClusteredReference(t *testing.T) {
	t.Parallel()
	got := stat.Clustered([]stat.Group{{2, 2}, {}, {0, 2}, {1, 2}, {2, 2}}, .95)
	if got.Tasks != 4 || got.Trials != 8 || got.Rate != .625 {
		t.Errorf("got %+v", got)
	}
	want := (2*4./7 + .5) / 2.5
	if math.Abs(got.Correlation-want) > 1e-12 || math.Abs(got.DesignEffect-1-want) > 1e-12 {
		t.Errorf("correlation %v, design effect %v, want %v and 1 more",
			got.Correlation, got.DesignEffect, want)
	}
}

func groups(t *rapid.T) []stat.Group {
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) stat.Group {
		n := rapid.IntRange(0, 9).Draw(t, "n")
		return stat.Group{Full: rapid.IntRange(0, n).Draw(t, "full"), N: n}
	})).Draw(t, "groups")
}

func TestClusteredLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		groups := groups(t)
		r := stat.Clustered(groups, .95)
		full, n, squares := 0, 0, 0
		for _, g := range groups {
			full, n, squares = full+g.Full, n+g.N, squares+g.N*g.N
		}
		if n == 0 {
			if r.Interval != (stat.Interval{Low: 0, High: 1}) {
				t.Fatalf("without trials: %+v", r)
			}
			return
		}
		kish := float64(squares) / float64(n)
		if r.Correlation < 0 || r.Correlation > 1 || r.DesignEffect < 1 ||
			r.DesignEffect > kish+1e-9 {
			t.Fatalf("%+v", r)
		}
		// The interval is not narrower than for independent trials.
		w := stat.Wilson(full, n, stat.Z95)
		if r.Interval.Low > w.Low+1e-9 || r.Interval.High < w.High-1e-9 {
			t.Fatalf("%+v is narrower than %v", r, w)
		}
		if r.Interval.Low < 0 || r.Interval.High > 1 {
			t.Fatalf("%+v", r)
		}
		for i := range groups {
			groups[i].Full = groups[i].N - groups[i].Full
		}
		mirror := stat.Clustered(groups, .95).Interval
		if math.Abs(mirror.Low-(1-r.Interval.High)) > 1e-9 ||
			math.Abs(mirror.High-(1-r.Interval.Low)) > 1e-9 {
			t.Fatalf("%v is not the mirror of %v", mirror, r.Interval)
		}
	})
}

// TestClusteredSingle checks that the interval equals Wilson's at each level if
// each task has one trial.
func TestClusteredSingle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		groups := make([]stat.Group, n)
		for i := range groups {
			groups[i].N = 1
			if i < k {
				groups[i].Full = 1
			}
		}
		for conf, z := range map[float64]float64{.95: stat.Z95, .99: stat.Z99, .999: stat.Z999} {
			got, want := stat.Clustered(groups, conf).Interval, stat.Wilson(k, n, z)
			if math.Abs(got.Low-want.Low) > 1e-9 || math.Abs(got.High-want.High) > 1e-9 {
				t.Fatalf("%v at %v, want %v", got, conf, want)
			}
		}
	})
}

// TestClusteredUnanimous checks that repeats that all agree count as one,
// including the cases in which all trials of all tasks ended alike.
func TestClusteredUnanimous(t *testing.T) {
	t.Parallel()
	for k := range 11 {
		groups := make([]stat.Group, 10)
		for i := range groups {
			groups[i].N = 4
			if i < k {
				groups[i].Full = 4
			}
		}
		got, want := stat.Clustered(groups, .95), stat.Wilson(k, 10, stat.Z95)
		if math.Abs(got.Interval.Low-want.Low) > 1e-9 ||
			math.Abs(got.Interval.High-want.High) > 1e-9 || got.DesignEffect != 4 {
			t.Errorf("%d tasks: %+v, want %v", k, got, want)
		}
	}
}
