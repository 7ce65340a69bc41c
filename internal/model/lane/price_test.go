package lane_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

func TestPriceOfAllKindsOfTokens(t *testing.T) {
	t.Parallel()
	u := assay.Usage{
		InputTokens: 10_000, OutputTokens: 1000,
		CachedTokens: 7000, CacheWriteTokens: 2000, ReasoningTokens: 600,
	}
	full := lane.Price{Input: 3, Output: 15, Cached: new(0.3), CacheWrite: new(3.75)}
	for _, tc := range []struct {
		price lane.Price
		usage assay.Usage
		want  float64
	}{
		{full, u, 0.0276}, // 1000 at 3, 7000 at 0.3, 2000 at 3.75 and 1000 at 15
		{lane.Price{Input: 3, Output: 15}, u, 0.045},
		{lane.Price{Input: 3, Output: 15, Cached: new(0.)}, u, 0.024},
		{full, assay.Usage{InputTokens: 10, CachedTokens: 20}, 0.000003},
		{full, assay.Usage{InputTokens: 10, CachedTokens: 4, CacheWriteTokens: 8}, 0.0000237},
		{full, assay.Usage{}, 0},
	} {
		if got := tc.price.Of(tc.usage); got != tc.want {
			t.Errorf("%+v of %+v costs %v, want %v", tc.price, tc.usage, got, tc.want)
		}
	}
}

// TestSimulationPricesCaches checks that a forecast knows the price of cached input.
func TestSimulationPricesCaches(t *testing.T) {
	t.Parallel()
	lanes := []lane.Config{{Name: "l", Price: lane.Price{
		Input: 1, Output: 10, Cached: new(0.1), CacheWrite: new(2.),
	}}}
	got := lane.Simulate(lanes, lane.Work{
		Conversations: 100, Turns: 1, Prompt: 1000, Reply: 10, Cached: 0.75, CacheWrite: 0.125,
	})
	const want = 0.055 // 125 at 1, 750 at 0.1, 125 at 2 and 10 at 10, a hundred times
	if d := got.Cost - want; d > 1e-9 || d < -1e-9 {
		t.Errorf("cost %v, want %v", got.Cost, want)
	}
}
