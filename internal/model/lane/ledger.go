package lane

import (
	"maps"
	"time"
)

// A Ledger tells how full one lane was while its model had trials waiting to
// start, and what requests waited for.
type Ledger struct {
	Name string
	// Used is slot-time with a request in flight, Available the slot-time that
	// there was: their quotient is the lane's occupancy. A lane that is closed
	// or paused by the user has no slots.
	Used, Available time.Duration
	// Worked is all slot-time with a request in flight, also at the end of a
	// run, when no trial waited any more.
	Worked time.Duration
	// Waited is the time in which a request of the model, or a trial that could
	// start with one, waited and this was the lane that could have started it
	// soonest, by what it waited for.
	Waited map[string]time.Duration
	// Requests, InputTokens and OutputTokens are what the lane served.
	Requests, InputTokens, OutputTokens int
	Limits                              Limits // as they held at last
}

// Occupancy is Used / Available, 0 for a lane that was never open.
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

// ledger is the state that the lanes' ledgers share.
type ledger struct {
	booked time.Time // up to when the lanes' ledgers are kept
	began  bool      // a request was made
	demand bool      // trials wait to start
	busy   time.Duration
}

// book books the time since the last change of the queue's state. It has to
// precede every change.
func (q *queue) book(now time.Time) {
	span := now.Sub(q.booked)
	q.booked = now
	if !q.began {
		q.began = q.peek() != nil
		return
	}
	if span <= 0 {
		return
	}
	working := false
	for _, l := range q.lanes {
		working = working || l.inFlight > 0
		l.inUse += time.Duration(l.inFlight) * span
		if !q.demand {
			continue
		}
		l.used += time.Duration(l.inFlight) * span
		slots := l.inFlight // of a lane that is closed or paused by the user
		if l.closed == nil && !l.paused {
			slots = max(slots, l.limit(concurrency))
		}
		l.available += time.Duration(slots) * span
	}
	w := q.peek()
	if working || w != nil {
		q.busy += span
	}
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

// bottleneck returns the open lane that can start a request soonest, and what
// that waits for. A lane that is full counts as later than one that knows when
// it can.
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

// Least is the shortest time in which lanes with these limits can do what they
// did: every slot full, every window used up at its very beginning. It is a
// lower bound, which no schedule can beat.
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
	for b := requests; b < requestsPerDay; b++ {
		if n := did.in(b); n > 0 && !unlimited[b] {
			windows := (n + sum[b] - 1) / sum[b]
			least = max(least, time.Duration(windows-1)*time.Minute)
		}
	}
	return least
}

func (q *queue) ledgers() []Ledger {
	var all []Ledger
	for _, l := range q.lanes {
		all = append(all, Ledger{
			Name: l.Name, Used: l.used, Available: l.available, Worked: l.inUse, Waited: maps.Clone(l.waited),
			Requests: l.served.requests, InputTokens: l.served.input, OutputTokens: l.served.output,
			Limits: l.limits(),
		})
	}
	return all
}

// limits returns what holds now.
func (l *lane) limits() Limits {
	var out Limits
	for i, b := range Buckets {
		*out.Of(b) = l.limit(i)
	}
	return out
}
