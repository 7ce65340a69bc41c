package sections

import "testing"

// TestSmallBoundsAreNoPoint reads bounds of a difference.
func TestSmallBoundsAreNoPoint(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]string{
		.4127: "41 points", .419: "42 points", .5: "50 points", 1: "100 points", .29: "29 points", .012: "1 point",
		.01: "1 point", .0099: "0.9 points", .004: "0.4 points", .00039: "0.03 points",
	} {
		if got := boundText(share); got != want {
			t.Errorf("%g: %s, want %s", share, got, want)
		}
	}
}
