package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

func TestBootstrapLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pairs, turned []stat.Pair
		for range rapid.IntRange(1, 15).Draw(t, "tasks") {
			na, nb := rapid.IntRange(1, 3).Draw(t, "na"), rapid.IntRange(1, 3).Draw(t, "nb")
			p := stat.Pair{
				A: rapid.IntRange(0, na).Draw(t, "a"), NA: na,
				B: rapid.IntRange(0, nb).Draw(t, "b"), NB: nb,
			}
			pairs, turned = append(pairs, p), append(turned,
				stat.Pair{A: p.B, NA: p.NB, B: p.A, NB: p.NA})
		}
		i, back := stat.Bootstrap(pairs), stat.Bootstrap(turned)
		if i.Low < -1 || i.High > 1 || i.Low > i.High || i != stat.Bootstrap(pairs) {
			t.Fatalf("interval %v, and again %v", i, stat.Bootstrap(pairs))
		}
		if math.Abs(i.Low+back.High) > 1e-9 || math.Abs(i.High+back.Low) > 1e-9 {
			t.Fatalf("interval %v, exchanged %v", i, back)
		}
	})
	if i := stat.Bootstrap(nil); i != (stat.Interval{Low: -1, High: 1}) {
		t.Errorf("without tasks: %v", i)
	}
}

// TestBootstrapNormal checks that the interval is that of the normal
// distribution if there are many tasks.
func TestBootstrapNormal(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	pairs := make([]stat.Pair, 400)
	var sum, squares float64
	for i := range pairs {
		pairs[i] = stat.Pair{A: random.IntN(2), NA: 1, B: random.IntN(2), NB: 1}
		d := float64(pairs[i].A - pairs[i].B)
		sum += d
		squares += d * d
	}
	n := float64(len(pairs))
	mean := sum / n
	half := stat.Z95 * math.Sqrt((squares/n-mean*mean)/n)
	i := stat.Bootstrap(pairs)
	if math.Abs(i.Low-(mean-half)) > .006 || math.Abs(i.High-(mean+half)) > .006 {
		t.Errorf("interval %v, want about %.3f to %.3f", i, mean-half, mean+half)
	}
}
