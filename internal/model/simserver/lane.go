package simserver

import (
	"sync"
	"time"
)

// keyTraffic is the traffic of one key on one deployment. Its windows slide, so the
// limits hold in any span of time.
type keyTraffic struct {
	concurrency int    // maximum of inFlight, or 0 for no limit
	style       string // of the limit headers

	mu       sync.Mutex
	inFlight int               // guarded by mu, like the fields below
	buckets  []bucket          // with limits
	entries  []admittedRequest // within the span of any bucket, oldest first
	gone     int               // number of entries removed so far
	counts   LaneStats
}

// bucket is a limit of a lane in any span of time.
type bucket struct {
	name    string              // as in OpenAI's error messages
	unit    string              // "requests" or "tokens"
	family  string              // of headers
	limit   int                 // above 0
	span    time.Duration       // how long an entry counts
	count   func(tokenCost) int // amount of an entry
	headers headers             // report the state of the bucket

	used  int // sum over the entries within the span
	first int // number of the oldest of these entries
}

// tokenCost is the cost of a request in tokens.
type tokenCost struct{ prompt, reply int }

func (c tokenCost) request() int { return 1 }
func (c tokenCost) total() int   { return c.prompt + c.reply }
func (c tokenCost) input() int   { return c.prompt }
func (c tokenCost) output() int  { return c.reply }

// admittedRequest is an admitted request.
type admittedRequest struct {
	at time.Time
	tokenCost
}

// ticket admits one request. Its holder calls done once, whatever the result.
type ticket struct {
	lane   *keyTraffic
	number int // of the entry, counted from the lane's first one
}

// denial describes the limit that a request exceeds, and how long to wait.
type denial struct {
	name      string // a bucket's name, or "concurrent requests"
	unit      string // "requests" or "tokens"
	limit     int
	used      int
	requested int
	wait      time.Duration
}

func newLane(l Limit, style string) *keyTraffic {
	const day = 24 * time.Hour
	all := []bucket{
		{
			name: "requests per min (RPM)", unit: "requests", family: "Requests",
			limit: l.RPM, span: time.Minute, count: tokenCost.request,
		},
		{
			name: "requests per day (RPD)", unit: "requests", family: "Requests",
			limit: l.RPD, span: day, count: tokenCost.request,
		},
		{
			name: "tokens per min (TPM)", unit: "tokens", family: "Tokens",
			limit: l.TPM, span: time.Minute, count: tokenCost.total,
		},
		{
			name: "input tokens per min (ITPM)", unit: "tokens", family: "Input-Tokens",
			limit: l.ITPM, span: time.Minute, count: tokenCost.input,
		},
		{
			name: "output tokens per min (OTPM)", unit: "tokens", family: "Output-Tokens",
			limit: l.OTPM, span: time.Minute, count: tokenCost.output,
		},
	}
	lane := &keyTraffic{concurrency: l.Concurrency, style: style}
	reported := make(map[string]bool) // a family reports its first bucket
	for _, b := range all {
		if b.limit == 0 {
			continue
		}
		if !reported[b.family] {
			b.headers = headersOf(style, b.family)
		}
		reported[b.family] = true
		lane.buckets = append(lane.buckets, b)
	}
	return lane
}

// admit admits a request and reserves its cost, or returns a denial. A denied
// request does not count against any limit.
func (l *keyTraffic) admit(now time.Time, reserve tokenCost) (ticket, *denial) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expireLocked(now)
	if d := l.denyLocked(now, reserve); d != nil {
		l.counts.Denied++
		return ticket{}, d
	}
	l.inFlight++
	l.counts.Requests++
	if len(l.buckets) == 0 {
		return ticket{lane: l}, nil
	}
	if n := len(l.entries); n > 0 && now.Before(l.entries[n-1].at) {
		now = l.entries[n-1].at // another request took the lock in between
	}
	l.entries = append(l.entries, admittedRequest{now, reserve})
	for i := range l.buckets {
		l.buckets[i].used += l.buckets[i].count(reserve)
	}
	return ticket{l, l.gone + len(l.entries) - 1}, nil
}

// denyLocked returns the denial with the longest wait, or nil without a denial.
func (l *keyTraffic) denyLocked(now time.Time, reserve tokenCost) *denial {
	var deny *denial
	for i := range l.buckets {
		b := &l.buckets[i]
		requested := b.count(reserve)
		if b.used+requested <= b.limit {
			continue
		}
		wait := l.waitLocked(b, now, requested)
		if deny == nil || wait > deny.wait {
			deny = &denial{b.name, b.unit, b.limit, b.used, requested, wait}
		}
	}
	if deny == nil && l.concurrency > 0 && l.inFlight >= l.concurrency {
		deny = &denial{"concurrent requests", "requests", l.concurrency, l.inFlight, 1, time.Second}
	}
	return deny
}

// waitLocked returns the time until enough entries have left b. If the request is
// larger than the limit and so never fits, it returns the whole span.
func (l *keyTraffic) waitLocked(b *bucket, now time.Time, requested int) time.Duration {
	left := b.used
	for _, e := range l.entries[b.first-l.gone:] {
		left -= b.count(e.tokenCost)
		if left+requested <= b.limit {
			return e.at.Add(b.span).Sub(now)
		}
	}
	return b.span
}

// expireLocked removes old entries from each bucket, and drops entries that are
// not in any bucket.
func (l *keyTraffic) expireLocked(now time.Time) {
	end := l.gone + len(l.entries)
	oldest := end
	for i := range l.buckets {
		b := &l.buckets[i]
		for ; b.first < end; b.first++ {
			e := &l.entries[b.first-l.gone]
			if now.Sub(e.at) < b.span {
				break
			}
			b.used -= b.count(e.tokenCost)
		}
		oldest = min(oldest, b.first)
	}
	l.entries = l.entries[oldest-l.gone:]
	l.gone = oldest
}

// done removes the request from the requests in flight and records its real cost.
func (t ticket) done(used tokenCost) {
	l := t.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	l.counts.Tokens += int64(used.total())
	if len(l.buckets) == 0 || t.number < l.gone {
		return
	}
	e := &l.entries[t.number-l.gone]
	for i := range l.buckets {
		if b := &l.buckets[i]; t.number >= b.first {
			b.used += b.count(used) - b.count(e.tokenCost)
		}
	}
	e.tokenCost = used
}

// stats returns the lane's counts. The caller sets the key and the deployment.
func (l *keyTraffic) stats() LaneStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}
