package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/assay-eval/assay/internal/result/stat"
)

// The bounds of a rate come from the binomial distribution, and hold for tasks of any rates.
func TestRateOfFixed(t *testing.T) {
	t.Parallel()
	tasks := func(full ...int) (all []stat.Task) {
		for _, k := range full {
			all = append(all, stat.Task{Cells: []stat.Group{{Full: k, N: 4}}})
		}
		return all
	}
	b := stat.RateOfFixed(tasks(4, 4, 4, 4, 4, 4))
	if want := math.Pow(.05, 1./24); math.Abs(b.Lower-want) > 1e-9 || b.Upper != 1 {
		t.Errorf("24 of 24: %+v, want %.4f to 1", b, want)
	}
	r := rand.New(rand.NewPCG(3, 3))
	rates := []float64{1, 1, .95, .9, .7, .85} // .9 on average
	var below, above int
	const draws = 4000
	for range draws {
		full := make([]int, len(rates))
		for i, rate := range rates {
			for range 4 {
				if r.Float64() < rate {
					full[i]++
				}
			}
		}
		if b := stat.RateOfFixed(tasks(full...)); b.Lower > .9 {
			below++
		} else if b.Upper < .9 {
			above++
		}
	}
	if below > draws*5/100 || above > draws/100 {
		t.Errorf("of %d lower bounds %d are too high, and %d upper ones too low", draws, below, above)
	}
}
