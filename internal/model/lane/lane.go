// Package lane keeps requests within the rate limits of their endpoints.
//
// A lane is one combination of deployment, key and model, which is the unit
// that providers limit. A [Pool] serves a model from all its lanes: each
// request goes to the lane that can start it soonest, and waiting requests are
// served in order of arrival. A request holds a slot of its lane only while it
// is in flight, never during a backoff.
//
// Four laws hold, whatever the endpoint's limiter is:
//
//  1. A stated limit is never exceeded, as the endpoint counts, and a wait that
//     the endpoint announces is kept.
//  2. Within two minutes of the endpoint allowing a higher rate, the lane uses nine
//     tenths of it in a minute that begins in them (seldom a little less).
//  3. If an endpoint's limit is constant, the lane uses nine tenths of it after the
//     first minutes (seldom a little less), with less than 2 % refusals or nine in 75
//     seconds.
//  4. A lane with waiting requests is not silent for more than a minute, unless the
//     endpoint has announced a wait or is full.
//
// The tests draw servers from a class: fixed windows of 1, 10 and 60 seconds, sliding windows of 1
// and 60, token buckets for 1, 6 and 60 seconds, 1 to 32 requests a second, and refusals that
// announce no wait, the right one, zero, or half of it. Of 3,000 lanes whose limit rose fourfold at
// a random time, one used less than 0.9 of it in the best minute: 0.79, at a few requests a second,
// where counts are small.
//
// Other windows are not in the class. Of 300 lanes at fixed and sliding ones of 5 to 30 seconds, 17
// used less than 0.9 after a rise, the lowest 0.67, and 14 with a constant limit, the lowest 0.86.
// Two had more refusals than the third law allows.
//
// The second law has a price. To see a rise within two minutes, a lane has to exceed the limit
// once in 75 seconds, and is refused at least once each time. So 2 % are impossible below
// 1 / (75 × 0.02) = 0.67 requests per second, or in proportion if a wall takes more probes: a
// window of 10 seconds that announces nothing takes up to five.
//
// The fourth law has a price, too. While a limit per day is used up and no wait is announced, the
// lane sends a probe each minute, and all of them are refused. Fewer would break the law.
//
// A rate is controlled like the window of CUBIC (RFC 9438). It has a goal, where it rests for 75
// seconds before it probes faster and faster:
//
//   - A wall above the goal proves that the limit is what the last minute accepted, if that is
//     more, and begins a trial at 0.9 of the rate that was refused.
//   - A wall above the goal that proves 1.3 of it begins a search, because bursts hide how much
//     higher the limit is. The lane keeps being refused for a minute and then keeps what that
//     minute accepted, and tries a tenth more. Refusals in a search are not taken for chance.
//   - A wall during a trial leads to a lower trial, last at the rate that was accepted, or back to
//     the goal before.
//   - Any other wall lowers the rate for a moment, to what was accepted since the last one. It
//     recovers within seconds. After a minute of walls the goal is lowered to what that minute
//     accepted.
//
// A few requests a second are refused like too many in flight. If a refusal raised the width, it
// is tried again after seconds, and then a rate that is on trial is to blame.
//
// Refusals by chance are no walls. Like BBR, a lane measures them at rates below one that was just
// accepted, where no limit refuses requests. As long as the refusals are no more than this share
// explains, the lane does not react to them, except that it keeps announced waits, and that it
// lowers the rate for a moment every 15 seconds to measure the share again. It measures slowly,
// because an empty token bucket refuses requests like chance does, except at lower rates. So one
// refusal in ten that announces a wait of a second may cost a lane half of what is possible.
//
// At the end of a run, when no more trials are waiting to start, a request that has been out for
// far longer than those of its model usually are gets a second one: see hedge.go. It starts only on
// a lane that permits it and has room that no other turn needs, and is ended if another turn needs
// its place. So with 1 % requests that hang, 1,000 trials and 50 in flight, a run takes at most 1.15
// of the least time. Requests that the pool ends teach a lane nothing.
//
// All decisions depend only on the time that they are given, so [Simulate] can
// make the same decisions in virtual time.
//
// The package does not know about trials or wire formats.
package lane

import (
	"sync/atomic"
	"time"

	"github.com/assay-eval/assay"
)

// lane is the state of one lane. It is guarded by its pool's mutex.
type lane struct {
	Config
	born     time.Time
	inFlight int
	since    map[uint64]time.Time // start times of requests in flight, by number
	// The arrays below are indexed like Buckets.
	stated   [numBuckets]int
	windows  [numBuckets]window
	next     [numBuckets]time.Time // earliest even start by a stated limit
	readings [numBuckets]reading
	total    cost // of all requests so far
	typical  cost // of the latest request

	// width and rate are learned. starting is true until the first refusal that
	// narrows the width. Until then it doubles with each round of good replies.
	wide     control
	rate     rate
	starting bool
	good     int
	paced    time.Time // when the latest request should have started by the rate
	burst    burst
	// held is the number in flight that was accepted since request heldFrom. It rises at
	// the second request that shows more, and proof counts these.
	held, proof  int
	heldFrom     uint64
	refusedSince time.Time // start of the refusals without a success in between
	longestWall  time.Duration
	refusedBurst bool // a burst within a stated limit was refused

	paused      bool // by the user
	pausedSince time.Time
	pausedUntil time.Time
	pauseReason string
	pauseWords  string // of the endpoint
	closed      *assay.Fault
	denial      *assay.Fault // the refusal of the key or deployment since the last success

	history history
	// faults is the share of requests that failed by chance, as a later success
	// showed. The failures in doubt have not been followed by a success yet.
	faults        mean
	faultsInDoubt int
	pausesInRow   int
	// failingSince is when the endpoint began to fail: when the first request that failed since
	// the latest reply was sent, or when that reply arrived if it arrived later.
	failingSince, repliedAt time.Time
	// First and later requests of conversations are told apart by index, because an
	// endpoint may refuse all of the latter.
	worked   [2]bool
	mistakes [2]int // bad requests and answers from other models in a row

	recognized atomic.Pointer[recognition] // the only field that changes without the mutex

	used, available, inUse time.Duration // slot-time up to the last booking
	waited                 map[string]time.Duration
	served                 cost
}

func newLane(now time.Time, c Config) *lane {
	l := &lane{
		Config:      c,
		born:        now,
		since:       make(map[uint64]time.Time),
		waited:      make(map[string]time.Duration),
		longestWall: longestWall,
	}
	for i, b := range Buckets {
		l.stated[i], l.windows[i] = *c.Limits.Of(b), newWindow(i)
	}
	l.forget(now, concurrency)
	if n := c.Learned.Concurrency; n > 0 {
		l.starting = false
		l.wide.keep(now, float64(n))
	}
	if n := c.Learned.RPM; n > 0 {
		l.rate.keep(now, float64(n)/60)
	}
	for _, s := range c.Spent {
		l.windows[requestsPerDay].add(s.At, cost{requests: s.Requests})
	}
	return l
}

// forget makes a lane forget what it learned about a bucket.
func (l *lane) forget(now time.Time, bucket int) {
	l.readings[bucket] = reading{}
	if bucket != concurrency {
		l.rate, l.burst, l.refusedBurst = rate{}, burst{}, false
		return
	}
	l.starting = l.stated[concurrency] == 0
	if l.wide = (control{}); l.starting {
		l.wide.keep(now, firstWidth)
	}
}

// widthAt returns how many requests may be in flight.
func (l *lane) widthAt(now time.Time) float64 {
	most := widest
	if n := l.stated[concurrency]; n > 0 {
		most = n
	}
	return min(float64(most), l.wide.at(now))
}

// width returns how many requests may be in flight. After a pause for faults it
// is 1, so that a single request probes the endpoint.
func (l *lane) width(now time.Time) int {
	if l.pausesInRow > 0 {
		return 1
	}
	return max(1, int(l.widthAt(now)))
}

// reason is why a request has to wait: an index into [Buckets] or one of the
// constants below.
type reason int

const (
	nothing reason = -1
	pausing reason = numBuckets + iota
	userPause
	learnedRate
	probe
)

func (l *lane) name(r reason) string {
	switch r {
	case nothing:
		return ""
	case pausing:
		return l.pauseReason
	case userPause:
		return "your pause"
	case learnedRate:
		return "learned rate"
	case probe:
		return "probe"
	}
	return string(Buckets[r])
}

// start returns when a request can start and why it has to wait. If full is true,
// the time is unknown, because a request in flight has to end first or the user
// has to resume the lane.
func (l *lane) start(now time.Time, c cost) (at time.Time, why reason, full bool) {
	at, why = now, nothing
	wait := func(t time.Time, r reason) {
		if t.After(at) {
			at, why = t, r
		}
	}
	for b := requestsPerSecond; b <= requestsPerDay; b++ {
		weight := c.in(b)
		wait(l.wall(b, weight), reason(b))
		limit := l.stated[b]
		if limit <= 0 {
			continue
		}
		wait(l.windows[b].free(now, b, weight, limit), reason(b))
		if !l.takesBursts(b, c) {
			wait(l.next[b].Add(-l.burstTime(b, weight)), reason(b))
		}
	}
	wait(l.pausedUntil, pausing)
	wait(l.evenly(now), learnedRate)
	if b := l.burst; b.stalled && b.probed {
		wait(b.probedAt.Add(b.patience), probe)
	}

	switch {
	case l.paused:
		return at, userPause, true
	case l.inFlight >= l.width(now):
		return at, concurrency, true
	}
	return at, why, false
}

// room returns how many requests of a cost could start now.
func (l *lane) room(now time.Time, c cost) int {
	at, _, full := l.start(now, c)
	if full || at.After(now) {
		return 0
	}
	n := l.width(now) - l.inFlight
	if l.rate.goal > 0 || l.burst.stalled {
		n = 1
	}
	for b := requestsPerSecond; b <= requestsPerDay; b++ {
		limit, weight := l.stated[b], c.in(b)
		if limit <= 0 || weight <= 0 {
			continue
		}
		n = min(n, max(1, (limit-l.windows[b].sum.in(b))/weight))
		if d := l.interval(b, weight); d > 0 && !l.takesBursts(b, c) {
			n = min(n, 1+int(now.Sub(l.next[b].Add(-l.burstTime(b, weight)))/d))
		}
	}
	return n
}

// ticket is a slot of a lane, held by one request.
type ticket struct {
	lane       *lane
	number     uint64
	entry      int
	entries    [numBuckets]int // IDs in the windows of stated limits
	estimate   cost
	started    time.Time
	inFlight   int // including this request
	total      cost
	behindWall bool // the latest headers forbade the request
	paced      bool // the request had to wait for the learned rate
	calm       bool // the rate was lower than one that was accepted
	second     bool // another request for the turn is in flight
	later      int  // 1 if the request continues a conversation, 0 if it begins one
}

func (l *lane) take(now time.Time, c cost) ticket {
	if b := &l.burst; b.stalled && b.probed {
		l.resume(now)
	} else if b.stalled {
		b.probed, b.probedAt = true, now
	}
	l.inFlight++
	l.typical = c
	t := ticket{
		lane: l, number: l.history.sent(), estimate: c, started: now, inFlight: l.inFlight,
		behindWall: l.pass(now, c),
	}
	t.entry, t.calm = l.rate.take(now, l.burst.open)
	l.total = l.total.plus(c, 1)
	t.total = l.total
	gap := gap(l.rate.at(now))
	t.paced = now.Sub(l.paced) < 2*gap
	l.paced = onTime(l.paced.Add(gap), now)
	for b := requestsPerSecond; b <= requestsPerDay; b++ {
		if t.entries[b] = -1; l.stated[b] > 0 || b == requestsPerSecond {
			t.entries[b] = l.windows[b].add(now, c)
		}
		if d := l.interval(b, c.in(b)); d > 0 {
			l.next[b] = onTime(l.next[b], now).Add(d)
		}
	}
	l.since[t.number] = now
	return t
}

func (l *lane) freeSlot(t ticket) {
	l.inFlight--
	delete(l.since, t.number)
}

// correct corrects the cost of a request in the windows.
func (l *lane) correct(t ticket, by cost) {
	for b := requestsPerSecond; b <= requestsPerDay; b++ {
		l.windows[b].correct(t.entries[b], by)
	}
}

// cancel undoes take if no request was sent.
func (l *lane) cancel(t ticket) {
	l.freeSlot(t)
	l.rate.refuse(t.entry, false)
	l.correct(t, cost{}.plus(t.estimate, -1))
}

// settle replaces a request's estimated cost by its real cost.
func (l *lane) settle(t ticket, real cost) {
	by := real.plus(t.estimate, -1)
	l.correct(t, by)
	for b := tokens; b <= outputTokens; b++ {
		l.next[b] = l.next[b].Add(l.interval(b, by.in(b)))
	}
	l.served = l.served.plus(real, 1)
}

// isRefusal reports whether an endpoint was too busy for a request, so that it did
// not begin to answer.
func isRefusal(usage assay.Usage, f *assay.Fault) bool {
	return f != nil && usage.Total() == 0 &&
		(f.Kind == assay.RateLimited || f.Kind == assay.Overloaded)
}

// release frees a request's slot and learns from its result: the usage that counts, and the limits
// that the endpoint reported.
func (l *lane) release(
	now time.Time, t ticket, usage assay.Usage, quotas []assay.QuotaState, fault *assay.Fault,
) {
	l.freeSlot(t)
	refused := isRefusal(usage, fault)
	switch {
	case usage.Total() > 0:
		l.settle(t, cost{1, usage.InputTokens, usage.OutputTokens})
	case refused:
		// Some endpoints count refused requests.
		l.correct(t, cost{requests: 1}.plus(t.estimate, -1))
	case fault != nil && fault.Kind != assay.Timeout:
		l.settle(t, cost{requests: 1}) // it failed before it used tokens
	default:
		l.served.requests++ // the usage is unknown, so the estimate stays
	}
	l.read(now, t, quotas)

	switch {
	case fault == nil:
		l.succeeded(now, t)
	case fault.Kind.ClosesLane():
		l.denied(now, t, fault)
	case refused:
		l.refused(now, t, fault)
	case fault.Kind.Retryable():
		l.faulted(now, t, fault)
	case fault.Kind == assay.BadRequest || fault.Kind == assay.Identity:
		l.countMistake(t, fault)
	}
}

func (l *lane) succeeded(now time.Time, t ticket) {
	l.worked[t.later], l.mistakes[t.later] = true, 0
	l.pausesInRow, l.denial = 0, nil
	l.refusedSince, l.failingSince, l.repliedAt = time.Time{}, time.Time{}, now
	for ; l.faultsInDoubt > 0; l.faultsInDoubt-- {
		l.faults.add(1)
	}
	l.faults.add(0)
	l.accepted(now, t)
	if l.good++; l.starting && l.good >= int(l.wide.goal) && l.wide.goal < widest {
		l.good = 0
		l.wide.keep(now, 2*l.wide.goal)
	}
}

// hasWorked reports whether the endpoint has ever replied.
func (l *lane) hasWorked() bool { return l.worked[0] || l.worked[1] }

// recognizes reports whether served names the lane's model, and what had to be
// ignored for that; see [assay.SameModel].
func (l *lane) recognizes(served string) (ignored string, ok bool) {
	if known := l.recognized.Load(); known != nil && known.served == served {
		return known.ignored, known.ok
	}
	ignored, ok = assay.SameModel(l.Orders, served)
	for _, name := range l.Serves {
		if ok {
			break
		}
		ignored, ok = assay.SameModel(name, served)
	}
	l.recognized.Store(&recognition{served, ignored, ok})
	return ignored, ok
}

// A recognition is the answer of recognizes for a name. A lane remembers the latest, because nearly
// all replies name the same model.
type recognition struct {
	served, ignored string
	ok              bool
}
