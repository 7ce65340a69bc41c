// Package lane keeps requests within the rate limits of their endpoints.
//
// A lane is one combination of deployment, key and model, which is the unit
// that providers limit. A [Pool] serves a model from all its lanes: each
// request goes to the lane that can start it soonest, and waiting requests are
// served in order of arrival. A request holds a slot of its lane only while it
// is in flight, never during a backoff.
//
// A stated limit is never exceeded, as the endpoint counts. Limits that are not stated are found
// out by a [limit.Limiter], which takes a refusal as evidence about which rule exists. A wait that
// an endpoint announces is kept by the request that was refused, and not by the others.
//
// All decisions depend only on the time that they are given.
//
// The package does not know about trials or wire formats.
package lane

import (
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/limit"
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
	readings [numBuckets]headerReading
	total    cost // of all requests so far
	typical  cost // of the latest request
	dearest  dearest

	limiter      *limit.Limiter
	words        string    // of the latest refusal
	refusedSince time.Time // start of the refusals without a success in between
	longestBlock time.Duration
	refusedBurst bool // a burst within a stated limit was refused

	paused      bool // by the user
	heldSince   time.Time
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
	// First and later requests of conversations are distinguished by index, because an endpoint may
	// refuse all of the latter.
	worked        [2]bool
	mistakes      [2]int // bad requests and answers from other models in a row, since mistakenSince
	mistakenSince [2]time.Time

	used, available, bound, inUse time.Duration // slot-time up to the last booking
	waited                        map[string]time.Duration
	served                        cost
}

func newLane(now time.Time, c Config) *lane {
	l := &lane{
		Config:       c,
		born:         now,
		since:        make(map[uint64]time.Time),
		waited:       make(map[string]time.Duration),
		longestBlock: longestBlock,
	}
	for i, b := range Buckets {
		l.stated[i], l.windows[i] = *c.Limits.Of(b), newWindow(i)
	}
	first, most := c.Limits.widths()
	l.limiter = limit.New(now, first, most)
	for _, s := range c.Spent {
		// The clock may have been set back meanwhile, or be set in the middle of the run.
		at := now.Add(-max(0, now.Sub(s.At)))
		for b := requestsPerSecond; b <= requestsPerDay; b++ {
			l.windows[b].add(at, cost{s.Requests, s.Input, s.Output})
		}
	}
	return l
}

// width returns how many requests may be in flight. After a pause for faults it
// is 1, so that a single request probes the endpoint.
func (l *lane) width() int {
	if l.pausesInRow > 0 {
		return 1
	}
	return l.widest()
}

// widest returns how many requests may be in flight if the endpoint is well.
func (l *lane) widest() int {
	n := l.limiter.Width()
	if stated := l.stated[concurrency]; stated > 0 {
		n = min(n, stated)
	}
	return max(1, n)
}

// LearnedLimit is why a request waits if its lane has found out a limit.
const LearnedLimit = "learned limit"

// reason is why a request has to wait: an index into [Buckets] or one of the
// constants below.
type reason int

const (
	nothing reason = -1
	pausing reason = numBuckets + iota
	userPause
	learnedLimit
	refusal
)

func (l *lane) name(r reason) string {
	switch r {
	case nothing:
		return ""
	case pausing:
		return l.pauseReason
	case userPause:
		return "your pause"
	case learnedLimit:
		return LearnedLimit
	case refusal:
		return "refusal"
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
		wait(l.blockedUntil(b, weight), reason(b))
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
	learned, ok := l.limiter.Next(now, c.amount())
	if why := learnedLimit; ok {
		if l.limiter.Doubts(now) {
			why = refusal
		}
		wait(learned, why)
	}

	switch {
	case l.paused:
		return at, userPause, true
	case !ok, l.pausesInRow > 0 && l.inFlight > 0:
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
	n := max(1, min(l.width()-l.inFlight, l.limiter.Room(now))) // one may exceed the learned limits
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

// heldSlot is a slot of a lane, held by one request.
type heldSlot struct {
	lane       *lane
	number     uint64          // also of the limiter
	entries    [numBuckets]int // IDs in the windows of stated limits
	estimate   cost
	started    time.Time
	total      cost
	behindWall bool // the latest headers forbade the request
	later      int  // 1 if the request continues a conversation, 0 if it begins one
}

func (l *lane) take(now time.Time, c cost) heldSlot {
	l.inFlight++
	l.typical = c
	t := heldSlot{
		lane: l, number: l.history.sent(), estimate: c, started: now,
		behindWall: l.pass(now, c),
	}
	l.limiter.Send(now, c.amount())
	l.total = l.total.plus(c, 1)
	t.total = l.total
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

func (l *lane) freeSlot(t heldSlot) {
	l.inFlight--
	delete(l.since, t.number)
}

// correct corrects the cost of a request in the windows, and returns by how much.
func (l *lane) correct(t heldSlot, by cost) cost {
	for b := requestsPerSecond; b <= requestsPerDay; b++ {
		l.windows[b].correct(t.entries[b], by)
	}
	return by
}

// cancel undoes take if no request was sent.
func (l *lane) cancel(now time.Time, t heldSlot) {
	l.freeSlot(t)
	l.limiter.Cancel(now, t.number)
	l.correct(t, cost{}.plus(t.estimate, -1))
}

// settle replaces a request's estimated cost by its real cost, and returns the difference.
func (l *lane) settle(t heldSlot, real cost) cost {
	by := l.correct(t, real.plus(t.estimate, -1))
	for b := requestsPerSecond; b <= requestsPerDay; b++ {
		l.next[b] = l.next[b].Add(l.interval(b, by.in(b)))
	}
	l.served = l.served.plus(real, 1)
	return by
}

// isRefusal reports whether an endpoint was too busy for a request, so that it did
// not begin to answer.
func isRefusal(usage assay.Usage, f *assay.Fault) bool {
	return f != nil && usage.Total() == 0 &&
		(f.Kind == assay.RateLimited || f.Kind == assay.Overloaded)
}

// release frees a request's slot and learns from its result: the usage that counts, and the limits
// that the endpoint reported. It returns by how much the request's estimated cost was wrong.
func (l *lane) release(
	now time.Time, t heldSlot, usage assay.Usage, quotas []assay.QuotaState, fault *assay.Fault,
) (by cost) {
	l.freeSlot(t)
	refused := isRefusal(usage, fault)
	switch {
	case usage.Total() > 0:
		by = l.settle(t, cost{1, usage.InputTokens, usage.OutputTokens})
	case refused:
		// Some endpoints count refused requests.
		by = l.correct(t, cost{requests: 1}.plus(t.estimate, -1))
	case fault != nil && fault.Kind != assay.Timeout && fault.Kind != assay.Network &&
		fault.Kind != assay.Interrupted:
		by = l.settle(t, cost{requests: 1}) // it failed before it used tokens
	default:
		l.served.requests++ // the usage is unknown, so the estimate stays
	}
	l.read(now, t, quotas)

	switch {
	case refused: // below
	case fault == nil || usage.Total() > 0:
		l.limiter.Accept(now, t.number, limit.Amount{
			Requests: 1, Input: usage.InputTokens, Output: usage.OutputTokens,
		})
	default:
		l.limiter.Drop(now, t.number)
	}
	switch {
	case fault == nil:
		l.succeeded(now, t)
	case fault.Kind.ClosesLane():
		l.denied(now, t, fault)
	case refused:
		l.refused(now, t, fault)
	case fault.Kind.Retryable():
		l.faulted(now, t, fault)
	case fault.Form: // the agent's wish
	case fault.Kind == assay.BadRequest || fault.Kind == assay.Identity:
		l.countMistake(now, t, fault)
	}
	return by
}

func (l *lane) succeeded(now time.Time, t heldSlot) {
	l.worked[t.later], l.mistakes[t.later] = true, 0
	l.pausesInRow, l.denial = 0, nil
	l.refusedSince, l.failingSince, l.repliedAt = time.Time{}, time.Time{}, now
	for ; l.faultsInDoubt > 0; l.faultsInDoubt-- {
		l.faults.add(1)
	}
	l.faults.add(0)
}

// hasWorked reports whether the endpoint has ever replied.
func (l *lane) hasWorked() bool { return l.worked[0] || l.worked[1] }

// recognizes reports whether served names the lane's model, and the part that had to be ignored for
// that; see [assay.SameModel].
func (l *lane) recognizes(served string) (ignored string, ok bool) {
	ignored, ok = assay.SameModel(l.Orders, served)
	for _, name := range l.Serves {
		if ok {
			break
		}
		ignored, ok = assay.SameModel(name, served)
	}
	return ignored, ok
}
