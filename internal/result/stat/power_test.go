package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A design is a comparison of so many tasks with so many repeats a side, where
// two repeats of a task correlate by within and its trials on different sides by
// between.
type design struct {
	tasks, repeats  int
	within, between float64
}

// draw fills pairs at the rates a and b. Without anything in common each side has
// beta-binomial tasks of its own; otherwise the difficulty of tasks is normal,
// common to both sides up to between, and the sides' rates shift it.
func (x design) draw(r *rand.Rand, pairs []stat.Pair, a, b float64) {
	for i := range pairs {
		pairs[i] = stat.Pair{NA: x.repeats, NB: x.repeats}
		if x.between == 0 {
			pairs[i].A = betaBinomial(r, x.repeats, a, x.within)
			pairs[i].B = betaBinomial(r, x.repeats, b, x.within)
			continue
		}
		// What correlates by ρ as outcomes at one half does by sin(πρ/2) as normals.
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

// apart are two rates with the difference d around p, or at the border.
func apart(p, d float64) (a, b float64) {
	low := min(1-d, max(0, p-d/2))
	return min(low+d, 1-1e-12), max(low, 1e-12)
}

// power is how often Compare calls what draw makes.
func power(draws, tasks int, draw func([]stat.Pair)) float64 {
	pairs := make([]stat.Pair, tasks)
	called := 0
	for range draws {
		draw(pairs)
		if stat.Compare(pairs).P <= .05 {
			called++
		}
	}
	return float64(called) / float64(draws)
}

// TestDetectablePower fixes what the comment of Detectable claims, by simulation
// of Compare: with the difference that it tells before a run, 80 to 90 % of runs
// show it. 1,500 draws: the standard error is one point at most, and the bounds
// are the claims and two of these.
func TestDetectablePower(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 6))
	for _, tasks := range []int{10, 15, 25, 50, 100} {
		for _, repeats := range []int{1, 2, 5, 10} {
			for _, c := range [][2]float64{{0, 0}, {.5, 0}, {.5, .5}} {
				x := design{tasks, repeats, c[0], c[1]}
				d := stat.Detectable(tasks, repeats, x.within, x.between)
				a, b := apart(.5, d)
				got := power(1500, tasks, func(pairs []stat.Pair) { x.draw(r, pairs, a, b) })
				t.Logf("%+v: %.3f detectable, power %.3f", x, d, got)
				if got < .78 || got > .92 {
					t.Errorf("%+v: %.3f detectable, power %.3f", x, d, got)
				}
			}
		}
	}
}

// TestDetectableBorders: fewer tasks than can show anything, and what is claimed
// of the few that can.
func TestDetectableBorders(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 9))
	for tasks := range 6 {
		if d := stat.Detectable(tasks, 10, 0, 0); d != 1 {
			t.Errorf("%d tasks: %v", tasks, d)
		}
	}
	if d := stat.Detectable(100, 0, 0, 0); d != 1 {
		t.Errorf("no repeats: %v", d)
	}
	for tasks, least := range map[int]float64{6: .55, 8: .78, 9: .78} {
		for _, repeats := range []int{1, 10} {
			for _, within := range []float64{0, .5} {
				a, b := apart(.5, stat.Detectable(tasks, repeats, within, 0))
				got := power(2000, tasks, func(pairs []stat.Pair) { design{tasks, repeats, within, 0}.draw(r, pairs, a, b) })
				t.Logf("%d tasks x %d, %v: power %.3f", tasks, repeats, within, got)
				if got < least || got > .94 {
					t.Errorf("%d tasks x %d, %v: power %.3f", tasks, repeats, within, got)
				}
			}
		}
	}
}

// TestDetectableMany: with many tasks it is the textbook's difference of 2.8
// standard errors, whose variance is Kish's.
func TestDetectableMany(t *testing.T) {
	t.Parallel()
	const tasks = 10_000_000
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
		near(t, "detectable", stat.Detectable(tasks, tc.repeats, tc.within, tc.between)/want, 1, .005)
	}
}

// TestCompareDetectable fixes what the comment of Compare claims of Detectable:
// new data that differ by it show it in about 80 of 100 runs, whether the data
// that it is taken from differ or not. 500 draws: the standard error is 1.8
// points, and the bounds are the claims and two of these. Around one half it is
// what the design foretells.
func TestCompareDetectable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(6, 12))
	const draws = 500
	for _, tasks := range []int{10, 25, 100} {
		for _, repeats := range []int{1, 10} {
			for _, c := range [][2]float64{{0, 0}, {.5, 0}, {.5, .5}} {
				x := design{tasks, repeats, c[0], c[1]}
				before := stat.Detectable(tasks, repeats, x.within, x.between)
				for _, rate := range []float64{.5, .8} {
					for _, truth := range []float64{0, before / 2} {
						mean := 0.
						got := power(draws, tasks, func(pairs []stat.Pair) {
							a, b := apart(rate, truth)
							x.draw(r, pairs, a, b)
							d := stat.Compare(pairs).Detectable
							mean += d / draws
							a, b = apart(rate, d)
							x.draw(r, pairs, a, b)
						})
						t.Logf("%+v around %v, %.3f apart: %.3f detectable, power %.3f", x, rate, truth, mean, got)
						least, most, high := .78, .92, 1.1
						if rate == .8 {
							least, most, high = .74, .94, 1
						}
						if got < least-.035 || got > most+.035 || tasks >= 25 && (mean > high*before || rate == .5 && mean < .97*before) {
							t.Errorf("%+v around %v, %.3f apart: %.3f detectable, %.3f foretold, power %.3f", x, rate, truth, mean, before, got)
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
		d := stat.Detectable(n, repeats, within, between)
		if d <= 0 || d > 1 {
			t.Fatal(d)
		}
		for what, other := range map[string]float64{
			"with more tasks":        stat.Detectable(n+1+n/2, repeats, within, between),
			"with more repeats":      stat.Detectable(n, repeats+1, within, between),
			"with repeats less like": stat.Detectable(n, repeats, within/2, between),
		} {
			if other > d+1e-9 {
				t.Fatalf("%v, %s %v", d, what, other)
			}
		}
		if worst := stat.Detectable(n, repeats, within, 0); worst < d-1e-9 {
			t.Fatalf("%v, of unlike sides %v", d, worst)
		}
	})
}
