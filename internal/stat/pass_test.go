package stat_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/stat"
)

// TestPassFormula compares with the binomial coefficients of the definitions,
// in exact arithmetic.
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

// TestPassUnbiased: over all outcomes of n trials the estimates average to the
// chances themselves, which is what makes them worth their name.
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
			if math.Abs(at-(1-math.Pow(1-p, float64(k)))) > 1e-12 || math.Abs(hat-math.Pow(p, float64(k))) > 1e-12 {
				t.Errorf("k = %d, p = %v: %v and %v", k, p, at, hat)
			}
		}
	}
}

func TestPassUndefined(t *testing.T) {
	t.Parallel()
	for _, tc := range [][3]int{{3, 1, 4}, {3, 1, 0}, {0, 0, 1}} {
		if a, h := stat.PassAtK(tc[0], tc[1], tc[2]), stat.PassHatK(tc[0], tc[1], tc[2]); !math.IsNaN(a) || !math.IsNaN(h) {
			t.Errorf("%v: %v, %v, want NaN", tc, a, h)
		}
	}
}

func TestPassKLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		groups := groups(t)
		k := rapid.IntRange(0, 10).Draw(t, "k")
		p := stat.PassK(groups, k)
		tasks := 0
		for _, g := range groups {
			if k > 0 && g.N >= k {
				tasks++
			}
		}
		if p.Tasks != tasks {
			t.Fatalf("%d tasks, want %d", p.Tasks, tasks)
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
		if next := stat.PassK(groups, k+1); next.Tasks == p.Tasks && (next.At < p.At-1e-12 || next.Hat > p.Hat+1e-12) {
			t.Fatalf("not monotone in k: %+v, then %+v", p, next)
		}
	})
}

// TestPassKCoverage: the intervals of the means hold their level on average over
// rates, from one point below 95 % to two above it. A mean rests on 4 x 500 draws
// or more, so that its standard error is 0.5 points, and a single rate's is 1.1:
// the bounds have room for two of these.
func TestPassKCoverage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 3))
	for _, tasks := range []int{20, 50, 200} {
		for _, k := range []int{1, 2, 4} {
			for _, rho := range []float64{.2, .5, .8} {
				if tasks == 200 && k != 2 {
					continue // easy and slow
				}
				const n = 5
				groups := make([]stat.Group, tasks)
				mean, worst := 0., 1.
				rates := []float64{.25, .5, .7, .9}
				for _, p := range rates {
					// All of k draws from the urn.
					truth, s := 1., (1-rho)/rho
					for i := range k {
						truth *= (p*s + float64(i)) / (s + float64(i))
					}
					share := coverage(max(500, 12_000/tasks), truth, func() stat.Interval {
						for i := range groups {
							groups[i] = stat.Group{Full: betaBinomial(r, n, p, rho), N: n}
						}
						return stat.PassK(groups, k).HatInterval
					})
					mean += share / float64(len(rates))
					worst = min(worst, share)
				}
				t.Logf("%3d tasks, pass^%d, rho %.1f: mean %.3f, worst %.3f", tasks, k, rho, mean, worst)
				if mean < .94-.01 || mean > .97+.01 || worst < .935-.022 {
					t.Errorf("%d tasks, pass^%d, rho %.1f: mean coverage %.3f, worst %.3f", tasks, k, rho, mean, worst)
				}
			}
		}
	}
}
