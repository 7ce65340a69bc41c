package bench

import (
	"slices"
	"time"
)

// Work is what requests had to do, whoever sent them.
type Work struct {
	// Requests were answered, each after Latency.
	Requests int
	Latency  time.Duration
	// Hangs were never answered: each kept its slot for Patience, which is the
	// client's limit for a request.
	Hangs    int
	Patience time.Duration
	// Slots is how many requests may be in flight.
	Slots int
}

// Ideal is the wall time of a client that costs nothing: every slot is full
// until no work is left.
//
// Hangs add their patience once more. Among the last requests, those that fill
// the slots a last time, there is one as soon as hangs are as frequent as
// slots; nothing is left to do beside it, and no client can know beforehand.
func (w Work) Ideal() time.Duration {
	slots := time.Duration(max(w.Slots, 1))
	busy := time.Duration(w.Requests)*w.Latency + time.Duration(w.Hangs)*w.Patience
	ideal := busy / slots
	if w.Hangs > 0 {
		ideal += w.Patience
	}
	if w.Requests > 0 {
		ideal = max(ideal, w.Latency)
	}
	return ideal
}

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
