package lane

import (
	"maps"
	"time"
)

// Ledger records how full a lane was while trials were waiting to start, and why
// requests had to wait.
type Ledger struct {
	Name string
	// Used is the slot-time with a request in flight, and Available is all slot-time. A lane that is
	// closed still has its slots, because the user named it. A lane that the user paused has no slots.
	Used, Available time.Duration
	// Bound is the slot-time without a request in flight in which the next request waited for a limit
	// that is stated or was found out.
	Bound time.Duration
	// Worked is like Used, but includes the end of a run, when no trials are
	// waiting to start.
	Worked time.Duration
	// Waited is the time, by reason, in which a request or a new trial of the
	// model waited and this lane was the one that could have started it soonest.
	Waited map[string]time.Duration
	// Requests, InputTokens and OutputTokens count everything the lane served.
	Requests, InputTokens, OutputTokens int
	Limits                              Limits // the latest
}

// Occupancy returns the share of its tightest limit that a lane has used, or 0 if it was never open:
// of its slots, or all of it while the next request waited for another limit.
func (l Ledger) Occupancy() float64 {
	if l.Available <= 0 {
		return 0
	}
	return float64(l.Used+l.Bound) / float64(l.Available)
}

// ledger is the state shared by the ledgers of all lanes.
type ledger struct {
	booked time.Time // end of the time that is booked
	began  bool      // true after the first request
	demand bool      // true while trials are waiting to start
}

// book adds the time since the last booking to the ledgers. Call it before every
// change of the queue's state.
func (q *queue) book(now time.Time) {
	span := now.Sub(q.booked)
	if w := q.peek(); w != nil && span > 0 {
		held := q.heldUntil(q.booked, w.cost).Sub(q.booked)
		q.served += max(0, span-max(0, held))
	}
	q.booked = now
	if !q.began {
		q.began = q.peek() != nil
		return
	}
	if span <= 0 {
		return
	}
	for _, l := range q.lanes {
		l.inUse += time.Duration(l.inFlight) * span
		if !q.demand {
			continue
		}
		l.used += time.Duration(l.inFlight) * span
		l.available += time.Duration(l.slots()) * span
	}

	w := q.peek()
	if w != nil || q.turnedAway && q.demand {
		c := q.typical()
		if w != nil {
			c = w.cost
		}
		if l, why := q.bottleneck(now.Add(-span), now, c); l != nil && why != nothing {
			l.waited[l.name(why)] += span
		}
	}
}

// slots returns how many requests the lane has room for, or how many are in flight if the user has
// paused it.
func (l *lane) slots() int {
	if l.paused {
		return l.inFlight
	}
	return max(l.inFlight, l.widest())
}

// bottleneck returns the open lane that can start a request soonest, and why the
// request has to wait. A full lane comes after every lane that knows when it can
// start the request. It books for how long until the given time each lane is at a limit.
func (q *queue) bottleneck(now, until time.Time, c cost) (best *lane, why reason) {
	var at time.Time
	bestFull := false
	for _, l := range q.lanes {
		if l.closed != nil {
			continue
		}
		t, r, full := l.start(now, c)
		if q.demand && r != pausing && (!full || l.pausesInRow == 0) {
			waits := min(until.Sub(now), max(0, t.Sub(now)))
			if full {
				waits = until.Sub(now)
			}
			l.bound += time.Duration(l.slots()-l.inFlight) * waits
		}
		if best == nil || bestFull && !full || bestFull == full && t.Before(at) {
			best, why, at, bestFull = l, r, t, full
		}
	}
	return best, why
}

// Least returns a lower bound of the time in which lanes with these limits can
// do the work that they did. It assumes that every slot is always full and that
// every window is used up as soon as it begins.
func Least(lanes []Ledger) time.Duration {
	var worked, least time.Duration
	var did cost
	var sum [numBuckets]int
	unlimited := [numBuckets]bool{}
	for _, l := range lanes {
		worked += l.Worked
		did = did.plus(cost{l.Requests, l.InputTokens, l.OutputTokens}, 1)
		for i, b := range Buckets {
			n := *l.Limits.Of(b)
			sum[i] += n
			unlimited[i] = unlimited[i] || n == 0
		}
	}
	if n := sum[concurrency]; n > 0 {
		least = worked / time.Duration(n)
	}
	for b := requestsPerSecond; b < requestsPerDay; b++ {
		if n := did.in(b); n > 0 && !unlimited[b] {
			windows := (n + sum[b] - 1) / sum[b]
			least = max(least, time.Duration(windows-1)*newWindow(b).of)
		}
	}
	return least
}

func (q *queue) ledgers() []Ledger {
	var all []Ledger
	for _, l := range q.lanes {
		all = append(all, Ledger{
			Name: l.Name, Used: l.used, Available: l.available, Bound: l.bound,
			Worked: l.inUse,
			Waited: maps.Clone(l.waited), Requests: l.served.requests,
			InputTokens: l.served.input, OutputTokens: l.served.output,
			Limits: l.limits(),
		})
	}
	return all
}

// limits returns the stated limits and the current width.
func (l *lane) limits() Limits {
	var out Limits
	for i, b := range Buckets {
		*out.Of(b) = l.stated[i]
	}
	out.Concurrency = l.widest()
	return out
}
