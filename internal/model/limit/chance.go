package limit

import (
	"math"
	"slices"
)

// chance is how many requests of an open lane were refused although others were not.
type chance struct{ accepted, refused int }

const (
	// A share of refusals is known after this many.
	knownChance = 3
	// maxChance is the largest share that is taken for chance.
	maxChance = 0.1
	// chanceSpan is how many of the latest requests decide whether a refusal is one of too many.
	chanceSpan = 20
)

// share returns the share of requests that an open lane may lose by chance, or 0 if it is unknown.
func (c chance) share() float64 {
	if c.refused < knownChance {
		return 0
	}
	return min(maxChance, float64(c.refused)/float64(c.refused+c.accepted))
}

// lucky reports whether chance explains that request n was refused, so that there is no doubt about
// the lane: it is open, and not many more of the latest requests were refused than chance explains.
func (l *Limiter) lucky(n uint64) bool {
	share := l.chance.share()
	if share == 0 || len(l.obeyed) > 0 || l.pace.rate > 0 {
		return false
	}
	mean := share * chanceSpan
	return float64(l.log.refusedUntil(n, chanceSpan)) <= 1+mean+4*math.Sqrt(mean)
}

// refusedUntil returns how many of the latest count requests up to number n were refused.
func (g *log) refusedUntil(n uint64, count int) (refusals int) {
	for _, r := range slices.Backward(g.requests[:n+1-g.first]) {
		if count--; count < 0 {
			break
		}
		if r.fate == refused {
			refusals++
		}
	}
	return refusals
}

// mixed returns how many requests of a block that only was doubted were refused. It is 0 if more
// than half of the requests from the first to the last one were, as with a limit.
func (l *Limiter) mixed(w block) (refusals int) {
	n := int(w.last - w.first + 1)
	if refusals = l.log.refusedUntil(w.last, n); w.gate != Doubting || n > 1 && 2*refusals > n {
		return 0
	}
	return refusals
}
