package lane

import (
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

const (
	// The first wait after a refusal that announces none is that between two requests,
	// and the next ones double from shortestWait to longestWait.
	shortestWait = time.Minute / 64
	longestWait  = time.Minute
	// longestColdWait is the longest such wait of a lane that never worked.
	longestColdWait = 15 * time.Second
	// A probe that is not refused for a few times as long as refusals take, but probing
	// at most, is taken for accepted, because replies take seconds.
	probing = time.Second
	// An announced wait that is longer than shortWait shows that a rate is limited,
	// too.
	shortWait = 2 * time.Second
	soon      = probing / 20
	// retrial is the rest of a width that was raised by a refusal.
	retrial = 3 * time.Second
)

// burst is a row of refusals with one cause. It lasts until a request that was
// sent after the lane's reaction is accepted.
type burst struct {
	open  bool
	since time.Time
	// patience is how long a probe that is not refused is waited for.
	patience time.Duration
	reaction uint64        // the number of the next request when the lane reacted
	row      int           // waits, which double
	late     time.Duration // how late the last wait was, on average
	// stalled is true if a probe has to be accepted before other requests start.
	stalled, probed bool
	probedAt        time.Time

	narrowed int     // how often the width was blamed
	rate     bool    // whether the rate is to blame
	tried    float64 // the rate of the first refused request
	minute   float64 // requests per second accepted in the minute before
	// wide is the width before the burst, and accepted how much of it was accepted.
	wide     control
	accepted float64
	// held is how many requests in flight at the reaction were not refused.
	held int
}

// refused reacts to a refusal: once for all requests sent before the reaction, and
// again for those sent after it. If more requests were in flight when one was
// accepted, the width is not to blame.
func (l *lane) refused(now time.Time, t ticket, fault *assay.Fault) {
	l.rate.refuse(t.entry, t.calm)
	lastSecond := float64(1 + l.windows[requestsPerSecond].sum.requests)
	tried := min(l.pace(t.started, t.estimate), lastSecond)
	if fault.RetryAfter > 0 { // an announced wait is always kept
		l.pause(now, fault.RetryAfter, string(fault.Kind), fault.Detail)
	}
	l.loseHope(now, fault)
	b := &l.burst
	if !b.open && l.rate.explained(now) {
		return
	}
	if !b.open {
		*b = burst{
			open: true, since: now, tried: tried, minute: l.rate.inMinute(now),
			wide: l.wide, accepted: l.widthAt(now),
			patience: min(probing, max(soon, 3*now.Sub(t.started))),
		}
		l.refusedBurst = true
	}
	if b.held--; t.number >= b.reaction {
		b.held = l.inFlight // requests overtake each other, so its own count may be too low
	}
	narrow := !b.rate && b.narrowed < 2 && l.blamesWidth(t, fault)
	if narrow {
		l.narrow(now, t, fault)
	}
	if t.number < b.reaction {
		return
	}

	b.reaction, b.probed = l.history.next, false
	if narrow {
		b.narrowed++
		b.rate = fault.RetryAfter > shortWait
		// More requests of the burst may be refused as late as this one.
		wait := min(probing, max(soon, 2*now.Sub(t.started)))
		l.pause(now, wait, string(fault.Kind), fault.Detail)
	} else if !b.rate {
		b.rate, l.wide = true, b.wide
	}
	switch {
	case fault.RetryAfter > 0 && b.row == 0:
		b.stalled, b.row = true, 1
	case b.rate:
		b.stalled = true
		l.backOff(now, fault)
	}
}

// backOff waits before the next probe.
func (l *lane) backOff(now time.Time, fault *assay.Fault) {
	wait := min(shortestWait<<min(max(0, l.burst.row-1), 20), longestWait)
	if l.burst.row == 0 {
		wait = min(wait, gap(l.burst.tried))
	}
	if !l.hasWorked() {
		wait = min(wait, longestColdWait)
	}
	l.burst.row++
	l.burst.late = wait / 2
	l.pause(now, wait, string(fault.Kind), fault.Detail)
}

// blamesWidth reports whether a refusal may come from too many requests in flight. It may if they
// are more than were accepted before, unless the rate is at its limit and the width is not tried.
// If a width is tried again that was blamed a moment ago, a rate on trial is to blame.
func (l *lane) blamesWidth(t ticket, fault *assay.Fault) bool {
	switch b := slices.Index(Buckets[:], fault.Bucket); {
	case b == concurrency:
		return true
	case b > concurrency || t.inFlight <= 1:
		return false
	}
	if l.wide.rested.Sub(l.wide.fell) < rest && l.rate.onTrial(t.started) {
		return false
	}
	return t.inFlight > l.held && (!t.paced || l.wide.exceeds(l.wide.at(t.started)))
}

// narrow lowers the width to the number in flight that the endpoint accepted, or
// to the number that it names. A width that was tried falls back to what was proven. If that is
// more than before, it is soon tried again, because the rate may have been to blame.
func (l *lane) narrow(now time.Time, t ticket, fault *assay.Fault) {
	b := &l.burst
	accepted := max(1, b.held)
	if fault.Bucket == assay.Concurrency && fault.Limit > 0 {
		accepted = fault.Limit
	}
	b.accepted = min(b.accepted, float64(accepted))
	l.wide, l.starting = b.wide, false
	level := b.accepted
	if l.wide.exceeds(l.wide.at(t.started)) {
		level = max(level, l.wide.goal, float64(l.held))
	}
	l.wide.keep(now, level)
	if level > b.wide.goal {
		l.wide.rested = now.Add(retrial)
	}
	l.held, l.heldFrom = min(l.held, int(b.accepted)), l.history.next
}

// resume ends a burst after a probe was accepted.
func (l *lane) resume(now time.Time) {
	b := l.burst
	if l.burst = (burst{}); b.rate {
		if l.rate.goal == 0 { // a rate may explain what the width was blamed for
			l.wide.rested = earliest(l.wide.rested, now)
		}
		l.rate.hit(now, b.tried, b.minute, now.Sub(b.since), b.late)
	}
}

// accepted notes that the endpoint accepted a request.
func (l *lane) accepted(now time.Time, t ticket) {
	if t.number >= l.heldFrom && t.inFlight > l.held {
		if l.proof++; l.proof >= 2 {
			l.held, l.proof = t.inFlight, 0
		}
	}
	b := &l.burst
	if b.open && t.number >= b.reaction {
		l.resume(now)
	}
}
