package main

import "testing"

func TestGrowthOfHeap(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{
		1 << 20: 800, roomyHeap / 9: 800, roomyHeap / 5: 400, roomyHeap / 2: 100,
		roomyHeap: 100, 4 << 30: 100,
	} {
		if got := growth(live); got != want {
			t.Errorf("growth of %d MB: %d %%, want %d %%", live>>20, got, want)
		}
	}
}
