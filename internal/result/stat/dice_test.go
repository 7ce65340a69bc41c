package stat

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestDiceRollByCumulatedChances checks that roll returns the first index whose
// cumulated probability exceeds the number that the bits represent.
func TestDiceRollByCumulatedChances(t *testing.T) {
	t.Parallel()
	var d dice
	rapid.Check(t, func(t *rapid.T) {
		chances := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 600).Draw(t, "weights")
		sum := 1e-9
		chances[0] += sum
		for _, v := range chances {
			sum += v
		}
		for i := range chances {
			chances[i] /= sum
		}
		d.load(slices.Clone(chances))
		for range 20 {
			bits := rapid.Uint64().Draw(t, "bits")
			u := float64(bits>>11) / (1 << 53)
			want, below := 0, chances[0]
			for want < len(chances)-1 && below <= u {
				want++
				below += chances[want]
			}
			if got := d.roll(bits); got != want {
				t.Fatalf("roll at %v = %d, want %d", u, got, want)
			}
		}
	})
}
