package stat_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// oneUrn draws a task that is equally hard for both sides, so any two of its
// trials correlate by rho. It uses Pólya's urn, with the trials of A before
// those of B.
func oneUrn(r *rand.Rand, na, nb int, p, rho float64) stat.Pair {
	a, s := betaBinomial(r, na, p, rho), math.Inf(1)
	if rho > 0 {
		s = 1/rho - 1
		p = (p*s + float64(a)) / (s + float64(na))
	}
	return stat.Pair{A: a, NA: na, B: betaBinomial(r, nb, p, 1/(s+float64(na)+1)), NB: nb}
}

// luck draws the repeats of a task in the given number of cells. Each cell uses
// the luck of the repeat with the probability common.
func luck(r *rand.Rand, cells, repeats int, p, common float64) (full int) {
	for range repeats {
		shared := r.Float64()
		for range cells {
			own := shared
			if r.Float64() >= common {
				own = r.Float64()
			}
			if own < p {
				full++
			}
		}
	}
	return full
}

// TestPermutationDefinition compares with an enumeration of all signs and of
// all ways to assign NA of a task's trials to A.
func TestPermutationDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pairs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stat.Pair {
			p := stat.Pair{
				NA: rapid.IntRange(1, 4).Draw(t, "na"),
				NB: rapid.IntRange(1, 4).Draw(t, "nb"),
			}
			p.A, p.B = rapid.IntRange(0, p.NA).Draw(t, "a"), rapid.IntRange(0, p.NB).Draw(t, "b")
			return p
		}), 1, 5).Draw(t, "pairs")
		signs, deals, seen, equal := map[int]float64{0: 1}, map[int]float64{0: 1}, 0, true
		for _, p := range pairs {
			d := difference(p, p.A)
			seen += d
			equal = equal && p.NA == p.NB
			signs = plus(signs, []int{d, -d})
			deals = plus(deals, subsets(p))
		}
		want := tail(signs, seen)
		if !equal {
			want = max(want, tail(deals, seen))
		}
		if got := stat.Compare(pairs); math.Abs(got.P-want) > 1e-12 {
			t.Fatalf("%v: %v by %s, want %v", pairs, got.P, got.Method, want)
		}
	})
}

// difference returns the task's difference in twelfths if a of its fulfilled
// trials belong to A.
func difference(p stat.Pair, a int) int { return 12/p.NA*a - 12/p.NB*(p.A+p.B-a) }

// subsets returns the task's differences for every choice of A's trials.
func subsets(p stat.Pair) (all []int) {
	fulfilled := uint(1)<<(p.A+p.B) - 1
	for mask := range uint(1) << (p.NA + p.NB) {
		if bits.OnesCount(mask) == p.NA {
			all = append(all, difference(p, bits.OnesCount(mask&fulfilled)))
		}
	}
	return all
}

// plus returns the distribution of a sum and one more term with equally likely
// values.
func plus(sums map[int]float64, terms []int) map[int]float64 {
	out := make(map[int]float64)
	for sum, p := range sums {
		for _, d := range terms {
			out[sum+d] += p / float64(len(terms))
		}
	}
	return out
}

func tail(sums map[int]float64, seen int) (p float64) {
	for sum, q := range sums {
		if max(sum, -sum) >= max(seen, -seen) {
			p += q
		}
	}
	return p
}

// TestPermutationSampled adds tasks that both sides always fulfil. They carry
// no information, but their numbers of trials make the exact computation too
// expensive. The p-value must stay the same except for the error of 9,999
// draws, at most three times 0.5 points, and must not change if the sides are
// swapped. At rates around 3 % the permutation's p-value is larger; around one
// half either may be.
func TestPermutationSampled(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(12, 2))
	for range 30 {
		var few, all, turned []stat.Pair
		p := []float64{.03, .5}[r.IntN(2)]
		for range 40 {
			few = append(few, oneUrn(r, 1+r.IntN(2), 5, p, .2))
		}
		all = append(all, few...)
		for _, n := range []int{997, 1009, 1013} {
			all = append(all, stat.Pair{A: n, NA: n, B: 2, NB: 2})
		}
		for _, p := range all {
			turned = append(turned, stat.Pair{A: p.B, NA: p.NB, B: p.A, NB: p.NA})
		}
		exact, sampled := stat.Compare(few), stat.Compare(all)
		if exact.Method != "exact sign flip by task and exact permutation within tasks" ||
			sampled.Method != "sampled sign flip by task and sampled permutation within tasks" {
			t.Fatalf("methods %q and %q", exact.Method, sampled.Method)
		}
		near(t, "sampled p", sampled.P, exact.P, .015)
		if back := stat.Compare(turned); back.P != sampled.P {
			t.Errorf("p = %v, exchanged %v", sampled.P, back.P)
		}
	}
}

// TestUnequalLevel checks the claims in the comment of Compare about unequal
// numbers of trials: how many equal sides are called different. With 1,200
// draws the standard error is 0.6 points, 0.8 at the highest, and the bounds
// are the claims plus two standard errors. With 15,000 draws, two cells gave
// 5.2 % if they share half their luck and 7.5 % if they share all.
func TestUnequalLevel(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(19, 37))
	for _, tc := range []struct {
		tasks, na, nb int
		rate          float64
	}{
		{20, 1, 10, .97},
		{60, 1, 10, .97},
		{20, 1, 10, .9},
		{60, 1, 4, .97},
		{200, 1, 10, .97},
		{20, 1, 10, .5},
		{60, 3, 10, .5},
		{60, 3, 2, .9},
		{60, 9, 10, .97},
	} {
		for _, c := range []struct {
			name string
			most float64
			draw func() stat.Pair
		}{
			{"alike", .04 + .012, func() stat.Pair { return oneUrn(r, tc.na, tc.nb, tc.rate, 0) }},
			{"beta", .04 + .012, func() stat.Pair { return oneUrn(r, tc.na, tc.nb, tc.rate, .5) }},
			{
				"half luck", .055 + .013,
				func() stat.Pair { return twoCells(r, tc.na, tc.nb, tc.rate, .5) },
			},
			{
				"whole luck", .08 + .016,
				func() stat.Pair { return twoCells(r, tc.na, tc.nb, tc.rate, 1) },
			},
		} {
			got := power(1200, tc.tasks, func(pairs []stat.Pair) {
				for i := range pairs {
					pairs[i] = c.draw()
				}
			})
			t.Logf("%+v, %s: %.4f", tc, c.name, got)
			if got > c.most {
				t.Errorf("%+v, %s: %v below 0.05", tc, c.name, got)
			}
		}
	}
}

// twoCells returns a task with two cells per side that is equally hard for
// both.
func twoCells(r *rand.Rand, na, nb int, p, common float64) stat.Pair {
	return stat.Pair{
		A: luck(r, 2, na, p, common), NA: 2 * na,
		B: luck(r, 2, nb, p, common), NB: 2 * nb,
	}
}

// TestUnequalPower checks that using two tests does not hide a difference that
// one of them shows.
func TestUnequalPower(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(19, 38))
	for _, rates := range [][2]float64{{.5, .8}, {.8, .5}} {
		got := power(500, 60, func(pairs []stat.Pair) {
			for i := range pairs {
				pairs[i] = stat.Pair{
					A: betaBinomial(r, 1, rates[0], 0), NA: 1,
					B: betaBinomial(r, 10, rates[1], 0), NB: 10,
				}
			}
		})
		t.Logf("%v: power %.3f", rates, got)
		if got < .95 {
			t.Errorf("%v: power %.3f", rates, got)
		}
	}
}

// TestUnequalDetectable checks the claims in the comment of Compare about
// Detectable with unequal numbers of trials. With 400 draws the standard error
// is 2 points around one half, and 2.3 at the lower bound around 80 %.
func TestUnequalDetectable(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(19, 39))
	for _, n := range [][2]int{{3, 10}, {10, 9}, {1, 10}, {10, 1}} {
		for _, rate := range []float64{.5, .8} {
			for _, within := range []float64{0, .5} {
				draw := func(pairs []stat.Pair, d float64) {
					a, b := apart(rate, d)
					for i := range pairs {
						pairs[i] = stat.Pair{
							A: betaBinomial(r, n[0], a, within), NA: n[0],
							B: betaBinomial(r, n[1], b, within), NB: n[1],
						}
					}
				}
				got := power(400, 25, func(pairs []stat.Pair) {
					draw(pairs, .1)
					draw(pairs, stat.Compare(pairs).Detectable)
				})
				t.Logf("%v around %v, within %v: power %.3f", n, rate, within, got)
				least, most := .78, .92
				if rate == .8 {
					least, most = .69, .94
				}
				if got < least-.045 || got > most+.03 {
					t.Errorf("%v around %v, within %v: power %.3f", n, rate, within, got)
				}
			}
		}
	}
}
