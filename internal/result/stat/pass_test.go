package stat_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// TestPassFormula compares with the binomial coefficients of the definitions in
// exact arithmetic.
func TestPassFormula(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		c := rapid.IntRange(0, n).Draw(t, "c")
		k := rapid.IntRange(1, n).Draw(t, "k")
		ratio := func(m int) float64 {
			top, all := new(big.Int), new(big.Int).Binomial(int64(n), int64(k))
			if m >= k {
				top.Binomial(int64(m), int64(k))
			}
			f, _ := new(big.Rat).SetFrac(top, all).Float64()
			return f
		}
		if got, want := stat.PassHatK(n, c, k), ratio(c); math.Abs(got-want) > 1e-12 {
			t.Fatalf("pass^%d of %d in %d = %v, want %v", k, c, n, got, want)
		}
		if got, want := stat.PassAtK(n, c, k), 1-ratio(n-c); math.Abs(got-want) > 1e-12 {
			t.Fatalf("pass@%d of %d in %d = %v, want %v", k, c, n, got, want)
		}
	})
}

// TestPassUnbiased checks that over all outcomes of n trials, the estimates
// average to the true probabilities.
func TestPassUnbiased(t *testing.T) {
	t.Parallel()
	const n = 7
	for k := 1; k <= n; k++ {
		for _, p := range []float64{.1, .5, .83} {
			var at, hat float64
			for c := range n + 1 {
				at += binomial(n, c, p) * stat.PassAtK(n, c, k)
				hat += binomial(n, c, p) * stat.PassHatK(n, c, k)
			}
			if math.Abs(at-(1-math.Pow(1-p, float64(k)))) > 1e-12 ||
				math.Abs(hat-math.Pow(p, float64(k))) > 1e-12 {
				t.Errorf("k = %d, p = %v: %v and %v", k, p, at, hat)
			}
		}
	}
}

func TestPassUndefined(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]int{{3, 1, 4}, {3, 1, 0}, {0, 0, 1}} {
		at, hat := stat.PassAtK(tc[0], tc[1], tc[2]), stat.PassHatK(tc[0], tc[1], tc[2])
		if !math.IsNaN(at) || !math.IsNaN(hat) {
			t.Errorf("%v: %v, %v, want NaN", tc, at, hat)
		}
	}
}

// TestPassKReference has a first task with pass^2 of 1 and 1/3 in its cells
// with two or more trials, and a second with 0. The third task has too few
// trials.
func TestPassKReference(t *testing.T) {
	t.Parallel()
	got := stat.PassK([]stat.Task{
		{Cells: []stat.Group{{2, 2}, {2, 3}, {0, 1}}},
		{Cells: []stat.Group{{}, {1, 4}}},
		{Cells: []stat.Group{{1, 1}, {1, 1}}},
		{},
	}, 2, false)
	if got.K != 2 || got.Tasks != 2 {
		t.Errorf("got %+v", got)
	}
	near(t, "pass^2", got.Hat, (2./3+0)/2, 1e-12)
	near(t, "pass@2", got.At, (1+.5)/2, 1e-12)
}

func TestPassKLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		task := func(t *rapid.T) stat.Task { return stat.Task{Cells: groups(t)} }
		tasks := rapid.SliceOf(rapid.Custom(task)).Draw(t, "tasks")
		k := rapid.IntRange(0, 10).Draw(t, "k")
		p := stat.PassK(tasks, k, false)
		want, whole := 0, true // tasks with k trials in a cell; no cell has exactly k
		for _, task := range tasks {
			if slices.ContainsFunc(task.Cells,
				func(g stat.Group) bool { return k > 0 && g.N >= k }) {
				want++
			}
			whole = whole &&
				!slices.ContainsFunc(task.Cells, func(g stat.Group) bool { return g.N == k })
		}
		if p.Tasks != want {
			t.Fatalf("%d tasks, want %d", p.Tasks, want)
		}
		if p.Tasks == 0 {
			return
		}
		if p.Hat > p.At+1e-12 {
			t.Fatalf("pass^k above pass@k: %+v", p)
		}
		for _, x := range []struct {
			mean float64
			i    stat.Interval
		}{{p.At, p.AtInterval}, {p.Hat, p.HatInterval}} {
			if x.i.Low < 0 || x.i.High > 1 || x.mean < x.i.Low-1e-12 || x.mean > x.i.High+1e-12 {
				t.Fatalf("%+v", p)
			}
		}
		next := stat.PassK(tasks, k+1, false)
		if whole && (next.At < p.At-1e-12 || next.Hat > p.Hat+1e-12) {
			t.Fatalf("not monotone in k: %+v, then %+v", p, next)
		}
		// Doubling a task's cells does not double its weight.
		for i := range tasks {
			tasks[i].Cells = append(tasks[i].Cells, tasks[i].Cells...)
		}
		twice := stat.PassK(tasks, k, false)
		if !cmp.Equal(p, twice, cmpopts.EquateApprox(0, 1e-9)) {
			t.Fatalf("%+v, with each cell doubled %+v", p, twice)
		}
	})
}

// TestPassKCoverage checks that averaged over rates, coverage is from one point
// below 95 % to two above it. A mean uses at least 4 x 500 draws, so its
// standard error is 0.5 points; the error of a single rate is 1.1. The bounds allow
// for two standard errors.
func TestPassKCoverage(t *testing.T) {
	simulates(t, "45,600 intervals")
	r := rand.New(rand.NewPCG(5, 3))
	for _, tasks := range []int{20, 50, 200} {
		for _, k := range []int{1, 2, 4} {
			for _, rho := range []float64{.2, .5, .8} {
				if tasks == 200 && k != 2 {
					continue // easy and slow
				}
				const n = 5
				asked := make([]stat.Task, tasks)
				mean, worst := 0., 1.
				rates := []float64{.25, .5, .7, .9}
				for _, p := range rates {
					// The probability that all of k draws from the urn succeed.
					truth, s := 1., (1-rho)/rho
					for i := range k {
						truth *= (p*s + float64(i)) / (s + float64(i))
					}
					share := coverage(max(500, 12_000/tasks), truth, func() stat.Interval {
						for i := range asked {
							asked[i].Cells = []stat.Group{{Full: betaBinomial(r, n, p, rho), N: n}}
						}
						return stat.PassK(asked, k, false).HatInterval
					})
					mean += share / float64(len(rates))
					worst = min(worst, share)
				}
				t.Logf("%3d tasks, pass^%d, rho %.1f: mean %.3f, worst %.3f",
					tasks, k, rho, mean, worst)
				if mean < .94-.01 || mean > .97+.01 || worst < .935-.022 {
					t.Errorf("%d tasks, pass^%d, rho %.1f: mean coverage %.3f, worst %.3f",
						tasks, k, rho, mean, worst)
				}
			}
		}
	}
}

// TestPassKCells checks the intervals if each task is tried in many cells. If
// its probabilities there are similar, coverage averaged over rates is 95 to 99
// % with 10 and 30 tasks. If they are not, tasks hardly differ, which so few
// tasks cannot show, and coverage is up to 100 %. With 4 x 500 draws the
// standard error is 0.5 points, and 1.1 at a single rate.
func TestPassKCells(t *testing.T) {
	simulates(t, "36,000 intervals")
	r := rand.New(rand.NewPCG(5, 8))
	const cells, n, draws = 12, 8, 500
	for _, tasks := range []int{10, 30} {
		for _, k := range []int{1, 4, 8} {
			for _, alike := range []float64{1, .9, .3} { // share of cells with the task's chance
				asked := make([]stat.Task, tasks)
				mean, meanAt, worst := 0., 0., 1.
				powers := []float64{4, 1, .3, .1} // mean chances of 20, 50, 77 and 91 %
				for _, power := range powers {
					// hat is E u^(power·k), and none is E (1-u^power)^k, the
					// probability of k failures.
					hat, none := 1/(power*float64(k)+1), 1.
					for i := 1; i <= k; i++ {
						none *= float64(i) / (float64(i) + 1/power)
					}
					share := coverage(draws, hat, func() stat.Interval {
						for i := range asked {
							asked[i].Cells = asked[i].Cells[:0]
							chance := math.Pow(r.Float64(), power)
							for range cells {
								p := chance
								if r.Float64() >= alike {
									p = math.Pow(r.Float64(), power)
								}
								asked[i].Cells = append(asked[i].Cells,
									stat.Group{Full: betaBinomial(r, n, p, 0), N: n})
							}
						}
						p := stat.PassK(asked, k, false)
						if p.AtInterval.Low <= 1-none && 1-none <= p.AtInterval.High {
							meanAt += 1. / draws / float64(len(powers))
						}
						return p.HatInterval
					})
					mean += share / float64(len(powers))
					worst = min(worst, share)
				}
				t.Logf("%d tasks, k = %d, %v alike: pass^k mean %.3f, worst %.3f; pass@k mean %.3f",
					tasks, k, alike, mean, worst, meanAt)
				if min(mean, meanAt) < .95-.01 || worst < .93-.022 ||
					alike > .5 && max(mean, meanAt) > .99+.005 {
					t.Errorf("%d tasks, k = %d, %v alike: pass^k mean %.3f, worst %.3f; "+
						"pass@k mean %.3f", tasks, k, alike, mean, worst, meanAt)
				}
			}
		}
	}
}

// TestPassKOfSequences checks the intervals if tasks of one sequence of tools
// have the same chance, and that intervals by task are far too narrow. With 1,000
// draws the standard error is at most 0.8 points.
func TestPassKOfSequences(t *testing.T) {
	simulates(t, "6,000 intervals")
	r := rand.New(rand.NewPCG(5, 13))
	const k, n, power = 2, 4, .5
	for _, sequences := range []int{13, 25, 50} {
		sizes := unequal(r, sequences, 200)
		tasks := make([]stat.Task, 0, 200)
		interval := func(bySequence bool) func() stat.Interval {
			return func() stat.Interval {
				tasks = tasks[:0]
				for s, size := range sizes {
					p := math.Pow(r.Float64(), power)
					for range size {
						g := stat.Group{Full: betaBinomial(r, n, p, 0), N: n}
						tasks = append(tasks, stat.Task{Sequence: s, Cells: []stat.Group{g}})
					}
				}
				return stat.PassK(tasks, k, bySequence).HatInterval
			}
		}
		const truth = 1 / (power*k + 1) // E u^(power·k)
		large, at := coverage(1000, truth, interval(true)), coverage(1000, truth, interval(false))
		t.Logf("%d sequences: by sequence %.3f, by task %.3f", sequences, large, at)
		if large < .93 || large > .98 || at > .85 {
			t.Errorf("%d sequences: by sequence %.3f, by task %.3f", sequences, large, at)
		}
	}
}
