package dashboard

import "testing"

func TestUnknownCostsAreNotZero(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cost     float64
		unpriced int
		want     string
	}{
		{0, 0, "$0.00"}, {1.25, 0, "$1.25"}, {0, 9, "unknown"}, {1.25, 9, "at least $1.25"},
	} {
		if got := dollars(tc.cost, tc.unpriced); got != tc.want {
			t.Errorf("%v is spelled %q, want %q", tc.cost, got, tc.want)
		}
	}
}
