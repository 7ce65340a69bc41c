package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A decline draws tasks whose sequences differ in the rate at A and in the share that B loses.
type decline struct {
	tasks, sequences int
	most             int // repeats of a task, from 1 to most
	rate, loss       float64
	spread           float64 // of both among sequences
}

// around draws a rate with a mean. With a spread it is a Beta variate, else the mean.
func around(r *rand.Rand, mean, spread float64) float64 {
	if spread == 0 || mean <= 0 || mean >= 1 {
		return mean
	}
	n := 1/spread - 1
	a, b := gamma(r, mean*n), gamma(r, (1-mean)*n)
	return a / (a + b)
}

// gamma draws by Marsaglia and Tsang's method.
func gamma(r *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(r, shape+1) * math.Pow(r.Float64(), 1/shape)
	}
	d := shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := math.Pow(1+c*x, 3)
		if v > 0 && math.Log(1-r.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

func (d decline) draw(r *rand.Rand) []stat.Matched {
	a, b := make([]float64, d.sequences), make([]float64, d.sequences)
	for s := range a {
		a[s] = around(r, d.rate, d.spread)
		b[s] = a[s] * (1 - around(r, d.loss, d.spread))
	}
	tasks := make([]stat.Matched, d.tasks)
	for i := range tasks {
		s := i % d.sequences
		na, nb := 1+r.IntN(d.most), 1+r.IntN(d.most)
		tasks[i] = stat.Matched{Sequence: s, Cells: []stat.Cell{{
			Pair: stat.Pair{
				A: betaBinomial(r, na, a[s], 0), NA: na, B: betaBinomial(r, nb, b[s], 0), NB: nb,
			},
		}}}
	}
	return tasks
}

// TestLostCovers checks the claims in the comment of Lost. The bounds are wider by three standard
// errors.
func TestLostCovers(t *testing.T) {
	simulates(t, "intervals of losses")
	r := rand.New(rand.NewPCG(31, 6))
	const draws = 150
	for _, shape := range [][2]int{{6, 6}, {20, 20}, {60, 60}, {60, 6}, {60, 15}} {
		mean := 0.
		for _, most := range []int{1, 5} {
			for _, spread := range []float64{0, .3} {
				for _, c := range [][2]float64{{.6, 0}, {.9, 0}, {.9, .23}, {.6, .4}, {1, .67}, {1, 1}} {
					d := decline{shape[0], shape[1], most, c[0], c[1], spread}
					held := 0
					for range draws {
						l := stat.Lost(d.draw(r), shape[1] < shape[0])
						if l.Share == nil || (l.Low == nil || *l.Low <= d.loss+1e-9) && *l.High >= d.loss-1e-9 {
							held++
						}
					}
					share := float64(held) / draws
					mean += share / 24
					if share < .92-.067 { // three standard errors
						t.Errorf("%+v: %.3f of the intervals hold the truth", d, share)
					}
				}
			}
		}
		if t.Logf("%v: %.3f", shape, mean); mean < .955 || shape[0] > 6 && mean > .985 {
			t.Errorf("%v: %.3f of the intervals hold the truth", shape, mean)
		}
	}
}
