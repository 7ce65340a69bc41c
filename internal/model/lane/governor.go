package lane

import (
	"math"
	"time"
)

// A governor learns one limit from refusals: it cuts to what the endpoint
// demonstrably allowed, and tries a little more after a rest, in growing steps
// while that works and after growing rests while it does not. So a limit that
// was learned too low recovers, and one that is right is seldom touched. The
// zero value knows no limit.
type governor struct {
	limit int // 0: none known
	// held is what the endpoint is known to have allowed, if not more.
	held int
	// floor is what the latest cut did not go below.
	floor int
	// said: the endpoint stated the limit itself, so there is nothing to try.
	said bool
	// recalled: it was learned by an earlier run, and not cut since.
	recalled bool
	// starting: the limit was never refused and doubles with each round.
	starting bool
	changed  time.Time
	// bound says that since the change a request had to wait for the limit.
	bound bool
	// good counts requests that succeeded since the change.
	good   int
	raised int           // how often, since the latest cut
	rest   time.Duration // from a change to the next raise
}

const (
	// firstStep is the share of a limit that the first raise adds; each
	// further one adds twice as much.
	firstStep = 0.02
	// A rest is as long as a window at first, so that its count can show
	// whether the new limit holds.
	firstRest   = windowSpan
	longestRest = 16 * time.Minute
	// caution is the part of what was allowed in the last minute that a rate
	// is cut to: our minute and the endpoint's do not begin together.
	caution = 0.97
	// leastRate is what a first cut of a rate does not go below.
	leastRate = 10
	// again is the part that is left of a limit that was itself refused.
	again = 0.9
)

// known returns a governor that starts from a limit learned earlier.
func known(limit int, now time.Time) governor {
	return governor{limit: limit, recalled: true, changed: now, rest: firstRest}
}

// declare takes over a limit that the endpoint states.
func (g *governor) declare(now time.Time, limit int) {
	if limit <= 0 || g.said && g.limit == limit {
		return
	}
	*g = governor{limit: limit, said: true, changed: now}
}

// cut is the one answer to a burst of refusals. Allowed is how much the
// endpoint had let through when it refused more; that may be little because
// others use the same key, so the cut goes no lower than floor.
func (g *governor) cut(now time.Time, allowed, floor int) {
	limit := allowed
	if g.limit > 0 && !g.starting && allowed >= g.limit {
		limit = int(again * float64(g.limit))
	}
	rest := firstRest
	if g.rest > 0 && g.raised == 1 { // the first raise was too much, again
		rest = min(2*g.rest, longestRest)
	}
	*g = governor{limit: max(floor, limit), held: max(1, allowed), floor: floor, changed: now, rest: rest}
}

// refine lowers the limit within a burst, as more of it turns out to have been
// refused.
func (g *governor) refine(allowed int) {
	if g.limit > 0 && !g.said {
		g.limit = max(1, g.floor, min(g.limit, allowed))
		g.held = min(g.held, max(1, allowed))
	}
}

// succeeded counts a success and raises the limit when it is time. A limit for
// which nothing waits is not raised: it would mean nothing.
func (g *governor) succeeded(now time.Time, most int) {
	if g.limit == 0 || g.said || most > 0 && g.limit >= most {
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
		if g.raised++; g.raised > 1 { // the raise before this one was right
			g.rest = firstRest
		}
	default:
		return
	}
	if most > 0 {
		g.limit = min(g.limit, most)
	}
	g.held, g.changed, g.bound, g.good = held, now, false, 0
}
