package assay_test

import (
	"reflect"
	"testing"

	"github.com/assay-eval/assay"
)

// TestSpendAddsEveryField checks that no field of a spend is left out of a sum, and that a bill of a
// user's responses has what the user's fields have.
func TestSpendAddsEveryField(t *testing.T) {
	t.Parallel()
	var one assay.Spend
	for i, f := range reflect.VisibleFields(reflect.TypeFor[assay.Spend]()) {
		switch v := reflect.ValueOf(&one).Elem().FieldByIndex(f.Index); {
		case v.CanInt():
			v.SetInt(int64(i + 1))
		case v.CanFloat():
			v.SetFloat(float64(i + 1))
		}
	}
	sum := one.Add(one).Add(assay.Spend{})
	for _, f := range reflect.VisibleFields(reflect.TypeFor[assay.Spend]()) {
		got, want := reflect.ValueOf(sum).FieldByIndex(f.Index), reflect.ValueOf(one).FieldByIndex(f.Index)
		switch {
		case got.CanInt() && got.Int() != 2*want.Int(), got.CanFloat() && got.Float() != 2*want.Float():
			t.Errorf("%s of the sum is %v, want twice %v", f.Name, got, want)
		}
	}
	var a assay.Attempt
	for range 2 {
		a.AddUser(&assay.Response{Usage: one.Usage(), Cost: one.CostUSD, Waits: assay.Waits{Requests: 3}})
	}
	if got := a.OfUser().Bill(); got != sum.Bill() || a.UserRequests != 6 || a.Whole() != a.OfUser() {
		t.Errorf("the user's bill is %+v of %d requests, want %+v of 6", got, a.UserRequests, sum.Bill())
	}
}

func TestSpendTellsWhatIsKnownOfTheCost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		usd                   float64
		unpriced              int
		atLeast, priced, paid bool
		text                  string
	}{
		{0, 0, false, true, false, "$0.00"},
		{1.2, 0, false, true, true, "$1.20"},
		{1.2, 9, true, true, true, "at least $1.20"},
		{.001, 9, true, true, true, "at least $0.0010"},
		{0, 9, true, false, true, "unknown"},
	} {
		s := assay.NewSpend(assay.Usage{UnpricedTokens: tc.unpriced}, tc.usd)
		text := assay.DollarsText(s.CostUSD, 2, s.AtLeast())
		if s.AtLeast() != tc.atLeast || s.Priced() != tc.priced || s.Paid() != tc.paid || text != tc.text {
			t.Errorf("%+v: %v, %v, %v, %q; want %+v", s, s.AtLeast(), s.Priced(), s.Paid(), text, tc)
		}
	}
}
