// Package lane keeps requests within the rate limits of their endpoints.
//
// A lane is one combination of deployment, key and model, which is the unit
// that providers limit. It counts requests in flight, and requests and tokens
// in time windows. It learns unstated limits, and pauses if its
// endpoint asks for that. A [Pool] serves a model from all its lanes: each
// request goes to the lane that can start it soonest, and waiting requests are
// served in order of arrival. A request holds a slot of its lane only while it
// is in flight, never during a backoff.
//
// All decisions depend only on the time that they are given, so [Simulate] can
// make the same decisions in virtual time.
//
// The package does not know about trials or wire formats.
package lane

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/assay-eval/assay"
)

// How a lane reacts to faults and refusals.
const (
	// A lane pauses after breakAfter faults in a row. If faults are frequent, so
	// that such a row may be bad luck, it takes up to breakAfterMost.
	breakAfter, breakAfterMost = 5, 10
	// firstPause doubles with each pause in a row, up to longestPause.
	firstPause   = 5 * time.Second
	longestPause = 5 * time.Minute
	// A lane closes for the run after closeAfter pauses in a row, which is an
	// outage of ten minutes. A lane that never worked closes after
	// closeAfterNever pauses, or half a minute, because its address or name is
	// probably wrong.
	closeAfter      = 6
	closeAfterNever = 3
	// A bad request or an answer from another model suggests a mistake in the
	// configuration. A lane that never worked closes after mistakenAfter of
	// them in a row, and one that worked after mistakenAfterWorking, so that
	// the run does not pay for more useless requests.
	mistakenAfter        = 5
	mistakenAfterWorking = 50
	// longestRetryAfter is the longest wait that an endpoint can ask for. A
	// lane closes for the run if its endpoint asks for more.
	longestRetryAfter = 15 * time.Minute
	// A lane closes if its endpoint has refused everything for this long.
	patience = 10 * time.Minute
	// A refusal that asks for a longer wait than shortWait is believed at once.
	// Otherwise up to believeAfter refusals in a row are needed. Fewer are
	// enough on a narrow lane, or if the lane was never refused by chance.
	shortWait    = 2 * time.Second
	believeAfter = 8
	// If a larger share of requests is refused by chance, the endpoint is
	// overloaded, whatever its limits are.
	busyShare = 0.15
)

// lane is the state of one lane. It is guarded by its pool's mutex.
type lane struct {
	Config
	born     time.Time
	inFlight int
	since    map[uint64]time.Time // start times of requests in flight, by number
	minute   window
	day      window
	// The arrays below are indexed like Buckets.
	stated  [numBuckets]int
	learned [numBuckets]governor
	foreign [numBuckets]foreign
	// withheld is how much the endpoint reserves for each request in flight
	// beyond our estimate. Many endpoints reserve the whole max_tokens of a
	// reply.
	withheld [numBuckets]float64
	// spacing is the minimum time between two requests. It is set if an
	// endpoint refuses bursts within its limit.
	spacing time.Duration
	latest  time.Time // start of the latest request

	paused      bool // by the user
	pausedSince time.Time
	pausedUntil time.Time
	pauseReason string
	closed      *assay.Fault

	history history
	// refusals and faults are the shares of requests that failed by chance,
	// as a later success showed. The failures in doubt have not been followed
	// by a success yet.
	refusals, faults               share
	refusalsInDoubt, faultsInDoubt int

	belief *belief
	// calm counts successes since the latest burst of refusals. doubted is true
	// if the lane learned nothing from that burst because it may have been
	// chance.
	calm    int
	doubted bool
	// narrowed is the state of the width before it was cut on suspicion.
	narrowed *governor
	// suspected is the bucket blamed for the latest burst of refusals.
	suspected   int
	cutAt       time.Time
	worked      bool
	mistakes    int // bad requests and answers from other models in a row
	pausesInRow int
	// limitedRow counts bursts of refusals in a row since refusedSince.
	limitedRow   int
	refusedSince time.Time

	used, available, inUse time.Duration // slot-time up to the last booking
	waited                 map[string]time.Duration
	served                 cost
}

// foreign is usage that the endpoint has counted and we have not, although none
// of our requests is in flight. It comes from other users of the key.
type foreign struct {
	amount int
	until  time.Time
}

// belief is the state to restore if a refusal turns out to be chance. The
// requests sent after the refused one and before the lane reacted decide: if
// most of them succeed, it was chance.
type belief struct {
	after, before uint64 // exclusive bounds of these requests' numbers
	refused, good int    // how many of them were refused and succeeded
	learned       [numBuckets]governor
	pausedUntil   time.Time
}

// testedBy reports whether a request is one of those that decide.
func (b *belief) testedBy(number uint64) bool {
	return b != nil && number > b.after && number < b.before
}

func newLane(now time.Time, c Config) *lane {
	l := &lane{
		Config:  c,
		born:    now,
		since:   make(map[uint64]time.Time),
		minute:  window{span: windowSpan},
		day:     window{span: daySpan, grain: time.Minute},
		waited:  make(map[string]time.Duration),
		history: newHistory(max(c.Limits.Concurrency, widest)),
		calm:    math.MaxInt,
	}
	for i, b := range Buckets {
		l.stated[i] = *c.Limits.Of(b)
		if n := *c.Learned.Of(b); n > 0 {
			l.learned[i] = known(n, now)
		}
	}
	if g := &l.learned[concurrency]; l.stated[concurrency] <= 0 && g.limit == 0 {
		*g = governor{limit: firstWidth, starting: true, changed: now}
	}
	for _, s := range c.Spent {
		l.day.add(s.At, cost{requests: s.Requests})
	}
	return l
}

// limit returns the current limit of a bucket, or 0 if there is none. It is the
// lower of the stated and the learned limit.
func (l *lane) limit(bucket int) int {
	stated, learned := l.stated[bucket], l.learned[bucket].limit
	if stated <= 0 || learned > 0 && learned < stated {
		return learned
	}
	return stated
}

// width returns how many requests may be in flight. After a pause for faults it
// is 1, so that a single request probes the endpoint.
func (l *lane) width() int {
	if l.pausesInRow > 0 {
		return 1
	}
	return l.limit(concurrency)
}

// window returns the window that counts a bucket.
func (l *lane) window(bucket int) *window {
	if bucket == requestsPerDay {
		return &l.day
	}
	return &l.minute
}

// reason is why a request has to wait: an index into [Buckets] or one of the
// constants below.
type reason int

const (
	nothing reason = -1
	pausing reason = numBuckets + iota
	userPause
	spacing
)

func (l *lane) name(r reason) string {
	switch {
	case r == nothing:
		return ""
	case r == pausing:
		return l.pauseReason
	case r == userPause:
		return "your pause"
	case r == spacing:
		return "even spacing"
	}
	return string(Buckets[r])
}

// start returns when a request can start and why it has to wait. If full is true,
// the time is unknown, because a request in flight has to end first or the user
// has to resume the lane.
func (l *lane) start(now time.Time, c cost) (at time.Time, why reason, full bool) {
	at, why = now, nothing
	later := func(t time.Time, r reason) {
		if t.After(at) {
			at, why = t, r
		}
	}
	for b := requests; b < numBuckets; b++ {
		limit := l.limit(b)
		if limit <= 0 {
			continue
		}
		w := l.window(b)
		weight := c.in(b) + ceil(margin*l.withheld[b]*float64(l.inFlight+1))
		later(w.free(now, b, weight, limit), reason(b))

		f := l.foreign[b]
		if f.amount > 0 && f.until.After(now) && w.sum.in(b)+f.amount+weight > limit {
			later(f.until, reason(b))
		}
	}
	later(l.pausedUntil, pausing)
	if l.spacing > 0 {
		later(l.latest.Add(l.spacing), spacing)
	}

	switch {
	case l.paused:
		return at, userPause, true
	case l.inFlight >= l.width():
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
	n := l.width() - l.inFlight
	if l.spacing > 0 {
		n = 1
	}
	for b := requests; b < numBuckets; b++ {
		if limit, weight := l.limit(b), c.in(b); limit > 0 && weight > 0 {
			n = min(n, max(1, (limit-l.window(b).sum.in(b))/weight))
		}
	}
	return n
}

// markBound notes that a request had to wait for a limit. A learned limit only
// grows after that.
func (l *lane) markBound(r reason) {
	if r >= 0 && r < numBuckets {
		l.learned[r].bound = true
	}
}

// ticket is a slot of a lane, held by one request.
type ticket struct {
	lane        *lane
	number      uint64
	minute, day int // IDs of entries in the windows
	estimate    cost
	started     time.Time
}

func (l *lane) take(now time.Time, c cost) ticket {
	l.inFlight++
	l.latest = now
	t := ticket{
		lane: l, number: l.history.sent(), minute: l.minute.add(now, c), day: -1,
		estimate: c, started: now,
	}
	if l.limit(requestsPerDay) > 0 {
		t.day = l.day.add(now, cost{requests: 1})
	}
	l.since[t.number] = now
	return t
}

func (l *lane) freeSlot(t ticket) {
	l.inFlight--
	delete(l.since, t.number)
}

// uncount removes a request from the windows.
func (l *lane) uncount(t ticket) {
	l.minute.correct(t.minute, cost{}.plus(t.estimate, -1))
	if t.day >= 0 {
		l.day.correct(t.day, cost{requests: -1})
	}
}

// cancel undoes take if no request was sent.
func (l *lane) cancel(t ticket) {
	l.freeSlot(t)
	l.history.mark(t.number, good)
	l.uncount(t)
}

// settle replaces a request's estimated cost by its real cost.
func (l *lane) settle(t ticket, real cost) {
	l.minute.correct(t.minute, real.plus(t.estimate, -1))
	l.served = l.served.plus(real, 1)
}

// release frees a request's slot and learns from its result.
func (l *lane) release(now time.Time, t ticket, resp assay.Response, fault *assay.Fault) {
	l.freeSlot(t)
	usage := resp.Usage
	isRefusal := fault != nil && (fault.Kind == assay.RateLimited ||
		fault.Kind == assay.Overloaded && fault.RetryAfter > 0)

	switch {
	case usage.Total() > 0:
		l.settle(t, cost{1, usage.InputTokens, usage.OutputTokens})
	case isRefusal:
		l.uncount(t)
	case fault != nil && fault.Kind != assay.Timeout:
		l.settle(t, cost{requests: 1}) // it failed before it used tokens
	default:
		l.served.requests++ // the usage is unknown, so the estimate stays
	}
	l.applyQuotas(now, resp.Quotas)

	switch {
	case fault == nil:
		l.succeeded(now, t)
	case fault.Kind.ClosesLane():
		l.close(fault)
	case isRefusal:
		l.refused(now, t, fault)
	case fault.Kind.Retryable():
		l.faulted(now, t, fault)
	default:
		l.history.mark(t.number, good) // the lane itself worked
		if fault.Kind == assay.BadRequest || fault.Kind == assay.Identity {
			l.countMistake(fault)
		}
	}
}

func (l *lane) succeeded(now time.Time, t ticket) {
	l.worked = true
	l.pausesInRow, l.limitedRow, l.mistakes = 0, 0, 0
	l.history.mark(t.number, good)
	l.refusals.succeeded(&l.refusalsInDoubt)
	l.faults.succeeded(&l.faultsInDoubt)
	if l.calm < math.MaxInt {
		l.calm++
	}
	if l.doubted && l.isCalm() {
		l.doubted = false
		l.refusals.count(true)
	}

	if b := l.belief; b.testedBy(t.number) {
		if b.good++; b.good >= 3*(b.refused+1) {
			l.rollback()
		}
	}
	for i := range l.learned {
		ceiling := l.stated[i]
		if i == concurrency && ceiling == 0 {
			ceiling = widest
		}
		l.learned[i].succeeded(now, ceiling)
	}
}

func (l *lane) countMistake(fault *assay.Fault) {
	l.mistakes++
	if !l.worked && l.mistakes >= mistakenAfter || l.mistakes >= mistakenAfterWorking {
		l.close(fault)
	}
}

// sentBeforePause reports whether a request was sent before the latest pause
// began. The pause already accounts for its failure.
func (l *lane) sentBeforePause(t ticket) bool {
	return !l.pausedSince.IsZero() && !t.started.After(l.pausedSince)
}

func (l *lane) faulted(now time.Time, t ticket, fault *assay.Fault) {
	l.history.mark(t.number, broken)
	needed := improbableRow(l.faults.mean, breakAfter, breakAfterMost)
	l.faultsInDoubt++
	if l.pausesInRow > 0 && l.sentBeforePause(t) {
		return
	}
	if l.pausesInRow == 0 && l.history.row(t.number, broken, needed) < needed {
		return
	}
	if l.pausesInRow >= closeAfter || !l.worked && l.pausesInRow >= closeAfterNever {
		l.close(fault)
		return
	}

	wait := min(longestPause, firstPause<<l.pausesInRow)
	l.pausesInRow++
	l.pause(now, wait, fmt.Sprintf("down (%s)", fault.Kind))
}

func (l *lane) pause(now time.Time, wait time.Duration, reason string) {
	l.pausedSince = now
	if until := now.Add(wait); until.After(l.pausedUntil) {
		l.pausedUntil, l.pauseReason = until, reason
	}
}

func (l *lane) close(fault *assay.Fault) {
	if l.closed == nil {
		l.closed = fault
	}
}

// recognizes reports whether served names the lane's model, and what had to be
// ignored for that; see [assay.SameModel].
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

// jitter returns a random duration between d/2 and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
