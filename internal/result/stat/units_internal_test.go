package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestUnitsAreDrawnWithoutReplacement compares the distribution of the successes of a few units with all ways to
// draw them, with the hypergeometric one if a unit is a trial, and the normal one that stands for many units with
// its moments.
func TestUnitsAreDrawnWithoutReplacement(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		var units []int
		scores := make([]int, 2+r.IntN(4))
		for range 2 + r.IntN(9) {
			score := r.IntN(len(scores))
			units = append(units, score)
			scores[score]++
		}
		n := 1 + r.IntN(len(units)-1)
		want := make([]float64, n*(len(scores)-1)+1)
		ways := 0.
		for chosen := range 1 << len(units) {
			count, sum := 0, 0
			for i, score := range units {
				if chosen>>i&1 > 0 {
					count, sum = count+1, sum+score
				}
			}
			if count == n {
				want[sum]++
				ways++
			}
		}
		got := lotOfUnits(scores, n, 0)
		for sum := range want {
			if math.Abs(want[sum]/ways-got.chances[sum]) > 1e-9 {
				t.Fatalf("%d of %v: chances %v, want %v of %v", n, scores, got.chances, want, ways)
			}
		}
	}
	a, b := lotOfUnits([]int{30, 12}, 8, 3), lotOf(Pair{A: 9, NA: 34, B: 3, NB: 8}, 1)
	if atMost([]lot{a}) <= 0 || math.Abs(atMost([]lot{a})-atMost([]lot{b})) > 1e-9 {
		t.Errorf("%g, want the hypergeometric %g", atMost([]lot{a}), atMost([]lot{b}))
	}
	few := lotOfUnits([]int{40, 20, 10, 30}, 30, 0)
	many := lotOfUnits([]int{400, 200, 100, 300}, 300, 0)
	if len(many.chances) <= len(few.chances) {
		t.Fatal("they are no more")
	}
	m1, v1 := few.moments()
	m2, v2 := many.moments()
	if math.Abs(10*m1-m2) > .1 || math.Abs(10*v1-v2) > .02*v2 {
		t.Errorf("means %g and %g, variances %g and %g", m1, m2, v1, v2)
	}
}
