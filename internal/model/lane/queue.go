package lane

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/assay-eval/assay"
)

// queue holds a model's lanes and the requests waiting for them. It decides when
// and on which lane each request starts. It never reads a clock and is not safe
// for concurrent use.
type queue struct {
	model   string
	lanes   []*lane
	waiting []*waiter // waiting[head:] in order of arrival
	head    int
	// reserved counts admitted conversations that have not sent a request yet.
	reserved int
	// turnedAway is true if a conversation was not admitted, so that Wake has to be
	// called when there is room.
	turnedAway bool
	// refusing is true if requests may no longer wait for a limit or a pause.
	refusing bool
	// served is the time, up to the last booking, in which requests waited and some lane was not held.
	served time.Duration

	estimator
	ledger
}

// waiter is one request in the queue.
type waiter struct {
	// bytes is the size of the conversation. The cost is estimated from it when
	// the request's turn comes. If bytes is 0, the cost is already known.
	bytes int
	cost  cost
	// lane is the lane of the conversation's previous request, or "" for the first request.
	lane string
	// avoid is the lane on which the latest request of the turn hung, or "".
	avoid string
	// origin is where the state of the conversation's latest reply is from, or "".
	origin string
	since  time.Time
	// served is the queue's at that time, and announced when the first lane may be asked again.
	served    time.Duration
	announced time.Time
	stayed    time.Duration // set with the answer
	// answer receives a ticket or an error. It is called once and must not block.
	answer func(heldSlot, error)
	// gone is true if the request no longer waits. It is removed later.
	gone bool
	// holds are the waits that lanes have announced to earlier requests of the turn.
	holds []hold
	purse Purse // nil if it is never empty
}

// spent returns a fault if nobody pays for a request any more.
func (w *waiter) spent() error {
	if w.purse != nil {
		if f := w.purse.Allow(); f != nil {
			return f
		}
	}
	return nil
}

// later returns 1 if the request continues a conversation, and 0 if it begins one.
func (w *waiter) later() int {
	if w.lane == "" {
		return 0
	}
	return 1
}

func newQueue(now time.Time, model string, lanes []Config) *queue {
	q := &queue{model: model, estimator: estimator{asks: mean{1, firstAsks}}}
	q.ledger.demand = true
	for _, c := range lanes {
		q.lanes = append(q.lanes, newLane(now, c))
	}
	return q
}

// enqueue appends a request. The caller has to call dispatch afterwards.
func (q *queue) enqueue(now time.Time, w *waiter) {
	q.book(now)
	w.since, w.served, w.announced = now, q.served, q.announced(w)
	q.waiting = append(q.waiting, w)
}

// peek returns the next waiting request, or nil if no request is waiting.
func (q *queue) peek() *waiter {
	for q.head < len(q.waiting) {
		if w := q.waiting[q.head]; !w.gone {
			return w
		}
		q.pop()
	}
	return nil
}

func (q *queue) pop() {
	q.waiting[q.head] = nil
	q.head++
	if q.head > 64 && q.head > len(q.waiting)/2 {
		q.waiting = append(q.waiting[:0], q.waiting[q.head:]...)
		q.head = 0
	}
}

// depth returns the number of waiting requests.
func (q *queue) depth() int {
	n := 0
	for _, w := range q.waiting[q.head:] {
		if !w.gone {
			n++
		}
	}
	return n
}

// dispatch grants slots to waiting requests, in order, as long as a lane can start the first one
// now. A request that is bound to other lanes, or keeps an announced wait, does not hold up the
// requests behind it. It returns the latest time to call it again, or zero if only a release can
// change anything.
func (q *queue) dispatch(now time.Time) (next time.Time) {
	q.book(now)
	for _, w := range q.waiting[q.head:] {
		if w.gone {
			continue
		}
		if err := q.closed(); err != nil {
			q.refuseAll(err)
			break
		}
		if err := w.spent(); err != nil {
			w.leave(heldSlot{}, err)
			continue
		}
		if w.bytes > 0 {
			w.cost = q.estimate(w.bytes)
		}
		bound := q.bound(w)
		best, at := q.soonest(now, w, bound)
		switch {
		case best != nil && !at.After(now):
			t := best.take(now, w.cost)
			t.later = w.later()
			w.leave(t, nil)
			continue
		case q.refusing && (best != nil || q.paused()):
			w.leave(heldSlot{}, stoppedWaiting())
			continue
		case best != nil:
			next = earliest(next, at)
		}
		if !bound && !w.held(now) {
			break
		}
	}
	q.peek() // removes the requests that have gone
	return next
}

// leave answers a request and takes it out of the queue.
func (w *waiter) leave(t heldSlot, err error) {
	w.gone = true
	w.answer(t, err)
}

// earliest returns the earlier time. Zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// bound reports whether only some of the open lanes can continue a conversation,
// because the others do not understand the state of its replies. If all that do are
// closed or denied, any lane has to do.
func (q *queue) bound(w *waiter) bool {
	own, others := false, false
	for _, l := range q.lanes {
		if l.closed == nil && l.denial == nil {
			own = own || l.Origin == w.origin
			others = others || l.Origin != w.origin
		}
	}
	return w.origin != "" && own && others
}

// blocked reports whether a request that any lane may start is waiting.
func (q *queue) blocked(now time.Time) bool {
	for _, w := range q.waiting[q.head:] {
		if !w.gone && !q.bound(w) && !w.held(now) {
			return true
		}
	}
	return false
}

func stoppedWaiting() error {
	return &assay.Fault{
		Kind:   assay.Interrupted,
		Detail: "the run was stopped while this turn waited for a limit or a pause",
	}
}

// paused reports whether the user has paused all open lanes.
func (q *queue) paused() bool {
	for _, l := range q.lanes {
		if l.closed == nil && !l.paused {
			return false
		}
	}
	return true
}

// longWait is longer than any wait for a limit per minute. Longer ones do not count against the queue
// limit.
const longWait = 2 * time.Minute

// heldUntil returns until when all open lanes are held, as far as is known now, or an earlier time
// if one is not. A lane is held while it is paused, is down, refuses requests, or has to wait long
// for a limit, such as one per day.
func (q *queue) heldUntil(now time.Time, c cost) (until time.Time) {
	for _, l := range q.lanes {
		if l.closed != nil {
			continue
		}
		at, why, full := l.start(now, c)
		switch {
		case why == userPause, why == refusal:
			at = now.Add(365 * day) // an event ends it
		case full, why != pausing && at.Sub(now) <= longWait:
			return now
		}
		until = earliest(until, at)
	}
	return until
}

// announced returns when the first lane may be asked again that has announced a wait to a request,
// or an earlier time if a lane has not.
func (q *queue) announced(w *waiter) (until time.Time) {
	for _, l := range q.lanes {
		if l.closed == nil {
			until = earliest(until, later(l.born, w.heldUntil(l)))
		}
	}
	return until
}

// stayed returns how long a request has waited up to the last booking, as the queue limit counts.
func (q *queue) stayed(w *waiter) time.Duration {
	return max(0, min(q.served-w.served, q.booked.Sub(later(w.since, w.announced))))
}

func (q *queue) refuseAll(err error) {
	for w := q.peek(); w != nil; w = q.peek() {
		w.leave(heldSlot{}, err)
	}
}

// soonest returns the open lane that can start a request first, and when. If
// several can start it at the same time, it returns the conversation's previous
// lane if possible, and otherwise the preferred one. The lane to avoid comes last.
func (q *queue) soonest(now time.Time, w *waiter, bound bool) (best *lane, at time.Time) {
	for _, l := range q.lanes {
		if l.closed != nil || bound && l.Origin != w.origin {
			continue
		}
		t, _, full := l.start(now, w.cost)
		if full {
			continue
		}
		t = later(t, w.heldUntil(l))
		if l.Name == w.lane && l.denial == nil && !t.After(now) {
			return l, t
		}
		better := best != nil && l.Name != w.avoid && (best.Name == w.avoid || l.preferred(best))
		if best == nil || t.Before(at) || t.Equal(at) && better {
			best, at = l, t
		}
	}
	return best, at
}

// preferred reports whether l is preferred to other if both can start a request
// at the same time. A lane with recent mistakes or denials is not preferred, because
// it is always free. Otherwise the lane with the smaller share of its width in use is.
func (l *lane) preferred(other *lane) bool {
	if bad := l.mistaken(); bad != other.mistaken() {
		return !bad
	}
	return l.inFlight*other.width() < other.inFlight*l.width()
}

// mistaken reports whether the latest first or later request was a mistake or denied.
func (l *lane) mistaken() bool { return l.mistakes[0]+l.mistakes[1] > 0 || l.denial != nil }

// room reports whether one more conversation could start now, with no request
// waiting before it. If not, it returns the latest time to ask again, or zero if
// only a release can change anything.
func (q *queue) room(now time.Time) (bool, time.Time) {
	q.turnedAway = true
	if q.blocked(now) {
		return false, time.Time{}
	}
	c := q.typical()
	places := 0
	var soonest time.Time
	for _, l := range q.lanes {
		if l.closed != nil {
			continue
		}
		n := l.room(now, c)
		places += n
		if n > 0 {
			continue
		}
		at, _, full := l.start(now, c)
		if !full {
			soonest = earliest(soonest, at)
		}
	}
	taken := float64(q.reserved) * q.asks.of
	q.turnedAway = float64(places) <= taken
	return !q.turnedAway, soonest
}

// release frees the slot of a request whose conversation has the given size, and returns by how much
// its estimated cost was wrong. The caller has to call dispatch afterwards.
func (q *queue) release(
	now time.Time, t heldSlot, bytes int, usage assay.Usage, quotas []assay.QuotaState,
	fault *assay.Fault,
) (by cost) {
	q.book(now)
	by = t.lane.release(now, t, usage, quotas, fault)
	if fault == nil {
		q.estimator.learn(bytes, usage)
	}
	return by
}

// closed returns the faults that closed the lanes, or nil if at least one lane is
// open.
func (q *queue) closed() error {
	var faults []error
	for _, l := range q.lanes {
		if l.closed == nil {
			return nil
		}
		faults = append(faults, l.closed)
	}
	first := assay.AsFault(errors.Join(faults...))
	if first == nil {
		return &assay.Fault{Kind: assay.NotFound, Detail: "model " + q.model + " has no lane"}
	}
	f := *first
	if len(faults) > 1 {
		f.Detail += fmt.Sprintf(" (and %d other lanes closed)", len(faults)-1)
	}
	return &f
}

// width returns how many requests the open lanes together may have in flight.
func (q *queue) width() int {
	n := 0
	for _, l := range q.lanes {
		if l.closed == nil {
			n += l.widest()
		}
	}
	return n
}

// estimator estimates the cost of a request from the usage of earlier ones, and how many requests
// to expect.
type estimator struct {
	perByte mean // prompt tokens per byte of the conversation
	reply   mean // tokens
	prompt  mean // tokens
	// asks is the share of conversations that send a request at all. Some agents never do.
	asks mean
}

// mean is a running mean over about the last hundred values.
type mean struct {
	of float64
	n  int
}

func (m *mean) add(x float64) {
	m.n++
	m.of += (x - m.of) / float64(min(m.n, 100))
}

func (m *mean) or(x float64) float64 {
	if m.n == 0 {
		return x
	}
	return m.of
}

// The estimates before the first reply: four bytes per token, and replies of 256
// tokens.
const (
	firstPerByte = 0.25
	firstReply   = 256
	firstPrompt  = 1000
	// firstAsks is how many conversations the assumption counts for that all send requests.
	firstAsks = 2
)

// estimate estimates the cost of a request from the size of its conversation.
func (e *estimator) estimate(bytes int) cost {
	input := ceil(float64(bytes) * e.perByte.or(firstPerByte))
	return cost{1, input, ceil(e.reply.or(firstReply))}
}

// typical returns the mean cost of a request.
func (e *estimator) typical() cost {
	return cost{1, ceil(e.prompt.or(firstPrompt)), ceil(e.reply.or(firstReply))}
}

func ceil(x float64) int { return int(math.Ceil(x)) }

func (e *estimator) learn(bytes int, u assay.Usage) {
	e.reply.add(float64(u.OutputTokens))
	e.prompt.add(float64(u.InputTokens))
	if bytes > 0 && u.InputTokens > 0 {
		e.perByte.add(float64(u.InputTokens) / float64(bytes))
	}
}
