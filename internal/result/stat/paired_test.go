package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %.10g, want %.10g", what, got, want)
	}
}

// fourfold returns tasks with one trial per side that both sides, only A, only
// B or neither fulfilled.
func fourfold(both, a, b, neither int) []stat.Pair {
	var pairs []stat.Pair
	for _, c := range []struct{ n, a, b int }{{both, 1, 1}, {a, 1, 0}, {b, 0, 1}, {neither, 0, 0}} {
		for range c.n {
			pairs = append(pairs, stat.Pair{A: c.a, NA: 1, B: c.b, NB: 1})
		}
	}
	return pairs
}

// TestMcNemarReference uses published examples. 1 against 7 is from Fagerland,
// Lydersen and Laake, "The McNemar test for binary matched-pairs data: mid-p
// and asymptotic are better than exact conditional" (BMC Medical Research
// Methodology 13:91, 2013), on airway hyper-responsiveness after stem cell
// transplantation, with the published p-value 0.070. 150 against 86 are the
// approval ratings of Agresti, Categorical Data Analysis, section 10.1. The
// digits are from scipy 1.17.1 (binomtest).
func TestMcNemarReference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		b, c int
		want float64
	}{
		{1, 7, .0703125},
		{150, 86, 3.7159361395713866e-05},
		{0, 6, .03125},
		{59, 6, 4.964650327128616e-12},
		{3, 3, 1},
		{0, 0, 1},
	} {
		near(t, "p", stat.Compare(fourfold(2, tc.b, tc.c, 3)).P/tc.want, 1, 1e-9)
		near(t, "swapped p", stat.Compare(fourfold(2, tc.c, tc.b, 3)).P/tc.want, 1, 1e-9)
	}
}

// TestNewcombePairedReference uses an example of Newcombe (1998) with the
// published limits of method 10 in the first row. The other rows were computed
// in Python from the formulas of the paper.
func TestNewcombePairedReference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		both, a, b, neither int
		low, high           float64
	}{
		{36, 12, 2, 0, .0569, .3404},
		{36, 14, 0, 0, .1528395, .4166512},
		{794, 150, 86, 570, .0212304, .0587039},
		{53, 16, 8, 9, -.0201041, .2039158},
		{2, 97, 1, 0, .8721165, .9853665},
		{18, 7, 5, 2, -.1479040, .2662875},
		{0, 0, 0, 0, -1, 1},
	} {
		got := stat.Compare(fourfold(tc.both, tc.a, tc.b, tc.neither)).Interval
		near(t, "low", got.Low, tc.low, 5e-5)
		near(t, "high", got.High, tc.high, 5e-5)
	}
}

// TestCompareSingle uses Agresti's approval ratings as tasks of one trial each.
func TestCompareSingle(t *testing.T) {
	t.Parallel()
	c := stat.Compare(append(fourfold(794, 150, 86, 570), stat.Pair{A: 1, NA: 1}, stat.Pair{NB: 2}))
	if c.Tasks != 1600 || c.Pairs != 1600 || c.OnlyA != 150 || c.OnlyB != 86 ||
		c.Method != "exact McNemar" || c.IntervalMethod != "Newcombe paired" {
		t.Errorf("got %+v", c)
	}
	near(t, "rate A", c.RateA, .59, 1e-9)
	near(t, "rate B", c.RateB, .55, 1e-9)
	near(t, "difference", c.Difference, .04, 1e-9)
	near(t, "p", c.P, 3.7159361395713866e-05, 1e-12)
	near(t, "low", c.Interval.Low, .0212304, 1e-6)
	near(t, "high", c.Interval.High, .0587039, 1e-6)
	near(t, "odds", c.OddsRatio, 150.5/86.5, 1e-12)
	near(t, "h", c.CohenH, 2*math.Asin(math.Sqrt(.59))-2*math.Asin(math.Sqrt(.55)), 1e-9)
}

// TestSignFlipReference compares with permutation_test of scipy 1.17.1 over all
// 1,024 signs, for differences in thirds, sixths and a half.
func TestSignFlipReference(t *testing.T) {
	t.Parallel()
	c := stat.Compare([]stat.Pair{
		{2, 3, 0, 3},
		{1, 3, 0, 3},
		{1, 3, 1, 3},
		{0, 3, 1, 3},
		{3, 3, 0, 3},
		{4, 6, 0, 6},
		{4, 6, 2, 6},
		{0, 3, 1, 3},
		{3, 6, 0, 6},
		{4, 6, 3, 6},
	})
	near(t, "p", c.P, .078125, 1e-12)
	if c.Method != "exact sign flip by task" {
		t.Errorf("method %q", c.Method)
	}
}

// TestSignFlipSampled uses numbers of trials without a common unit, which make
// the exact computation too expensive. The same differences in small numbers
// must give the same p-value, except for the error of 9,999 draws, at most
// three times 0.5 points.
func TestSignFlipSampled(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(12, 1))
	exact, sampled := make([]stat.Pair, 40), make([]stat.Pair, 40)
	sides{.3, .5}.draw(r, exact, 4, .55, .45)
	for i, p := range exact {
		n := []int{997, 1009, 1013}[i%3]
		sampled[i] = stat.Pair{A: p.A * n, NA: 4 * n, B: p.B * n, NB: 4 * n}
	}
	a, b := stat.Compare(exact), stat.Compare(sampled)
	t.Logf("exact %.4f, sampled %.4f", a.P, b.P)
	if a.Method != "exact sign flip by task" || b.Method != "sampled sign flip by task" {
		t.Errorf("methods %q and %q", a.Method, b.Method)
	}
	near(t, "sampled p", b.P, a.P, .015)
	if again := stat.Compare(sampled); again.P != b.P {
		t.Errorf("p = %v, then %v", b.P, again.P)
	}
	// P is never 0, even if no draw is as extreme.
	for i := range sampled {
		sampled[i].A, sampled[i].B = sampled[i].NA, 0
	}
	near(t, "least p", stat.Compare(sampled).P, 1./10_000, 1e-4)
}

func pairs(t *rapid.T) []stat.Pair {
	most := rapid.IntRange(1, 6).Draw(t, "most")
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) stat.Pair {
		p := stat.Pair{
			NA: rapid.IntRange(0, most).Draw(t, "na"),
			NB: rapid.IntRange(0, most).Draw(t, "nb"),
		}
		p.A = rapid.IntRange(0, p.NA).Draw(t, "a")
		p.B = rapid.IntRange(0, p.NB).Draw(t, "b")
		return p
	})).Draw(t, "pairs")
}

func TestCompareLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pairs := pairs(t)
		c := stat.Compare(pairs)
		lawful(t, c)
		swapped := make([]stat.Pair, len(pairs))
		for i, p := range pairs {
			swapped[i] = stat.Pair{A: p.B, NA: p.NB, B: p.A, NB: p.NA}
		}
		mirrored(t, c, stat.Compare(swapped))
		// The order of tasks does not matter.
		for i, j := 0, len(pairs)-1; i < j; i, j = i+1, j-1 {
			pairs[i], pairs[j] = pairs[j], pairs[i]
		}
		r := stat.Compare(pairs)
		if math.Abs(r.P-c.P) > 1e-9 || math.Abs(r.Difference-c.Difference) > 1e-9 {
			t.Fatalf("%+v, reversed %+v", c, r)
		}
		// A side does not differ from itself.
		for i := range pairs {
			pairs[i].B, pairs[i].NB = pairs[i].A, pairs[i].NA
		}
		if c := stat.Compare(pairs); c.P != 1 || c.Difference != 0 || c.Interval.Low > 0 ||
			c.Interval.High < 0 {
			t.Fatalf("a side compared with itself: %+v", c)
		}
	})
}

func lawful(t *rapid.T, c stat.Comparison) {
	t.Helper()
	if c.P < 0 || c.P > 1 || c.Detectable <= 0 || c.Detectable > 1 || c.OddsRatio <= 0 ||
		math.IsInf(c.OddsRatio, 0) {
		t.Fatalf("%+v", c)
	}
	if c.Interval.Low < -1 || c.Interval.High > 1 || c.Difference < c.Interval.Low-1e-9 ||
		c.Difference > c.Interval.High+1e-9 {
		t.Fatalf("%+v", c)
	}
}

func mirrored(t *rapid.T, c, m stat.Comparison) {
	t.Helper()
	for _, d := range []float64{
		c.Difference + m.Difference, c.CohenH + m.CohenH, c.P - m.P, c.OddsRatio*m.OddsRatio - 1,
		c.Interval.Low + m.Interval.High, c.Interval.High + m.Interval.Low,
		c.RateA - m.RateB, c.Detectable - m.Detectable,
	} {
		if math.Abs(d) > 1e-9 {
			t.Fatalf("%+v, swapped %+v", c, m)
		}
	}
	if c.OnlyA != m.OnlyB || c.OnlyB != m.OnlyA || c.Method != m.Method {
		t.Fatalf("%+v, swapped %+v", c, m)
	}
}

// sides draws tasks for two sides. A task is good or bad for a side, so its
// trials correlate by rho. Both sides agree on which it is, except for a share
// of apart.
type sides struct{ rho, apart float64 }

func (l sides) draw(r *rand.Rand, pairs []stat.Pair, repeats int, a, b float64) {
	chance := func(p, u float64) float64 {
		if u < p {
			return p + (1-p)*math.Sqrt(l.rho)
		}
		return p - p*math.Sqrt(l.rho)
	}
	for i := range pairs {
		u := r.Float64()
		v := u
		if r.Float64() < l.apart {
			v = r.Float64()
		}
		pairs[i] = stat.Pair{
			A: betaBinomial(r, repeats, chance(a, u), 0), NA: repeats,
			B: betaBinomial(r, repeats, chance(b, v), 0), NB: repeats,
		}
	}
}

// TestCompareCoverage checks the claims in the comment of Compare. A mean uses
// at least 5 x 400 draws, so its standard error is 0.5 points; that of a single
// case is 1.3 near its lowest. The bounds are the claims plus two standard
// errors.
func TestCompareCoverage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 8))
	for _, tasks := range []int{20, 50, 200} {
		for _, repeats := range []int{1, 3, 8} {
			for _, like := range []sides{{0, 0}, {.3, .2}, {.3, 1}, {.7, .1}} {
				if tasks == 200 && repeats != 3 {
					continue // easy and slow
				}
				mean, worst := 0., 1.
				cases := [][2]float64{{.5, .5}, {.6, .4}, {.9, .8}, {.1, .1}, {.95, .9}}
				pairs := make([]stat.Pair, tasks)
				for _, c := range cases {
					share := coverage(max(400, 12_000/tasks), c[0]-c[1], func() stat.Interval {
						like.draw(r, pairs, repeats, c[0], c[1])
						return stat.Compare(pairs).Interval
					})
					mean += share / float64(len(cases))
					worst = min(worst, share)
				}
				t.Logf("%3d tasks x %d, %+v: mean %.3f, worst %.3f",
					tasks, repeats, like, mean, worst)
				high := map[int]float64{20: .99, 50: .975, 200: .965}[tasks]
				if mean < .94-.01 || mean > high+.01 || worst < .93-.026 {
					t.Errorf("%d tasks x %d, %+v: mean coverage %.3f, worst %.3f",
						tasks, repeats, like, mean, worst)
				}
			}
		}
	}
}

// TestCompareLevel checks that at most 5 % of p-values are below 0.05 if there
// is no difference, and not far fewer with many tasks. With 2,000 draws the
// standard error is 0.5 points.
func TestCompareLevel(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 4))
	for _, tc := range []struct {
		tasks, repeats int
		least          float64
	}{{20, 1, 0}, {20, 4, .02}, {60, 4, .035}} {
		pairs := make([]stat.Pair, tc.tasks)
		low := 0
		for range 2000 {
			sides{.4, .3}.draw(r, pairs, tc.repeats, .4, .4)
			if stat.Compare(pairs).P <= .05 {
				low++
			}
		}
		share := float64(low) / 2000
		t.Logf("%d tasks x %d: %.4f", tc.tasks, tc.repeats, share)
		if share > .06 || share < tc.least {
			t.Errorf("%d tasks x %d: %v below 0.05", tc.tasks, tc.repeats, share)
		}
	}
}

// TestCompareAllocates checks that a sampled p-value takes memory for the tasks
// but not for the draws.
func TestCompareAllocates(t *testing.T) {
	pairs := unlike(200)
	if n := testing.AllocsPerRun(2, func() { stat.Compare(pairs) }); n > 20 {
		t.Errorf("%v allocations", n)
	}
}

// unlike returns tasks whose numbers of trials have no small common unit, so
// the p-value is sampled.
func unlike(tasks int) []stat.Pair {
	r := rand.New(rand.NewPCG(1, 1))
	pairs := make([]stat.Pair, tasks)
	for i := range pairs {
		na, nb := 11+r.IntN(40), 11+r.IntN(40)
		pairs[i] = stat.Pair{A: r.IntN(na + 1), NA: na, B: r.IntN(nb + 1), NB: nb}
	}
	return pairs
}

// BenchmarkCompare should take less than 50 ms for 200 tasks with 8 trials per
// side (exact) or with different numbers (9,999 draws), and less than 100 ms
// for 630 tasks with 7 trials against 70 of which none or some are lost (exact
// and sampled).
func BenchmarkCompare(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	even := make([]stat.Pair, 200)
	sides{.4, .3}.draw(r, even, 8, .5, .45)
	unequal, lost := make([]stat.Pair, 630), make([]stat.Pair, 630)
	for i := range unequal {
		unequal[i] = oneUrn(r, 7, 70, .6, .4)
		lost[i] = oneUrn(r, 7-i%9/8, 70-i%5, .6, .4)
	}
	for name, pairs := range map[string][]stat.Pair{
		"exact": even, "sampled": unlike(200),
		"unequal": unequal, "lost": lost,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				stat.Compare(pairs)
			}
		})
	}
}
