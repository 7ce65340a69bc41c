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

// compare compares tasks with a single condition and a sequence of tools each.
func compare(pairs []stat.Pair) stat.Comparison {
	tasks := make([]stat.Matched, len(pairs))
	for i, p := range pairs {
		tasks[i] = stat.Matched{Sequence: i, Cells: []stat.Cell{{Pair: p}}}
	}
	return stat.Compare(tasks, false)
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

// TestCompareSingle uses Agresti's approval ratings as tasks of one trial each.
func TestCompareSingle(t *testing.T) {
	t.Parallel()
	c := compare(append(fourfold(794, 150, 86, 570), stat.Pair{A: 1, NA: 1}, stat.Pair{NB: 2}))
	if c.Tasks != 1600 || c.Pairs != 1600 || c.OnlyA != 150 || c.OnlyB != 86 ||
		c.Clusters != 1600 || c.Method != "t over tasks" {
		t.Errorf("got %+v", c)
	}
	near(t, "rate A", c.RateA, .59, 1e-9)
	near(t, "rate B", c.RateB, .55, 1e-9)
	near(t, "difference", c.Difference, -.04, 1e-9)
	near(t, "p", c.P, 3.092054940e-05, 1e-12)
	near(t, "low", c.Interval.Low, -.0587395575, 1e-9)
	near(t, "high", c.Interval.High, -.0212104737, 1e-9)
	near(t, "odds", c.OddsRatio, 86.5/150.5, 1e-12)
	near(t, "h", c.CohenH, 2*math.Asin(math.Sqrt(.55))-2*math.Asin(math.Sqrt(.59)), 1e-9)
}

// TestCompareReference compares with a program that leaves out one cluster after the other and
// computes Satterthwaite's degrees of freedom, 2.2 of four sequences, from the matrix of the
// residuals' covariances.
func TestCompareReference(t *testing.T) {
	t.Parallel()
	sequences := []int{0, 0, 0, 0, 1, 1, 1, 2, 2, 3}
	var tasks []stat.Matched
	for i, p := range [][2]int{
		{2, 0}, {1, 0}, {1, 1}, {0, 1}, {3, 0}, {2, 0}, {2, 1}, {0, 1}, {1, 0}, {2, 2},
	} {
		pair := stat.Pair{A: p[0], NA: 3, B: p[1], NB: 3}
		tasks = append(tasks, stat.Matched{Sequence: sequences[i], Cells: []stat.Cell{{Pair: pair}}})
	}
	c := stat.Compare(tasks, true)
	near(t, "p by sequence", c.P, .2778315216, 1e-9)
	near(t, "low by sequence", c.Interval.Low, -.9101961622, 1e-9)
	near(t, "high by sequence", c.Interval.High, .4253476773, 1e-9)
	if c.Tasks != 10 || c.Sequences != 4 || c.Clusters != 4 ||
		c.Method != "t over sequences of tools" {
		t.Errorf("%+v", c)
	}
	c = stat.Compare(tasks, false)
	near(t, "p by task", c.P, .1168567076, 1e-9)
	near(t, "low by task", c.Interval.Low, -.5585972135, 1e-9)
	near(t, "high by task", c.Interval.High, .0737487286, 1e-9)
}

// TestConditionsWeighTheSame repeats the easy condition more often on side A and the hard one on
// side B. Added up, the trials of A succeed in 17 of 25 and the trials of B in 8 of 25.
func TestConditionsWeighTheSame(t *testing.T) {
	t.Parallel()
	var tasks []stat.Matched
	for range 5 {
		tasks = append(tasks, stat.Matched{Sequence: len(tasks), Cells: []stat.Cell{
			{Condition: 0, Pair: stat.Pair{A: 4, NA: 4, B: 1, NB: 1}},
			{Condition: 1, Pair: stat.Pair{A: 0, NA: 1, B: 0, NB: 4}},
		}})
	}
	c := stat.Compare(tasks, false)
	if c.RateA != .5 || c.RateB != .5 || c.Difference != 0 || c.P != 1 || c.PConditions != 1 ||
		c.Conditions != 2 {
		t.Errorf("%+v", c)
	}
}

// TestConditionsDiffer checks that opposite differences under two conditions are found.
func TestConditionsDiffer(t *testing.T) {
	t.Parallel()
	var tasks []stat.Matched
	for i := range 20 {
		tasks = append(tasks, stat.Matched{Sequence: i, Cells: []stat.Cell{
			{Condition: 7, Pair: stat.Pair{A: min(1, i%4), NA: 1, B: 0, NB: 1}},
			{Condition: 9, Pair: stat.Pair{A: 0, NA: 1, B: min(1, i%4), NB: 1}},
		}})
	}
	if c := stat.Compare(tasks, false); c.Difference != 0 || c.PConditions > .01 {
		t.Errorf("%+v", c)
	}
}

// TestMixedModel compares balanced sequences with the textbook's estimates: the mean square between
// the three sequences of two tasks each is 1/6, and that within them is 1/8.
func TestMixedModel(t *testing.T) {
	t.Parallel()
	var tasks []stat.Matched
	for i, a := range []int{4, 2, 2, 0, 2, 4} { // differences of -1, -.5, -.5, 0, -.5 and -1
		pair := stat.Pair{A: a, NA: 4, B: 0, NB: 4}
		tasks = append(tasks, stat.Matched{Sequence: i / 2, Cells: []stat.Cell{{Pair: pair}}})
	}
	f := stat.Compare(tasks, false).Mixed
	if f == nil {
		t.Fatal("no mixed model")
	}
	near(t, "difference", f.Difference, -3.5/6, 1e-9)
	near(t, "within", f.WithinSequences, .125, 1e-6)
	near(t, "between", f.BetweenSequences, (1./6-.125)/2, 1e-6)
	near(t, "se", f.SE, math.Sqrt(1./6/6), 1e-6)
}

// TestMixedModelReference compares unequal repeats of unequal sequences with the mixed model of
// statsmodels 0.15.0 by restricted likelihood. Its standard error, .2396, allows for the
// uncertainty of the variances.
func TestMixedModelReference(t *testing.T) {
	t.Parallel()
	sequences := []int{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5}
	var tasks []stat.Matched
	for i, p := range [][4]int{
		{3, 3, 1, 1},
		{2, 3, 1, 4},
		{1, 1, 0, 2},
		{3, 3, 1, 1},
		{2, 2, 2, 4},
		{3, 4, 1, 2},
		{1, 3, 1, 1},
		{0, 1, 1, 3},
		{2, 4, 2, 3},
		{1, 2, 2, 2},
		{0, 3, 1, 2},
		{1, 1, 2, 3},
		{1, 4, 3, 4},
		{3, 3, 0, 1},
		{4, 4, 1, 3},
		{1, 1, 1, 4},
		{0, 2, 1, 4},
		{1, 3, 1, 1},
		{2, 2, 0, 2},
		{2, 3, 0, 1},
	} {
		pair := stat.Pair{A: p[0], NA: p[1], B: p[2], NB: p[3]}
		cells := []stat.Cell{{Pair: pair}}
		tasks = append(tasks, stat.Matched{Sequence: sequences[i], Cells: cells})
	}
	f := stat.Compare(tasks, false).Mixed
	near(t, "difference", f.Difference, -.149240605, 1e-7)
	near(t, "between", f.BetweenSequences, .307453, 1e-6)
	near(t, "within", f.WithinSequences, .1082326, 1e-6)
	near(t, "se", f.SE, .2396, 1e-3)
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
		c := compare(pairs)
		lawful(t, c)
		swapped := make([]stat.Pair, len(pairs))
		for i, p := range pairs {
			swapped[i] = stat.Pair{A: p.B, NA: p.NB, B: p.A, NB: p.NA}
		}
		mirrored(t, c, compare(swapped))
		// The order of tasks does not matter.
		for i, j := 0, len(pairs)-1; i < j; i, j = i+1, j-1 {
			pairs[i], pairs[j] = pairs[j], pairs[i]
		}
		r := compare(pairs)
		if math.Abs(r.P-c.P) > 1e-9 || math.Abs(r.Difference-c.Difference) > 1e-9 {
			t.Fatalf("%+v, reversed %+v", c, r)
		}
		// A side does not differ from itself.
		for i := range pairs {
			pairs[i].B, pairs[i].NB = pairs[i].A, pairs[i].NA
		}
		if c := compare(pairs); c.P != 1 || c.Difference != 0 || c.Interval.Low > 0 ||
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
// at least 5 x 400 draws, so its standard error is 0.5 points; the error of a single case is 1.3
// near its lowest. The bounds are the claims plus two standard errors.
func TestCompareCoverage(t *testing.T) {
	simulates(t, "68,000 intervals")
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
					share := coverage(max(400, 12_000/tasks), c[1]-c[0], func() stat.Interval {
						like.draw(r, pairs, repeats, c[0], c[1])
						return compare(pairs).Interval
					})
					mean += share / float64(len(cases))
					worst = min(worst, share)
				}
				t.Logf("%3d tasks x %d, %+v: mean %.3f, worst %.3f",
					tasks, repeats, like, mean, worst)
				high := map[int]float64{20: .975, 50: .965, 200: .96}[tasks]
				if mean < .94-.01 || mean > high+.01 || worst < .9-.026 {
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
			if compare(pairs).P <= .05 {
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
