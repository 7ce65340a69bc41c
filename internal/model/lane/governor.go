package lane

import (
	"math"
	"time"
)

// governor learns one limit from refusals. It cuts the limit to the amount that
// the endpoint demonstrably allowed, and tries a little more after a rest. The
// steps grow while that works, and the rests grow while it does not. So a limit
// that is too low recovers, and one that is right is seldom exceeded. The zero
// value has no limit.
type governor struct {
	limit int // 0 if unknown
	// held is the amount that the endpoint is known to have allowed.
	held int
	// floor is the lower bound of the latest cut.
	floor int
	// declared is true if the endpoint stated the limit, so it need not be probed.
	declared bool
	// recalled is true if an earlier run learned the limit and it was not cut since.
	recalled bool
	// starting is true until the first refusal. Meanwhile the limit doubles with
	// each round of successes.
	starting bool
	changed  time.Time
	// bound is true if a request has had to wait for the limit since the change.
	bound bool
	// good counts successful requests since the change.
	good   int
	raised int           // number of raises since the latest cut
	rest   time.Duration // minimum time from a change to the next raise
}

const (
	// firstStep is the share of a limit that the first raise adds. Each further
	// raise adds twice as much.
	firstStep = 0.02
	// The first rest is as long as a window, so that a whole window shows whether
	// the new limit holds.
	firstRest   = windowSpan
	longestRest = 16 * time.Minute
	// A rate is cut to this share of the amount allowed in the last minute,
	// because our minutes and the endpoint's do not begin together.
	caution = 0.97
	// minRate is the lower bound of the first cut of a rate.
	minRate = 10
	// recut is the share that remains of a limit that was itself refused.
	recut = 0.9
)

// known returns a governor that starts from a limit learned earlier.
func known(limit int, now time.Time) governor {
	return governor{limit: limit, recalled: true, changed: now, rest: firstRest}
}

// declare adopts a limit stated by the endpoint.
func (g *governor) declare(now time.Time, limit int) {
	if limit <= 0 || g.declared && g.limit == limit {
		return
	}
	*g = governor{limit: limit, declared: true, changed: now}
}

// cut lowers the limit once for a burst of refusals. allowed is the amount that
// the endpoint had let through before it refused more. It may be small because
// others use the same key, so the limit is never cut below floor.
func (g *governor) cut(now time.Time, allowed, floor int) {
	limit := allowed
	if g.limit > 0 && !g.starting && allowed >= g.limit {
		limit = int(recut * float64(g.limit))
	}
	rest := firstRest
	if g.rest > 0 && g.raised == 1 { // the first raise was already too much
		rest = min(2*g.rest, longestRest)
	}
	*g = governor{
		limit: max(floor, limit), held: max(1, allowed), floor: floor,
		changed: now, rest: rest,
	}
}

// refine lowers the limit further within a burst, as more of its requests turn
// out to be refused.
func (g *governor) refine(allowed int) {
	if g.limit > 0 && !g.declared {
		g.limit = max(1, g.floor, min(g.limit, allowed))
		g.held = min(g.held, max(1, allowed))
	}
}

// succeeded counts a success and raises the limit if it is time, up to ceiling
// if that is positive. It does not raise a limit that no request had to wait
// for, because nothing would test the new limit.
func (g *governor) succeeded(now time.Time, ceiling int) {
	if g.limit == 0 || g.declared || ceiling > 0 && g.limit >= ceiling {
		return
	}
	g.good++
	held := g.limit
	switch {
	case !g.bound:
		return
	case g.starting && g.good >= g.limit:
		g.limit *= 2
	case !g.starting && now.Sub(g.changed) >= g.rest:
		step := firstStep * float64(int(1)<<min(g.raised, 6))
		g.limit += max(1, int(math.Round(min(1, step)*float64(g.limit))))
		if g.raised++; g.raised > 1 { // the previous raise held
			g.rest = firstRest
		}
	default:
		return
	}
	if ceiling > 0 {
		g.limit = min(g.limit, ceiling)
	}
	g.held, g.changed, g.bound, g.good = held, now, false, 0
}
