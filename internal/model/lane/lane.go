// Package lane holds the limits of lanes and lets requests wait for them.
//
// A lane is one (deployment, key, model): the unit of a provider's limits. It
// counts requests in flight and requests and tokens in windows, learns limits
// that nobody stated, and pauses when its endpoint asks for it. A [Pool] serves
// a model from all its lanes: each request goes where it can start soonest, and
// waiting requests are served first come, first served. A lane's slot is held
// for one request, never across a backoff.
//
// All decisions are functions of the time that they are given, so that
// [Simulate] can make them in virtual time.
//
// The package does not know what a trial is, and no wire format.
package lane

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// Limits are what a lane may use. Zero means that none is stated: the lane
// then learns what its endpoint allows.
type Limits struct {
	Concurrency int `yaml:"concurrency" json:"concurrency,omitempty"`
	RPM         int `yaml:"rpm" json:"rpm,omitempty"`
	TPM         int `yaml:"tpm" json:"tpm,omitempty"`
	ITPM        int `yaml:"itpm" json:"itpm,omitempty"`
	OTPM        int `yaml:"otpm" json:"otpm,omitempty"`
	RPD         int `yaml:"rpd" json:"rpd,omitempty"`
}

// Buckets lists what a lane can have a limit of.
var Buckets = [...]assay.Bucket{
	assay.Concurrency, assay.Requests, assay.Tokens, assay.InputTokens, assay.OutputTokens, assay.RequestsPerDay,
}

// The places of buckets in [Buckets].
const (
	concurrency = iota
	requests
	tokens
	inputTokens
	outputTokens
	requestsPerDay
	numBuckets
)

// Of returns the limit of a bucket, nil for one that there is not.
func (l *Limits) Of(b assay.Bucket) *int {
	fields := [numBuckets]*int{&l.Concurrency, &l.RPM, &l.TPM, &l.ITPM, &l.OTPM, &l.RPD}
	for i, known := range Buckets {
		if b == known {
			return fields[i]
		}
	}
	return nil
}

// A lane whose concurrency is not stated begins with firstWidth requests in
// flight and finds out by doubling, up to widest.
const (
	firstWidth = 8
	widest     = 128
)

// Widest is how many requests may be in flight at most.
func (l Limits) Widest() int {
	if l.Concurrency > 0 {
		return l.Concurrency
	}
	return widest
}

// Price is in dollars per million tokens.
type Price struct {
	Input  float64 `yaml:"input" json:"input"`
	Output float64 `yaml:"output" json:"output"`
}

// Of is the price of so many tokens, in dollars.
func (p Price) Of(u assay.Usage) float64 {
	return (float64(u.InputTokens)*p.Input + float64(u.OutputTokens)*p.Output) / 1e6
}

// Config describes one lane.
type Config struct {
	// Name is provider/key/deployment, as people see it.
	Name     string
	Provider assay.Provider
	Limits   Limits
	// Learned are limits that an earlier run learned: where none is stated,
	// the lane starts from them.
	Learned Limits
	// Spent tells when the requests of the last day were made, oldest first;
	// it matters to a limit per day.
	Spent []Spent
	Price Price
	// Orders is what the lane asks its endpoint for. Serves are further names
	// by which the endpoint may call the model that answers.
	Orders string
	Serves []string
}

// Spent is a number of requests that were made at some time.
type Spent struct {
	At       time.Time
	Requests int
}

// Constants of a lane's behaviour when it is in trouble.
const (
	// After breakAfter faults in a row the lane pauses, and after more where
	// faults are frequent and so many in a row may be bad luck.
	breakAfter, breakAfterMost = 5, 10
	// firstPause doubles with each pause in a row, up to longestPause.
	firstPause   = 5 * time.Second
	longestPause = 5 * time.Minute
	// closeAfter pauses in a row the lane is given up for the run: an outage
	// of ten minutes. One that never worked is given up after half a minute,
	// for its address or name is more likely wrong.
	closeAfter      = 6
	closeAfterNever = 3
	// mistakenAfter answers in a row that tell of a mistake in the files, a
	// refused request or another model's name, close a lane that never worked,
	// and mistakenAfterWorking one that did: all others would be paid for in
	// vain.
	mistakenAfter        = 5
	mistakenAfterWorking = 50
	// longestRetryAfter is the longest wait that an endpoint can ask for; one
	// that asks for more is closed for the run.
	longestRetryAfter = 15 * time.Minute
	// A lane that has refused everything for so long is given up.
	patience = 10 * time.Minute
	// A refusal is believed at once when it asks for a longer wait than
	// shortWait; else believeAfter of them in a row are, and fewer on a narrow
	// lane or one that was never seen to refuse by chance.
	shortWait    = 2 * time.Second
	believeAfter = 8
	// A lane where more than this share of requests is refused by chance is
	// too busy, whatever the endpoint's limits are.
	busyShare = 0.15
)

// lane is the state of one lane. It is guarded by its pool's mutex.
type lane struct {
	Config
	born     time.Time
	inFlight int
	since    map[uint64]time.Time // starts of requests in flight, by number
	minute   window
	day      window
	// Indexed as Buckets.
	stated  [numBuckets]int
	learned [numBuckets]governor
	foreign [numBuckets]foreign
	// withheld is what the endpoint holds back for each request in flight, beyond
	// our estimate of it; many reserve a reply's whole max_tokens.
	withheld [numBuckets]float64
	// spacing is the least time between two requests; an endpoint that refuses
	// bursts within its limit gets them evenly.
	spacing time.Duration
	latest  time.Time // start of the latest request

	paused      bool // by the user
	pausedSince time.Time
	pausedUntil time.Time
	pauseReason string
	closed      *assay.Fault

	history history
	// Refusals and faults that were chance, as a success that followed showed;
	// those in doubt have not been followed by one yet.
	refusals, faults               share
	refusalsInDoubt, faultsInDoubt int

	belief *belief
	// calm counts successes since the latest burst of refusals, and doubted
	// says that nothing was learned from that: it may have been chance.
	calm    int
	doubted bool
	// narrowed is what was known of the width before it was cut on suspicion.
	narrowed *governor
	// suspected is the limit that the latest burst of refusals was put down to.
	suspected   int
	cutAt       time.Time
	worked      bool
	mistakes    int // refused requests and other models' answers in a row
	pausesInRow int
	// limitedRow counts bursts of refusals in a row, since refusedSince.
	limitedRow   int
	refusedSince time.Time

	used, available, inUse time.Duration // of slots, up to the last booking
	waited                 map[string]time.Duration
	served                 cost
}

// foreign is what an endpoint has counted and we have not, with none of our
// requests in flight: the key has other users.
type foreign struct {
	amount int
	until  time.Time
}

// belief is what a lane did because of a refusal that may have been chance. If
// most of the requests that were sent later, and before the lane reacted,
// succeed, it was.
type belief struct {
	after, before uint64 // numbers of these requests
	refused, good int    // of them
	learned       [numBuckets]governor
	pausedUntil   time.Time
}

// about reports whether a request tells whether the belief is right.
func (b *belief) about(number uint64) bool {
	return b != nil && number > b.after && number < b.before
}

func newLane(now time.Time, c Config) *lane {
	l := &lane{
		Config: c, born: now, since: make(map[uint64]time.Time),
		minute: window{span: windowSpan}, day: window{span: daySpan, grain: time.Minute},
		waited: make(map[string]time.Duration), history: newHistory(max(c.Limits.Concurrency, widest)),
		calm: math.MaxInt,
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

// limit is what holds now for a bucket, 0 for none: the lower of what the user
// stated and what was learned.
func (l *lane) limit(bucket int) int {
	stated, learned := l.stated[bucket], l.learned[bucket].limit
	if stated <= 0 || learned > 0 && learned < stated {
		return learned
	}
	return stated
}

// width is how many requests the lane may have in flight. After a pause for
// faults a single one probes.
func (l *lane) width() int {
	if l.pausesInRow > 0 {
		return 1
	}
	return l.limit(concurrency)
}

// window returns where a bucket is counted.
func (l *lane) window(bucket int) *window {
	if bucket == requestsPerDay {
		return &l.day
	}
	return &l.minute
}

// A reason is what a request waits for: one of [Buckets] by its place, or one
// of these.
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

// start returns when a request can start, and what it waits for. Full says
// that the time is unknown: a request in flight has to end, or the user has to
// let the lane go on.
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
		w, weight := l.window(b), c.in(b)+ceil(margin*l.withheld[b]*float64(l.inFlight+1))
		later(w.free(now, b, weight, limit), reason(b))
		if f := l.foreign[b]; f.amount > 0 && f.until.After(now) && w.sum.in(b)+f.amount+weight > limit {
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

// room is how many requests of a cost could start now.
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

// wanted notes that a request had to wait for a limit, which a learned one has
// to know before it grows.
func (l *lane) wanted(r reason) {
	if r >= 0 && r < numBuckets {
		l.learned[r].bound = true
	}
}

// ticket is a request's hold on a lane.
type ticket struct {
	lane        *lane
	number      uint64
	minute, day int // entries in the windows
	estimate    cost
	started     time.Time
}

func (l *lane) take(now time.Time, c cost) ticket {
	l.inFlight++
	l.latest = now
	t := ticket{lane: l, number: l.history.sent(), minute: l.minute.add(now, c), estimate: c, started: now}
	if l.limit(requestsPerDay) > 0 {
		t.day = l.day.add(now, cost{requests: 1})
	} else {
		t.day = -1
	}
	l.since[t.number] = now
	return t
}

func (l *lane) letGo(t ticket) {
	l.inFlight--
	delete(l.since, t.number)
}

// uncount takes a request out of the windows.
func (l *lane) uncount(t ticket) {
	l.minute.correct(t.minute, cost{}.plus(t.estimate, -1))
	if t.day >= 0 {
		l.day.correct(t.day, cost{requests: -1})
	}
}

// giveBack undoes take: nothing was sent.
func (l *lane) giveBack(t ticket) {
	l.letGo(t)
	l.history.mark(t.number, good)
	l.uncount(t)
}

// settle replaces the estimate of what a request took.
func (l *lane) settle(t ticket, real cost) {
	l.minute.correct(t.minute, real.plus(t.estimate, -1))
	l.served = l.served.plus(real, 1)
}

// release frees the slot and learns from how the request went.
func (l *lane) release(now time.Time, t ticket, usage assay.Usage, quotas []assay.QuotaState, fault *assay.Fault) {
	l.letGo(t)
	isRefusal := fault != nil && (fault.Kind == assay.RateLimited || fault.Kind == assay.Overloaded && fault.RetryAfter > 0)
	switch {
	case usage.Total() > 0:
		l.settle(t, cost{1, usage.InputTokens, usage.OutputTokens})
	case isRefusal:
		l.uncount(t)
	case fault != nil && fault.Kind != assay.Timeout:
		l.settle(t, cost{requests: 1}) // broken: nothing was generated
	default:
		l.served.requests++ // what it took is not known: the estimate stays
	}
	l.heed(now, quotas)
	switch {
	case fault == nil:
		l.succeeded(now, t)
	case fault.Kind.ClosesLane():
		l.shut(fault)
	case isRefusal:
		l.refused(now, t, fault)
	case fault.Kind.Retryable():
		l.faulted(now, t, fault)
	default:
		l.history.mark(t.number, good) // the lane did its part
		if fault.Kind == assay.BadRequest || fault.Kind == assay.Identity {
			l.mistaken(fault)
		}
	}
}

func (l *lane) succeeded(now time.Time, t ticket) {
	l.worked = true
	l.pausesInRow, l.limitedRow, l.mistakes = 0, 0, 0
	l.history.mark(t.number, good)
	l.refusals.chance(&l.refusalsInDoubt)
	l.faults.chance(&l.faultsInDoubt)
	if l.calm < math.MaxInt {
		l.calm++
	}
	if l.doubted && l.isCalm() {
		l.doubted = false
		l.refusals.count(true)
	}
	if b := l.belief; b.about(t.number) {
		if b.good++; b.good >= 3*(b.refused+1) {
			l.recant()
		}
	}
	for i := range l.learned {
		most := l.stated[i]
		if i == concurrency && most == 0 {
			most = widest
		}
		l.learned[i].succeeded(now, most)
	}
}

func (l *lane) mistaken(fault *assay.Fault) {
	l.mistakes++
	if !l.worked && l.mistakes >= mistakenAfter || l.mistakes >= mistakenAfterWorking {
		l.shut(fault)
	}
}

// oldNews reports whether a request was sent before the latest pause began:
// what befell it is the trouble that the pause is for.
func (l *lane) oldNews(t ticket) bool {
	return !l.pausedSince.IsZero() && !t.started.After(l.pausedSince)
}

func (l *lane) faulted(now time.Time, t ticket, fault *assay.Fault) {
	l.history.mark(t.number, broken)
	needed := tooMany(l.faults.of, breakAfter, breakAfterMost)
	l.faultsInDoubt++
	if l.pausesInRow > 0 && l.oldNews(t) {
		return
	}
	if l.pausesInRow == 0 && l.history.row(t.number, broken, needed) < needed {
		return
	}
	if l.pausesInRow >= closeAfter || !l.worked && l.pausesInRow >= closeAfterNever {
		l.shut(fault)
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

func (l *lane) shut(fault *assay.Fault) {
	if l.closed == nil {
		l.closed = fault
	}
}

// knows reports whether a response may name this model. Beside the lane's own
// names a name with a date behind it counts, as gpt-4o-mini-2024-07-18 for
// gpt-4o-mini: that is how OpenAI names the snapshot behind an alias.
func (l *lane) knows(served string) bool {
	return Matches(l.Orders, served) || slices.ContainsFunc(l.Serves, func(name string) bool { return Matches(name, served) })
}

// Matches reports whether served is a name of the model of that name.
func Matches(name, served string) bool {
	if strings.EqualFold(name, served) {
		return true
	}
	if len(served) != len(name)+len("-2006-01-02") || !strings.EqualFold(served[:len(name)], name) {
		return false
	}
	_, err := time.Parse("-2006-01-02", served[len(name):])
	return err == nil
}

// jitter returns a random duration between half of d and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
