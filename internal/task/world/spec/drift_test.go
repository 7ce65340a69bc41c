package spec_test

import (
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/task/world/spec"
)

// TestShiftedIsExact checks against fractions that a moved decimal point multiplies by a power of ten,
// that the result is a JSON number, and that moving it back gives the same value.
func TestShiftedIsExact(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	digits := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(byte('0' + r.IntN(10)))
		}
		return b.String()
	}
	for range 20_000 {
		number := digits(1 + r.IntN(20))
		number = strings.TrimLeft(number[:len(number)-1], "0") + number[len(number)-1:]
		if r.IntN(2) == 0 {
			number += "." + digits(1+r.IntN(20))
		}
		if r.IntN(4) == 0 {
			number += []string{"e", "E", "e-", "e+"}[r.IntN(4)] + strconv.Itoa(r.IntN(30))
		}
		if r.IntN(2) == 0 {
			number = "-" + number
		}
		places := r.IntN(9) - 4
		shifted := spec.Shifted(number, places)
		want, _ := new(big.Rat).SetString(number)
		factor, _ := new(big.Rat).SetString("1e" + strconv.Itoa(places))
		got, ok := new(big.Rat).SetString(shifted)
		back, _ := new(big.Rat).SetString(spec.Shifted(shifted, -places))
		if !ok || !json.Valid([]byte(shifted)) || got.Cmp(want.Mul(want, factor)) != 0 || back.Cmp(got.Quo(got, factor)) != 0 {
			t.Fatalf("%s by %d places: %s", number, places, shifted)
		}
	}
	if got := spec.Shifted("1e99999999999", 2); got != "1e99999999999" {
		t.Errorf("a number that no program reads became %s", got)
	}
}
