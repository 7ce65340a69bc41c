package lane

import (
	"slices"
	"time"
)

// A Ledger tells how full one lane was, from its pool's first request to its
// last, and what requests waited for.
type Ledger struct {
	Name string
	// Used is slot-time with a request in flight, Available the slot-time that
	// there was: their quotient is the lane's occupancy. A lane that was closed
	// has no slots from then on.
	Used, Available time.Duration
	// Waited is the time in which some request of the model waited and this
	// was the lane that could have started it soonest, by what it waited for.
	Waited map[string]time.Duration
}

// Occupancy is Used / Available, 0 for a lane that was never open.
func (l Ledger) Occupancy() float64 {
	if l.Available <= 0 {
		return 0
	}
	return float64(l.Used) / float64(l.Available)
}

// Ledgers returns the ledgers of all lanes.
func (p *Pool) Ledgers() []Ledger {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []Ledger
	for _, l := range p.lanes {
		waited := make(map[string]time.Duration, len(l.waited))
		for reason, d := range l.waited {
			waited[reason] = d
		}
		all = append(all, Ledger{Name: l.Name, Used: l.used, Available: l.available, Waited: waited})
	}
	return all
}

// bookLocked books the time since the last change of the pool's state. It has
// to precede every change.
func (p *Pool) bookLocked(now time.Time) {
	span := now.Sub(p.booked)
	idle := p.booked.IsZero() || !p.busyLocked()
	p.booked = now
	if idle || span <= 0 {
		return
	}
	for _, l := range p.lanes {
		l.used += time.Duration(l.inFlight) * span
		if l.closed == nil {
			l.available += time.Duration(max(l.Limits.Concurrency, l.inFlight)) * span
		}
	}
	if len(p.waiting) > 0 {
		if l, reason := p.bottleneckLocked(now.Add(-span), p.waiting[0].tokens); l != nil {
			l.waited[reason] += span
		}
	}
}

// busyLocked reports whether the model has anything to do.
func (p *Pool) busyLocked() bool {
	return len(p.waiting) > 0 || slices.ContainsFunc(p.lanes, func(l *lane) bool { return l.inFlight > 0 })
}

// bottleneckLocked returns the open lane that can start a request soonest, and
// what that waits for. A lane that is full counts as later than one that knows
// when it can.
func (p *Pool) bottleneckLocked(now time.Time, tokens int) (best *lane, reason string) {
	var at time.Time
	bestFull := false
	for _, l := range p.lanes {
		if l.closed != nil {
			continue
		}
		t, why, full := l.start(now, tokens)
		if best == nil || bestFull && !full || bestFull == full && t.Before(at) {
			best, reason, at, bestFull = l, why, t, full
		}
	}
	return best, reason
}
