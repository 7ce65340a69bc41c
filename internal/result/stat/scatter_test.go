package stat

import (
	"testing"

	"pgregory.net/rapid"
)

// TestScatterLaws checks that scatter is a variance of differences in [-1,1]
// with the mean d for any design, including those in which one side always or
// never succeeds.
func TestScatterLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := 1 / float64(rapid.IntRange(1, 9).Draw(t, "repeats"))
		x := design{
			tasks: 20, clusters: 20, df: 19, bias: 1, step: step,
			rate:    rapid.Float64Range(0, 1).Draw(t, "rate"),
			own:     rapid.Float64Range(step, 1).Draw(t, "own"),
			between: rapid.Float64Range(-1, 1).Draw(t, "between"),
		}
		d := rapid.Float64Range(0, 1).Draw(t, "d")
		if v := x.scatter(d); !(v >= max(0, d*step-d*d)) || v > 1-d*d+1e-9 {
			t.Fatalf("%v", v)
		}
		if d := x.detectable(); !(d > 0) || d > 1 {
			t.Fatalf("detectable %v", d)
		}
	})
}
