package main

import (
	"container/heap"
	"slices"
	"time"
)

// stay is how long the endpoint took for a trial: in a slot, and while the trial waited without one
// because the endpoint had demanded it.
type stay struct{ slot, wait time.Duration }

// idealTime returns the wall time of a client without any overhead. It starts
// trials in the given order, each as soon as a slot is free, and each takes as
// long as its endpoint took. No client can order them better, because it cannot
// know beforehand which of them will hang.
func idealTime(trials []stay, slots int) time.Duration {
	free := make(slotTimes, max(slots, 1))
	var last time.Duration
	for _, t := range trials {
		free[0] += t.slot
		last = max(last, free[0]+t.wait)
		heap.Fix(&free, 0)
	}
	return last
}

// slotTimes is a heap of the times at which slots become free, earliest first.
type slotTimes []time.Duration

func (s slotTimes) Len() int           { return len(s) }
func (s slotTimes) Less(i, j int) bool { return s[i] < s[j] }
func (s slotTimes) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slotTimes) Push(any)          { panic("bench: the number of slots is fixed") }
func (s *slotTimes) Pop() any          { panic("bench: the number of slots is fixed") }

// laneLimits are the limits of a deployment, which hold in every span of a
// minute. 0 means no limit.
type laneLimits struct {
	deployment string
	rpm, tpm   int
}

// traffic counts the requests and tokens that a lane let through.
type traffic struct{ requests, tokens int64 }

// usedShare returns the share of the permitted traffic that the lanes used in a
// span of time. It is in [0,1] if the lanes kept their limits.
//
// A limit holds in every span of a minute, so a longer span permits the amount
// once for each minute that has begun. The limit that a lane used most counts
// for that lane. Lanes are weighted by the number of requests of mean size that
// they permit.
func usedShare(lanes []laneLimits, byLane map[string]traffic, span time.Duration) float64 {
	windows := float64((span + time.Minute - 1) / time.Minute)
	var total traffic
	for _, t := range byLane {
		total.requests += t.requests
		total.tokens += t.tokens
	}
	meanTokens := quotient(float64(total.tokens), float64(total.requests))

	used, permitted := 0.0, 0.0
	for _, l := range lanes {
		t := byLane[l.deployment]
		usedByLane := max(
			quotient(float64(t.requests), windows*float64(l.rpm)),
			quotient(float64(t.tokens), windows*float64(l.tpm)),
		)
		weight := l.requestsPerMinute(meanTokens)
		used += usedByLane * weight
		permitted += weight
	}
	return quotient(used, permitted)
}

// requestsPerMinute returns how many requests of the given size a lane permits
// in a minute, or 0 if it has no limits.
func (l laneLimits) requestsPerMinute(tokens float64) float64 {
	byTokens := quotient(float64(l.tpm), tokens)
	switch {
	case l.rpm == 0:
		return byTokens
	case byTokens == 0:
		return float64(l.rpm)
	}
	return min(float64(l.rpm), byTokens)
}

// quotient returns a / b, or 0 if b is 0.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// median returns the middle one of an odd number of values.
func median(values ...float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
