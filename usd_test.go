package assay_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

// TestSumsOfCostsAreExact adds costs in several orders and compares the sums with sums of whole
// numbers.
func TestSumsOfCostsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		costs := rapid.SliceOfN(rapid.Int64Range(0, 1e12), 1, 1000).Draw(t, "billionths")
		var exact int64
		for _, c := range costs {
			exact += c
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		for range 3 {
			sum := 0.0
			for _, c := range costs {
				sum = assay.RoundUSD(sum + float64(c)/1e9)
			}
			if want := float64(exact) / 1e9; sum != want {
				t.Fatalf("sum = %v, want %v", sum, want)
			}
			rng.Shuffle(len(costs), func(i, j int) { costs[i], costs[j] = costs[j], costs[i] })
		}
	})
}

func TestManyCostsDoNotDrift(t *testing.T) {
	t.Parallel()
	sum := 0.0
	for range 3_000_000 {
		sum = assay.RoundUSD(sum + 0.0000001)
	}
	if sum != 0.3 {
		t.Errorf("three million times $0.0000001 is $%v", sum)
	}
}

func TestCostTextNamesWhatIsUnknown(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		usd      float64
		unpriced []string
		want     string
	}{
		{1.2, nil, "$1.20"},
		{0, nil, "$0.00"},
		{0.0041, nil, "$0.0041"},
		{0, []string{"m"}, "cost unknown"},
		{1.2, []string{"m", "n"}, "at least $1.20; not all costs of m and n are known"},
	} {
		if got := assay.CostText(tc.usd, 2, tc.unpriced...); got != tc.want {
			t.Errorf("CostText(%v, %v) = %q, want %q", tc.usd, tc.unpriced, got, tc.want)
		}
	}
}
