package lane

import (
	"maps"
	"time"
)

// Ledger records how full a lane was while trials were waiting to start, and why
// requests had to wait.
type Ledger struct {
	Name string
	// Used is the slot-time with a request in flight, and Available is all slot-time. Their
	// quotient is the lane's occupancy. A lane that is closed still has its slots, because the user
	// named it. A lane that the user paused has no slots.
	Used, Available time.Duration
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

// Occupancy returns Used / Available, or 0 if the lane was never open.
func (l Ledger) Occupancy() float64 {
	if l.Available <= 0 {
		return 0
	}
	return float64(l.Used) / float64(l.Available)
}

// scale multiplies times and counts.
func (l *Ledger) scale(times, counts float64) {
	for _, d := range []*time.Duration{&l.Used, &l.Available, &l.Worked} {
		*d = time.Duration(float64(*d) * times)
	}
	for reason, d := range l.Waited {
		l.Waited[reason] = time.Duration(float64(d) * times)
	}
	for _, n := range []*int{&l.Requests, &l.InputTokens, &l.OutputTokens} {
		*n = int(float64(*n) * counts)
	}
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
		slots := l.inFlight // if the lane is paused by the user
		if !l.paused {
			slots = max(slots, l.widest())
		}
		l.available += time.Duration(slots) * span
	}

	w := q.peek()
	if w != nil || q.turnedAway && q.demand {
		c := q.typical()
		if w != nil {
			c = w.cost
		}
		if l, why := q.bottleneck(now.Add(-span), c); l != nil && why != nothing {
			l.waited[l.name(why)] += span
		}
	}
}

// bottleneck returns the open lane that can start a request soonest, and why the
// request has to wait. A full lane comes after every lane that knows when it can
// start the request.
func (q *queue) bottleneck(now time.Time, c cost) (best *lane, why reason) {
	var at time.Time
	bestFull := false
	for _, l := range q.lanes {
		if l.closed != nil {
			continue
		}
		t, r, full := l.start(now, c)
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
			Name: l.Name, Used: l.used, Available: l.available, Worked: l.inUse,
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
