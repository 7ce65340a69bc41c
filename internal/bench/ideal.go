package bench

import (
	"container/heap"
	"slices"
	"time"
)

// Ideal is the wall time of a client that costs nothing and does trials in
// their order, each in a slot for as long as it took its endpoint: whenever a
// slot is free it takes the next one. Nobody can know beforehand which of them
// will hang, so nobody could order them better.
func Ideal(trials []time.Duration, slots int) time.Duration {
	free := make(slotTimes, max(slots, 1))
	var last time.Duration
	for _, took := range trials {
		free[0] += took
		last = max(last, free[0])
		heap.Fix(&free, 0)
	}
	return last
}

// slotTimes are when slots are free, the earliest first.
type slotTimes []time.Duration

func (s slotTimes) Len() int           { return len(s) }
func (s slotTimes) Less(i, j int) bool { return s[i] < s[j] }
func (s slotTimes) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slotTimes) Push(any)          { panic("bench: slots are not added") }
func (s *slotTimes) Pop() any          { panic("bench: slots are not taken away") }

// A Lane has limits that hold in every span of a minute; 0 is none.
type Lane struct {
	Deployment string
	RPM, TPM   int
}

// Traffic is what a lane let through.
type Traffic struct{ Requests, Tokens int64 }

// Used is the share of what the lanes' limits permit in a span of time that
// was made use of, in [0,1] for lanes that kept them.
//
// A limit holds in every span of a minute, so that in any span it permits its
// amount once for each minute that has begun, and no client can do more. A
// lane has used what it has of the limit that bound it most. Lanes count by
// the requests of mean size that they permit.
func Used(lanes []Lane, traffic map[string]Traffic, span time.Duration) float64 {
	windows := float64((span + time.Minute - 1) / time.Minute)
	var all Traffic
	for _, t := range traffic {
		all.Requests += t.Requests
		all.Tokens += t.Tokens
	}
	tokens := Quotient(float64(all.Tokens), float64(all.Requests))
	used, permitted := 0.0, 0.0
	for _, l := range lanes {
		t := traffic[l.Deployment]
		share := max(
			Quotient(float64(t.Requests), windows*float64(l.RPM)),
			Quotient(float64(t.Tokens), windows*float64(l.TPM)),
		)
		permits := l.permits(tokens)
		used += share * permits
		permitted += permits
	}
	return Quotient(used, permitted)
}

// permits is how many requests of so many tokens fit in a minute; 0 for a lane
// without limits.
func (l Lane) permits(tokens float64) float64 {
	byTokens := Quotient(float64(l.TPM), tokens)
	switch {
	case l.RPM == 0:
		return byTokens
	case byTokens == 0:
		return float64(l.RPM)
	}
	return min(float64(l.RPM), byTokens)
}

// Quotient is a / b, and 0 where there is nothing to divide by.
func Quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Median returns the middle one of an odd number of values.
func Median(values ...float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
