package main

import "testing"

func TestGrowthOfHeap(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		1 << 20: thrifty, lean: 300, roomy / 4: 300, roomy / 3: 200, roomy / 2: 100, roomy: 100,
		vast: 100, 4 << 30: thrifty,
	} {
		if got := growth(live); got != want {
			t.Errorf("growth of %d MB: %d %%, want %d %%", live>>20, got, want)
		}
	}
}
