package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A design is a comparison with the given numbers of tasks and of repeats per
// side. Two repeats of a task correlate by within, and its trials on different
// sides by between.
type design struct {
	tasks, repeats  int
	within, between float64
}

// draw fills pairs at the rates a and b. If between is 0, each side has its own
// beta-binomial tasks. Otherwise the difficulty of tasks is normal and shared
// by both sides up to between, and the sides' rates shift it.
func (x design) draw(r *rand.Rand, pairs []stat.Pair, a, b float64) {
	for i := range pairs {
		pairs[i] = stat.Pair{NA: x.repeats, NB: x.repeats}
		if x.between == 0 {
			pairs[i].A = betaBinomial(r, x.repeats, a, x.within)
			pairs[i].B = betaBinomial(r, x.repeats, b, x.within)
			continue
		}
		// Outcomes at one half that correlate by ρ correspond to normals that
		// correlate by sin(πρ/2).
		within, between := math.Sin(math.Pi*x.within/2), math.Sin(math.Pi*x.between/2)
		common := math.Sqrt(between) * r.NormFloat64()
		rate := func(p float64) float64 {
			difficulty := common + math.Sqrt(within-between)*r.NormFloat64()
			return math.Erfc((math.Sqrt2*math.Erfcinv(2*p)-difficulty)/math.Sqrt(2*(1-within))) / 2
		}
		pairs[i].A = betaBinomial(r, x.repeats, rate(a), 0)
		pairs[i].B = betaBinomial(r, x.repeats, rate(b), 0)
	}
}

// apart returns two rates with the difference d around p, or at the border.
func apart(p, d float64) (a, b float64) {
	low := min(1-d, max(0, p-d/2))
	return min(low+d, 1-1e-12), max(low, 1e-12)
}

// detectable is stat.Detectable for tasks of different sequences.
func detectable(tasks, repeats int, within, between float64) float64 {
	return stat.Detectable(slices.Repeat([]int{1}, tasks), repeats, within, between)
}

// power returns how often Compare finds a difference in the data of draw.
func power(draws, tasks int, draw func([]stat.Pair)) float64 {
	pairs := make([]stat.Pair, tasks)
	return share(draws, func() bool {
		draw(pairs)
		return compare(pairs).P <= .05
	})
}

// share returns how often a draw is true.
func share(draws int, draw func() bool) float64 {
	n := 0
	for range draws {
		if draw() {
			n++
		}
	}
	return float64(n) / float64(draws)
}

// TestDetectablePower checks the claims in the comment of Detectable by
// simulating Compare: 80 to 90 % of runs show the predicted difference. With
// 1,500 draws the standard error is at most one point, and the bounds are the
// claims plus two standard errors.
func TestDetectablePower(t *testing.T) {
	simulates(t, "40,500 comparisons")
	r := rand.New(rand.NewPCG(6, 6))
	for _, tasks := range []int{10, 25, 100} {
		for _, repeats := range []int{1, 2, 10} {
			for _, c := range [][2]float64{{0, 0}, {.5, 0}, {.5, .5}} {
				x := design{tasks, repeats, c[0], c[1]}
				d := detectable(tasks, repeats, x.within, x.between)
				a, b := apart(.5, d)
				got := power(1500, tasks, func(pairs []stat.Pair) { x.draw(r, pairs, a, b) })
				t.Logf("%+v: %.3f detectable, power %.3f", x, d, got)
				if got < .75 || got > .91 {
					t.Errorf("%+v: %.3f detectable, power %.3f", x, d, got)
				}
			}
		}
	}
}

// sequences draws tasks of sequences of the given sizes. Trials of one sequence
// correlate like repeats of a task.
func (x design) sequences(r *rand.Rand, sizes []int, a, b float64) (tasks []stat.Matched) {
	for s, n := range sizes {
		all := make([]stat.Pair, 1)
		design{1, n * x.repeats, x.within, x.between}.draw(r, all, a, b)
		left := all[0]
		for range n {
			p := stat.Pair{NA: x.repeats, NB: x.repeats}
			p.A, left.A, left.NA = part(r, left.A, left.NA, x.repeats)
			p.B, left.B, left.NB = part(r, left.B, left.NB, x.repeats)
			tasks = append(tasks, stat.Matched{Sequence: s, Cells: []stat.Cell{{Pair: p}}})
		}
	}
	return tasks
}

// part takes n of some trials at random.
func part(r *rand.Rand, full, trials, n int) (taken, fullLeft, trialsLeft int) {
	for range n {
		if r.IntN(trials) < full-taken {
			taken++
		}
		trials--
	}
	return taken, full - taken, trials
}

// TestDetectableOfSequences checks the claim in the comment of Detectable about
// sequences: 79 to 85 % of runs find the planned difference. With 800 draws the
// standard error is 1.4 points, and the bounds are two of them wider. Planned by
// task, the difference would be up to a third of that.
func TestDetectableOfSequences(t *testing.T) {
	simulates(t, "6,400 comparisons")
	r := rand.New(rand.NewPCG(6, 13))
	for _, sizes := range [][]int{
		slices.Repeat([]int{8}, 13), unequal(r, 13, 104), unequal(r, 25, 200), unequal(r, 50, 400),
	} {
		for _, x := range []design{{0, 1, .5, 0}, {0, 3, .5, .5}} {
			d := stat.Detectable(sizes, x.repeats, x.within, x.between)
			a, b := apart(.5, d)
			got := share(800, func() bool {
				return stat.Compare(x.sequences(r, sizes, a, b), true).P <= .05
			})
			t.Logf("%v tasks, %+v: %.3f detectable, power %.3f; by task %.3f", sizes, x, d, got,
				detectable(8*len(sizes), x.repeats, x.within, x.between))
			if got < .79-.028 || got > .85+.028 {
				t.Errorf("%v tasks, %+v: %.3f detectable, power %.3f", sizes, x, d, got)
			}
		}
	}
}

// unequal returns the sizes of sequences, which differ as in an urn.
func unequal(r *rand.Rand, sequences, tasks int) []int {
	sizes := slices.Repeat([]int{1}, sequences)
	for range tasks - sequences {
		sizes[int(math.Pow(r.Float64(), 2)*float64(sequences))]++
	}
	return sizes
}

// TestDetectableBorders checks numbers of tasks that cannot show any
// difference, and the claims about the smallest numbers that can.
func TestDetectableBorders(t *testing.T) {
	simulates(t, "24,000 comparisons")
	r := rand.New(rand.NewPCG(6, 9))
	for tasks := range 6 {
		if d := detectable(tasks, 10, 0, 0); d != 1 {
			t.Errorf("%d tasks: %v", tasks, d)
		}
	}
	if d := detectable(100, 0, 0, 0); d != 1 {
		t.Errorf("no repeats: %v", d)
	}
	for tasks, least := range map[int]float64{6: .55, 8: .78, 9: .78} {
		for _, repeats := range []int{1, 10} {
			for _, within := range []float64{0, .5} {
				a, b := apart(.5, detectable(tasks, repeats, within, 0))
				x := design{tasks, repeats, within, 0}
				got := power(2000, tasks, func(pairs []stat.Pair) { x.draw(r, pairs, a, b) })
				t.Logf("%d tasks x %d, %v: power %.3f", tasks, repeats, within, got)
				if got < least || got > .94 {
					t.Errorf("%d tasks x %d, %v: power %.3f", tasks, repeats, within, got)
				}
			}
		}
	}
}

// TestDetectableMany checks that with many tasks the result is the textbook's
// difference of 2.8 standard errors with Kish's variance.
func TestDetectableMany(t *testing.T) {
	t.Parallel()
	const tasks = 200_000
	for _, tc := range []struct {
		repeats         int
		within, between float64
		variance        float64
	}{
		{1, 0, 0, .5},
		{1, .7, 0, .5},
		{1, .5, .5, .25},
		{4, 0, 0, .125},
		{5, .5, 0, .3},
		{5, .5, .5, .05},
		{1000, .5, 0, .25025},
	} {
		want := 2.8015852 * math.Sqrt(tc.variance/tasks)
		near(t, "detectable",
			detectable(tasks, tc.repeats, tc.within, tc.between)/want, 1, .005)
	}
}

// TestCompareDetectable checks the claims in the comment of Compare about
// Detectable: about 80 of 100 runs show a difference of that size, whether the
// sides of the earlier data differ or not. With 300 draws the standard error is
// 2.3 points, and the bounds are the claims plus two standard errors. Around one half it agrees
// with Detectable.
func TestCompareDetectable(t *testing.T) {
	simulates(t, "43,200 comparisons")
	r := rand.New(rand.NewPCG(6, 12))
	const draws = 300
	for _, tasks := range []int{10, 25, 100} {
		for _, repeats := range []int{1, 10} {
			for _, c := range [][2]float64{{0, 0}, {.5, 0}, {.5, .5}} {
				x := design{tasks, repeats, c[0], c[1]}
				before := detectable(tasks, repeats, x.within, x.between)
				for _, rate := range []float64{.5, .8} {
					for _, truth := range []float64{0, before / 2} {
						mean := 0.
						got := power(draws, tasks, func(pairs []stat.Pair) {
							a, b := apart(rate, truth)
							x.draw(r, pairs, a, b)
							d := compare(pairs).Detectable
							mean += d / draws
							a, b = apart(rate, d)
							x.draw(r, pairs, a, b)
						})
						t.Logf("%+v around %v, %.3f apart: %.3f detectable, power %.3f",
							x, rate, truth, mean, got)
						least := map[int]float64{10: .5, 25: .7, 100: .78}[tasks]
						unlike := mean > 1.1*before || rate == .5 && mean < .85*before
						if got < least-.046 || got > .94+.046 || tasks >= 25 && unlike {
							t.Errorf("%+v around %v, %.3f apart: %.3f detectable, "+
								"%.3f predicted, power %.3f", x, rate, truth, mean, before, got)
						}
					}
				}
			}
		}
	}
}

func TestDetectableLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, repeats := rapid.IntRange(0, 5000).Draw(t, "n"), rapid.IntRange(1, 9).Draw(t, "repeats")
		within := rapid.Float64Range(0, 1).Draw(t, "within")
		between := rapid.Float64Range(0, 1).Draw(t, "between")
		d := detectable(n, repeats, within, between)
		if d <= 0 || d > 1 {
			t.Fatal(d)
		}
		for what, other := range map[string]float64{
			"with more tasks":           detectable(n+1+n/2, repeats, within, between),
			"with more repeats":         detectable(n, repeats+1, within, between),
			"with less similar repeats": detectable(n, repeats, within/2, between),
		} {
			if other > d+1e-9 {
				t.Fatalf("%v, %s %v", d, what, other)
			}
		}
		if worst := detectable(n, repeats, within, 0); worst < d-1e-9 {
			t.Fatalf("%v, with uncorrelated sides %v", d, worst)
		}
	})
}

// TestPowerOfDifferences compares the share of runs that should find a difference of 5, 10 or 20
// points with simulated ones: as planned, and as data of earlier runs predict it on average. With
// 800 draws, three standard errors are at most five points; the bound is ten.
func TestPowerOfDifferences(t *testing.T) {
	simulates(t, "86,400 comparisons")
	r := rand.New(rand.NewPCG(6, 31))
	const draws = 800
	planned, printed, n := 0., 0., 0.
	for _, tasks := range []int{20, 60, 200} {
		for _, repeats := range []int{1, 3} {
			for _, c := range [][2]float64{{.5, 0}, {.5, .5}, {.2, .2}} {
				x := design{tasks, repeats, c[0], c[1]}
				plan := stat.PowerOf(slices.Repeat([]int{1}, tasks), repeats, x.within, x.between)
				var mean stat.Power
				power(draws, tasks, func(pairs []stat.Pair) {
					x.draw(r, pairs, .5, .5)
					p := compare(pairs).Power
					mean.At5, mean.At10 = mean.At5+p.At5/draws, mean.At10+p.At10/draws
					mean.At20 += p.At20 / draws
				})
				for d, said := range map[float64][2]float64{
					.05: {plan.At5, mean.At5}, .1: {plan.At10, mean.At10}, .2: {plan.At20, mean.At20},
				} {
					a, b := apart(.5, d)
					got := power(draws, tasks, func(pairs []stat.Pair) { x.draw(r, pairs, a, b) })
					planned, printed = planned+math.Abs(said[0]-got), printed+math.Abs(said[1]-got)
					n++
					if math.Abs(said[0]-got) > .1 || math.Abs(said[1]-got) > .1 {
						t.Errorf("%+v: %g found in %.2f, planned %.2f, printed %.2f", x, d, got,
							said[0], said[1])
					}
				}
			}
		}
	}
	t.Logf("off by %.3f planned, %.3f printed", planned/n, printed/n)
	if planned/n > .04 || printed/n > .04 {
		t.Errorf("off by %.3f planned, %.3f printed", planned/n, printed/n)
	}
}

// The power that a comparison of equal sides states is within four points of the share of
// comparisons that find such a loss, also at high rates, where a loss adds scatter.
func TestPowerOfComparisons(t *testing.T) {
	simulates(t, "14,400 comparisons")
	const draws = 1200
	compare := func(v versions, r *rand.Rand) stat.Comparison {
		var tasks []stat.Matched
		for _, x := range v.draw(r).Tasks {
			tasks = append(tasks, stat.Matched{Cells: []stat.Cell{{Pair: x.Cells[0].Pair}}})
		}
		return stat.Compare(tasks, false)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, v := range []versions{
		{tasks: 30, repeats: 4, rate: .9, within: .3, luck: .5},
		{tasks: 30, repeats: 4, rate: .9},
		{tasks: 100, repeats: 1, rate: .95, within: .3},
		{tasks: 60, repeats: 4, rate: .6, within: .3},
	} {
		var said, seen [2]float64
		worse := v
		for range draws {
			p := compare(v, r).Power
			said[0] += p.At10 / draws
			said[1] += p.At20 / draws
			for i, drop := range []float64{.1, .2} {
				worse.drop = drop
				if compare(worse, r).P < .05 {
					seen[i] += 1. / draws
				}
			}
		}
		t.Logf("%+v: said %.2f, seen %.2f", v, said, seen)
		for i := range said {
			if math.Abs(said[i]-seen[i]) > .04+.02 { // and 1.4 standard errors
				t.Errorf("%+v: said %.2f, seen %.2f", v, said, seen)
			}
		}
	}
}
