package dashboard

import "testing"

func TestUnknownCostsAreNotZero(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cost float64 // as a row has it
		want string
	}{
		{0, "$0.00"}, {1.25, "$1.25"}, {-1, "unknown"}, {-2.25, "at least $1.25"},
	} {
		if got := (listedRow{row: row{cost: tc.cost}}).Spent(); got != tc.want {
			t.Errorf("%v is spelled %q, want %q", tc.cost, got, tc.want)
		}
	}
}
