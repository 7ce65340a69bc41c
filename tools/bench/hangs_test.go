package main

import (
	"testing"
	"time"
)

// TestLeastTime checks the least time with the requests that hang chosen by hand.
func TestLeastTime(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	if got := minTime(1000, 50, 250*ms, 2000*ms, newHangs(0, 1)); got != 5000*ms {
		t.Errorf("without hangs: %v", got)
	}
	// Each request that hangs costs 40 ms, and the last slot to become free is at most a request
	// later than the mean.
	h := newHangs(0.01, 1)
	sent, hung := 0, 0
	for sent-hung < 1000 {
		sent++
		if h.next() {
			hung++
		}
	}
	got := minTime(1000, 50, 250*ms, 2000*ms, newHangs(0.01, 1))
	least := 5000*ms + time.Duration(hung)*40*ms
	if hung == 0 || got < least-2000*ms*time.Duration(hung)/50 || got > least+250*ms {
		t.Errorf("with %d hangs: %v, want about %v", hung, got, least)
	}
}
