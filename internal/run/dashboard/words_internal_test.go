package dashboard

import "testing"

func TestUnknownCostsAreNotZero(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cost    float64
		atLeast bool
		want    string
	}{
		{0, false, "$0.00"}, {1.25, false, "$1.25"}, {0, true, "unknown"}, {1.25, true, "at least $1.25"},
	} {
		if got := dollars(tc.cost, tc.atLeast); got != tc.want {
			t.Errorf("%v is spelled %q, want %q", tc.cost, got, tc.want)
		}
	}
}
