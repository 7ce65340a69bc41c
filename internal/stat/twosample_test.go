package stat_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/stat"
)

// TestTwoSampleInterval compares with published values: Newcombe, "Interval
// estimation for the difference between independent proportions", Statistics in
// Medicine 17 (1998), table II, method 10.
func TestTwoSampleInterval(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		k1, n1, k2, n2 int
		low, high      float64
	}{
		{56, 70, 48, 80, .0524, .3339},
		{9, 10, 3, 10, .1705, .8090},
		{6, 7, 2, 7, .0582, .8062},
		{5, 56, 0, 29, -.0381, .1926},
		{0, 10, 0, 20, -.1611, .2775},
		{0, 10, 0, 10, -.2775, .2775},
		{10, 10, 0, 20, .6791, 1},
		{10, 10, 0, 10, .6075, 1},
	} {
		got := stat.TwoSample(tc.k1, tc.n1, tc.k2, tc.n2).Interval
		near(t, "low", got.Low, tc.low, 5.1e-5)
		near(t, "high", got.High, tc.high, 5.1e-5)
	}
}

// TestFisherReference: 3 of 4 against 1 of 4 is Fisher's tea tasting (The Design
// of Experiments, 1935), two-sided 34/70; the others are from scipy 1.17.1
// (fisher_exact).
func TestFisherReference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		k1, n1, k2, n2 int
		want           float64
	}{
		{3, 4, 1, 4, 34. / 70},
		{8, 10, 2, 12, .008284285374068655},
		{56, 70, 48, 80, .012521129749209154},
		{9, 10, 3, 10, .019766611097880443},
		{5, 56, 0, 29, .1606214432094711},
		{60, 100, 45, 100, .04716548538301931},
		{0, 10, 0, 10, 1},
	} {
		near(t, "p", stat.TwoSample(tc.k1, tc.n1, tc.k2, tc.n2).P, tc.want, 1e-10)
	}
}

func TestTwoSampleLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n1, n2 := rapid.IntRange(0, 400).Draw(t, "n1"), rapid.IntRange(0, 400).Draw(t, "n2")
		k1, k2 := rapid.IntRange(0, n1).Draw(t, "k1"), rapid.IntRange(0, n2).Draw(t, "k2")
		c := stat.TwoSample(k1, n1, k2, n2)
		lawful(t, c)
		mirrored(t, c, stat.TwoSample(k2, n2, k1, n1))
		if n1 > 0 && n2 > 0 {
			turned := stat.TwoSample(n1-k1, n1, n2-k2, n2)
			if math.Abs(turned.Difference+c.Difference) > 1e-12 || math.Abs(turned.P-c.P) > 1e-9 {
				t.Fatalf("%+v, of failures %+v", c, turned)
			}
		}
	})
}

// TestTwoSampleExact sums the two binomial distributions: no simulation. Fisher's
// test keeps its level at each rate, and the interval holds 95 % on average
// within one point and
// no less than 92 %.
func TestTwoSampleExact(t *testing.T) {
	t.Parallel()
	const n = 30
	var table [n + 1][n + 1]stat.Comparison
	for k1 := range n + 1 {
		for k2 := range n + 1 {
			table[k1][k2] = stat.TwoSample(k1, n, k2, n)
		}
	}
	mean, cases := 0., 0.
	for _, p1 := range []float64{.05, .15, .3, .5, .7, .85, .95} {
		for _, p2 := range []float64{.05, .15, .3, .5, .7, .85, .95} {
			covered, called := 0., 0.
			for k1 := range n + 1 {
				for k2 := range n + 1 {
					w, c := binomial(n, k1, p1)*binomial(n, k2, p2), table[k1][k2]
					if c.Interval.Low <= p1-p2+1e-12 && p1-p2-1e-12 <= c.Interval.High {
						covered += w
					}
					if c.P <= .05 {
						called += w
					}
				}
			}
			mean += covered
			cases++
			if covered < .92 {
				t.Errorf("%v, %v: covered %.4f", p1, p2, covered)
			}
			if p1 == p2 && called > .05 {
				t.Errorf("%v: called %.4f of no differences", p1, called)
			}
		}
	}
	t.Logf("mean coverage %.4f", mean/cases)
	near(t, "mean coverage", mean/cases, .955, .01)
}
