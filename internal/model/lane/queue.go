package lane

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/assay-eval/assay"
)

// A queue is a model's lanes and the requests that wait for them. It decides
// who starts where and when, and never looks at a clock. It is not safe for
// concurrent use.
type queue struct {
	model   string
	lanes   []*lane
	waiting []*waiter // waiting[head:], first come first served
	head    int
	// reserved places belong to conversations that were let in and have not
	// asked yet.
	reserved int
	// turnedAway says that a conversation was not let in, and has to be told
	// when there is room.
	turnedAway bool
	// refusing says that nobody may wait for a limit or a pause any more.
	refusing bool

	estimator
	ledger
}

// waiter is one request in the queue.
type waiter struct {
	// bytes is the size of its conversation, from which its cost is guessed
	// when it is its turn; if 0, cost is known.
	bytes int
	cost  cost
	// lane is where the conversation was, "" at its start.
	lane  string
	since time.Time
	// answer gets a ticket, or why there will be none. It is called once and
	// must not block.
	answer func(ticket, error)
	gone   bool
}

func newQueue(now time.Time, model string, lanes []Config) *queue {
	q := &queue{model: model}
	q.ledger.demand = true
	for _, c := range lanes {
		q.lanes = append(q.lanes, newLane(now, c))
	}
	return q
}

// enqueue appends a request. Dispatch has to follow.
func (q *queue) enqueue(now time.Time, w *waiter) {
	q.book(now)
	w.since = now
	q.waiting = append(q.waiting, w)
}

// peek returns who is next, nil for nobody.
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

// depth is how many requests wait.
func (q *queue) depth() int {
	n := 0
	for _, w := range q.waiting[q.head:] {
		if !w.gone {
			n++
		}
	}
	return n
}

// dispatch grants slots to the head of the queue as long as a lane can start
// it now. It returns when to call again at the latest, zero where only a
// release can change anything.
func (q *queue) dispatch(now time.Time) time.Time {
	q.book(now)
	for w := q.peek(); w != nil; w = q.peek() {
		if err := q.closed(); err != nil {
			q.refuseAll(err)
			break
		}
		if w.bytes > 0 {
			w.cost = q.estimate(w.bytes)
		}
		best, at := q.soonest(now, w.cost, w.lane)
		switch {
		case best == nil && q.refusing && q.paused():
			q.refuseAll(stoppedWaiting())
		case best == nil:
			return time.Time{}
		case at.After(now) && q.refusing:
			q.refuseAll(stoppedWaiting())
		case at.After(now):
			return at
		default:
			q.pop()
			w.answer(best.take(now, w.cost), nil)
		}
	}
	return time.Time{}
}

func stoppedWaiting() error {
	return &assay.Fault{Kind: assay.Interrupted, Detail: "the run was stopped while this turn waited for a limit or a pause"}
}

// paused reports whether the user has paused every lane that is open.
func (q *queue) paused() bool {
	for _, l := range q.lanes {
		if l.closed == nil && !l.paused {
			return false
		}
	}
	return true
}

func (q *queue) refuseAll(err error) {
	for w := q.peek(); w != nil; w = q.peek() {
		q.pop()
		w.answer(ticket{}, err)
	}
}

// soonest returns the open lane that can start a request first: where the
// conversation was, if that costs nothing, else the lane with the smallest
// share of its width in use.
func (q *queue) soonest(now time.Time, c cost, home string) (best *lane, at time.Time) {
	for _, l := range q.lanes {
		if l.closed != nil {
			continue
		}
		t, why, full := l.start(now, c)
		if full || t.After(now) {
			l.wanted(why)
		}
		if full {
			continue
		}
		if l.Name == home && !t.After(now) {
			return l, t
		}
		if best == nil || t.Before(at) || t.Equal(at) && l.rather(best) {
			best, at = l, t
		}
	}
	return best, at
}

// rather reports whether a request had rather go to l than to other, when both
// can start it at the same time: not where requests came to nothing lately, for
// such a lane is always free, and else where there is more room.
func (l *lane) rather(other *lane) bool {
	if bad := l.mistakes > 0; bad != (other.mistakes > 0) {
		return !bad
	}
	return l.inFlight*other.width() < other.inFlight*l.width()
}

// room reports whether one more conversation could start now, with nobody
// waiting before it; if not, when to ask again at the latest, zero where only
// a release can change anything.
func (q *queue) room(now time.Time) (bool, time.Time) {
	q.turnedAway = true
	if q.peek() != nil {
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
		at, why, full := l.start(now, c)
		l.wanted(why)
		if !full && (soonest.IsZero() || at.Before(soonest)) {
			soonest = at
		}
	}
	q.turnedAway = places <= q.reserved
	return !q.turnedAway, soonest
}

// release frees the slot of a request whose conversation had so many bytes.
// Dispatch has to follow.
func (q *queue) release(now time.Time, t ticket, bytes int, resp assay.Response, fault *assay.Fault) {
	q.book(now)
	t.lane.release(now, t, resp.Usage, resp.Quotas, fault)
	if fault == nil {
		q.estimator.learn(bytes, resp.Usage)
	}
}

// closed returns why the model can be served no more: the faults that closed
// its lanes, nil as long as one is open.
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

// width is how many requests the open lanes may have in flight together.
func (q *queue) width() int {
	n := 0
	for _, l := range q.lanes {
		if l.closed == nil {
			n += l.limit(concurrency)
		}
	}
	return n
}

// An estimator guesses what a request will take, from what earlier ones took.
type estimator struct {
	perByte mean // tokens of a prompt for each byte of its conversation
	reply   mean
	prompt  mean
}

// mean is a running mean that weighs the last hundred values most.
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

// Before the first reply, a token is taken for four bytes, and a reply for 256
// tokens.
const (
	firstPerByte = 0.25
	firstReply   = 256
	firstPrompt  = 1000
)

// estimate guesses the cost of a request whose conversation has so many bytes.
func (e *estimator) estimate(bytes int) cost {
	return cost{1, ceil(float64(bytes) * e.perByte.or(firstPerByte)), ceil(e.reply.or(firstReply))}
}

// typical is the cost of a request that is not known yet.
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
