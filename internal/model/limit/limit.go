// Package limit finds out which limits an endpoint has, from the requests it accepts and refuses.
//
// A refusal is evidence about which rule exists. It is not an order to slow down. The rules that an
// endpoint may have are a table, [kinds]: requests or tokens in a span of time, sliding or fixed,
// and requests in flight. A rule gives each request a level, for example the number of requests
// that were accepted in the minute before. It explains the refusals if every level that was
// accepted is below every level that was refused. If so, it is possible, otherwise it is refuted.
// It is confirmed if requests of two bursts were refused, and is then obeyed exactly.
//
// A [Limiter] belongs to one lane and is in one of five states:
//
//	        refused (doubt)       refused as well (wait)
//	Open ───────────────▶ Doubting ───────────▶ Waiting ◀──╮ probe refused
//	 ▲                        │                   │   ╰────╯
//	 │ next one not refused   │                   │ probe not refused (pass)
//	 │                        ▼                   ▼
//	 ╰────────────────── judge: which rules are confirmed?
//	                          │ some          │ none, after two bursts
//	                          ▼               ▼
//	                       Obeying          Pacing
//
// Obeying and Pacing turn to Doubting as Open does, and a judgement ends each of them.
//
//   - Doubting sends one request to find out whether a refusal was chance. The request counts as
//     accepted if it is not refused within three times the time that refusals take. So a refusal by
//     chance costs a lane a few hundredths of a second.
//   - Waiting sends one probe at a time: after half the time that the block has lasted, when one of
//     the rules would allow it, and when an announced wait ends.
//   - Obeying exceeds a rule with one request now and then (a challenge), because the rule may be wrong
//     and the limit may have been raised.
//   - Pacing sends requests evenly, at the rate that was accepted between refusals, and tries more
//     from time to time. It is for limits that no rule explains: token buckets, limits that move,
//     and limits that others use as well.
//
// The package owns the evidence and the rules. It does not know about queues, lanes or dollars, and
// it reads no clock: each method is given the time.
package limit

import "time"

// Amount is how much of each kind of limit a request uses.
type Amount struct{ Requests, Input, Output int }

func (a Amount) minus(b Amount) Amount {
	return Amount{a.Requests - b.Requests, a.Input - b.Input, a.Output - b.Output}
}

// State is the current activity of a limiter.
type State int

// The states of a limiter; see the package comment.
const (
	Open State = iota
	Doubting
	Waiting
	Obeying
	Pacing
)

func (s State) String() string {
	return [...]string{"open", "doubting", "waiting", "obeying", "pacing"}[s]
}

const (
	// tolerance is how much later requests may arrive than they were sent, if it is not known. It
	// is known from how long refusals take, but at most maxSlack, so that evidence is left.
	tolerance = 30 * time.Millisecond
	maxSlack  = 500 * time.Millisecond
)

// Limiter decides when a lane may send its next request. It is not safe for concurrent use.
//
// It is a function of its events alone: questions between them change nothing, so a block that ends by
// time ends then, whenever somebody asks. Inside, times are durations since the limiter was born.
type Limiter struct {
	born     time.Time
	latest   time.Duration // when it changed last; time never goes back behind that
	width    int           // requests that may be in flight
	most     int           // the largest width
	inFlight int
	crowded  bool // too many requests were in flight, and all still are
	named    int  // requests in flight that a refusal named as the limit, or 0

	log   log
	rules []*rule
	// epoch is the first request that counts as evidence. Earlier ones were sent before a limit
	// changed.
	epoch     uint64
	obeyed    []*obeyed
	joint     bool // the obeyed rules are several limits, not several explanations of one
	broken    broken
	challenge challenge
	pace      pace
	// unsettled is the time until which limits are tried more often, because they have moved.
	unsettled time.Duration

	block       block
	blocks      int           // blocks of this epoch whose first probe was refused
	firstBlock  time.Duration // when the first of them began
	passed      uint64        // the request that ended the latest block
	suspect     uint64        // the first refusal that the obeyed rules do not explain, or 0
	ramp        ramp
	chance      chance
	asked       Amount        // by the request that was sent last
	slowest     time.Duration // how long refusals have taken lately
	refusalTime time.Duration // how long a request may be refused; see the package comment

	sent, refused int           // requests in all
	hard          int           // blocks in all whose first probe was refused
	waits         time.Duration // the sum of all announced waits
}

// New returns the limiter of a lane that begins with first requests in flight. Each accepted one
// permits one more, up to most.
func New(now time.Time, first, most int) *Limiter {
	return &Limiter{
		born: now, most: most, width: min(first, most), refusalTime: minRefusalTime, rules: newRules(now),
		log: log{slack: tolerance},
	}
}

// Reset forgets the evidence and the rules. The requests in flight stay.
func (l *Limiter) Reset(now time.Time, first, most int) {
	flying, next := l.inFlight, l.log.next()
	*l = *New(now, first, most)
	l.inFlight, l.log.first = flying, next
}

const (
	never = time.Duration(1<<63 - 1)
	// No clock is believed to be further than farthest from where it began, and no announced wait is
	// longer than longestWait, so that sums of times stay within their type.
	farthest    = 50 * 365 * day
	longestWait = 365 * day
)

// at returns the limiter's time. It ends a block whose probe has not been refused for long enough, as
// of the moment when that was so.
func (l *Limiter) at(now time.Time) time.Duration {
	t := max(l.latest, min(farthest, now.Sub(l.born)))
	if r := l.probe(); r != nil {
		if due := max(l.latest, r.sent+l.refusalTime); due <= t {
			l.latest = due
			l.climb(due)
			l.pass(due, r)
			l.silence(due)
		}
	}
	return t
}

// begin begins an event and returns its time. Its end calls silence.
func (l *Limiter) begin(now time.Time) time.Duration {
	l.latest = l.at(now)
	l.climb(l.latest)
	return l.latest
}

// Next returns when the next request may be sent. It returns false if a reply has to come first.
func (l *Limiter) Next(now time.Time, a Amount) (at time.Time, ok bool) {
	t, ok := l.next(l.at(now), a)
	at = l.born.Add(t)
	if at.Before(now) {
		at = now
	}
	return at, ok
}

func (l *Limiter) next(now time.Duration, a Amount) (time.Duration, bool) {
	if l.inFlight >= l.width || l.crowded && l.inFlight > 0 {
		return 0, false
	}
	at := l.probing(now)
	if at > now || l.block.gate != Open {
		return at, true
	}

	switch l.state() {
	case Obeying:
		if at = l.permitted(now, a); at > now {
			at = min(at, l.nextChallenge(now, a, at))
			return at, at < never
		}
	case Pacing:
		return min(l.pace.next(now), l.nextTry(now, 0)), true
	}
	return l.ramped(now), true
}

// Send notes that a request is sent and returns its number.
func (l *Limiter) Send(now time.Time, a Amount) uint64 {
	t, state := l.begin(now), l.state()
	defer l.silence(t)
	l.asked = a
	r := request{sent: t, amount: a}
	r.permitted = len(l.obeyed) > 0 && l.permitted(t, a) <= t
	daring := state == Obeying && !r.permitted || state == Pacing && l.pace.next(t) > t
	l.sent++
	l.inFlight++
	sent := l.log.add(r)
	for _, o := range l.obeyed {
		o.add(sent)
	}
	switch {
	case daring:
		l.challenge.send(t, sent.number)
	case l.ramp.waits:
		l.ramp = ramp{on: true, began: t}
	case len(l.obeyed) == 0:
		l.pace.send(t)
	}
	return sent.number
}

// Accept notes that the endpoint accepted a request, and its actual use.
func (l *Limiter) Accept(now time.Time, n uint64, used Amount) {
	t := l.begin(now)
	defer l.silence(t)
	l.land()
	l.width = min(l.most, l.width+1)
	r := l.log.at(n)
	if r == nil {
		return
	}
	l.correct(r, Amount{0, used.Input - r.amount.Input, used.Output - r.amount.Output})
	r.fate, r.ended = accepted, t
	l.chance.accepted++
	l.challenge.since++
	if l.block.gate != Open && n > l.block.last {
		l.pass(t, r)
	}
	if l.challenge.is(n) {
		l.challenged(t, r)
	}
}

// Drop notes that a request ended without showing whether the endpoint accepted it.
func (l *Limiter) Drop(now time.Time, n uint64) {
	t := l.begin(now)
	defer l.silence(t)
	l.land()
	if r := l.log.at(n); r != nil {
		r.fate, r.ended = dropped, t
		l.challenge.cancel(n)
	}
}

// Cancel notes that a request was not sent after all.
func (l *Limiter) Cancel(now time.Time, n uint64) {
	defer l.silence(l.begin(now))
	l.land()
	if r := l.log.at(n); r != nil {
		l.sent--
		l.correct(r, Amount{}.minus(r.amount))
		r.fate, r.ended = dropped, r.sent
		l.challenge.cancel(n)
	}
}

// Refusal is an endpoint's answer to a request that it refused.
type Refusal struct {
	Wait time.Duration // 0 if not announced
	// Measure is the limited measure that the refusal names, or Unnamed.
	Measure Measure
	// Limit is the number of requests in flight that the refusal names, or 0.
	Limit int
}

// Refuse notes that the endpoint refused a request.
func (l *Limiter) Refuse(now time.Time, n uint64, why Refusal) {
	t := l.begin(now)
	defer l.silence(t)
	l.land()
	r := l.log.at(n)
	if r == nil {
		return
	}
	why.Wait = min(max(0, why.Wait), longestWait)
	l.refused++
	l.waits = min(l.waits, never-why.Wait) + why.Wait
	r.fate, r.ended, r.measure = refused, t, why.Measure
	for _, o := range l.obeyed {
		o.correct(r, Amount{}.minus(r.amount))
	}
	if len(l.obeyed) == 0 {
		l.pace.refuse(r.sent)
	}
	l.slowest = max(l.slowest*9/10, t-r.sent)
	l.refusalTime = min(maxRefusalTime, max(minRefusalTime, refusalFactor*l.slowest))
	l.log.slack = min(maxSlack, max(tolerance, l.slowest))

	switch {
	case l.challenge.is(n):
		l.challenged(t, r)
	case why.Measure == InFlight && l.inFlight > 0:
		l.crowd(r, why.Limit)
	case l.block.gate == Open && (n < l.passed || l.log.acceptedAfter(n)):
		// It belongs to a block that has ended, or was refused by chance.
		if n > l.passed {
			l.chance.refused++
		}
	case l.block.gate == Open && l.lucky(n):
		l.chance.refused++
	case l.block.gate == Open:
		l.breaks(t, r)
		l.doubt(t, r, why)
	case n < l.block.mark:
		l.block.last = max(l.block.last, n)
	default:
		l.wait(t, r, why)
	}
}

// land notes that a request in flight ended.
func (l *Limiter) land() { l.inFlight, l.crowded = l.inFlight-1, false }

// correct changes the recorded use of a request.
func (l *Limiter) correct(r *request, by Amount) {
	r.amount.Requests += by.Requests
	r.amount.Input += by.Input
	r.amount.Output += by.Output
	for _, o := range l.obeyed {
		o.correct(r, by)
	}
}

// State returns the state of the limiter.
func (l *Limiter) State(now time.Time) State {
	l.at(now)
	return l.state()
}

func (l *Limiter) state() State {
	switch {
	case l.block.gate != Open:
		return l.block.gate
	case len(l.obeyed) > 0:
		return Obeying
	case l.pace.rate > 0:
		return Pacing
	}
	return Open
}

// Doubts reports whether requests wait because others were refused a moment ago.
func (l *Limiter) Doubts(now time.Time) bool {
	l.at(now)
	return l.block.gate != Open
}

// Width returns how many requests may be in flight.
func (l *Limiter) Width() int {
	n := l.width
	for _, o := range l.obeyed {
		if o.measure == InFlight {
			n = min(n, o.limit)
		}
	}
	return n
}

// Room returns how many requests can be sent now at least, if one can.
func (l *Limiter) Room(now time.Time) int {
	if t := l.at(now); l.state() == Open && !l.climbs(t) {
		return l.width - l.inFlight
	}
	return 1
}
