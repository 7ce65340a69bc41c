package simserver

import (
	"sync"
	"time"
)

// A lane is the traffic of one key on one deployment. Its windows slide: what
// it lets through in any span of time is within the limit.
type lane struct {
	concurrency int    // bounds inFlight, unless 0
	style       string // of the headers that tell the limits

	mu       sync.Mutex
	inFlight int      // guarded by mu, as all below
	buckets  []bucket // only those with a limit
	entries  []entry  // oldest first, those within the span of any bucket
	gone     int      // how many entries have left
	counts   LaneStats
}

// A bucket bounds what a lane lets through in any span of time.
type bucket struct {
	name    string         // as OpenAI's denials have it
	unit    string         // "requests" or "tokens"
	family  string         // of headers
	limit   int            // above 0
	span    time.Duration  // how long an entry counts
	count   func(cost) int // what an entry counts
	headers headers        // that tell where the bucket stands

	used  int // sum over the entries within the span
	first int // number of the oldest of them, over the lane's life
}

// A cost is what a request takes, in tokens.
type cost struct{ prompt, reply int }

func (c cost) request() int { return 1 }
func (c cost) total() int   { return c.prompt + c.reply }
func (c cost) input() int   { return c.prompt }
func (c cost) output() int  { return c.reply }

// An entry is a request that was let through.
type entry struct {
	at time.Time
	cost
}

// A ticket is the right to one request. Its holder calls done once,
// whatever came of the request.
type ticket struct {
	lane   *lane
	number int // of the entry, over the lane's life
}

// A denial says why a request is over its limit and when to come again.
type denial struct {
	what  string // a bucket's name, or "concurrent requests"
	unit  string // "requests" or "tokens"
	limit int
	used  int
	asked int
	wait  time.Duration
}

func newLane(l Limit, style string) *lane {
	const day = 24 * time.Hour
	all := []bucket{
		{name: "requests per min (RPM)", unit: "requests", family: "Requests", limit: l.RPM, span: time.Minute, count: cost.request},
		{name: "requests per day (RPD)", unit: "requests", family: "Requests", limit: l.RPD, span: day, count: cost.request},
		{name: "tokens per min (TPM)", unit: "tokens", family: "Tokens", limit: l.TPM, span: time.Minute, count: cost.total},
		{name: "input tokens per min (ITPM)", unit: "tokens", family: "Input-Tokens", limit: l.ITPM, span: time.Minute, count: cost.input},
		{name: "output tokens per min (OTPM)", unit: "tokens", family: "Output-Tokens", limit: l.OTPM, span: time.Minute, count: cost.output},
	}
	lane := &lane{concurrency: l.Concurrency, style: style}
	told := make(map[string]bool) // a family tells of its first bucket
	for _, b := range all {
		if b.limit == 0 {
			continue
		}
		if !told[b.family] {
			b.headers = headersOf(style, b.family)
		}
		told[b.family] = true
		lane.buckets = append(lane.buckets, b)
	}
	return lane
}

// admit lets a request through that reserves a cost, or says why not. A
// request that is not let through counts against nothing.
func (l *lane) admit(now time.Time, reserve cost) (ticket, *denial) {
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
		now = l.entries[n-1].at // another request was faster from the clock to the lock
	}
	l.entries = append(l.entries, entry{now, reserve})
	for i := range l.buckets {
		l.buckets[i].used += l.buckets[i].count(reserve)
	}
	return ticket{l, l.gone + len(l.entries) - 1}, nil
}

// denyLocked returns the denial with the longest wait, nil for none.
func (l *lane) denyLocked(now time.Time, reserve cost) *denial {
	var deny *denial
	for i := range l.buckets {
		b := &l.buckets[i]
		asked := b.count(reserve)
		if b.used+asked <= b.limit {
			continue
		}
		wait := l.waitLocked(b, now, asked)
		if deny == nil || wait > deny.wait {
			deny = &denial{b.name, b.unit, b.limit, b.used, asked, wait}
		}
	}
	if deny == nil && l.concurrency > 0 && l.inFlight >= l.concurrency {
		deny = &denial{"concurrent requests", "requests", l.concurrency, l.inFlight, 1, time.Second}
	}
	return deny
}

// waitLocked is the time until enough entries have left b. A request that is
// larger than the limit never fits; it is told the whole span.
func (l *lane) waitLocked(b *bucket, now time.Time, asked int) time.Duration {
	left := b.used
	for _, e := range l.entries[b.first-l.gone:] {
		left -= b.count(e.cost)
		if left+asked <= b.limit {
			return e.at.Add(b.span).Sub(now)
		}
	}
	return b.span
}

// expireLocked takes the entries that are too old out of each bucket, and
// drops those that are in none.
func (l *lane) expireLocked(now time.Time) {
	end := l.gone + len(l.entries)
	oldest := end
	for i := range l.buckets {
		b := &l.buckets[i]
		for ; b.first < end; b.first++ {
			e := &l.entries[b.first-l.gone]
			if now.Sub(e.at) < b.span {
				break
			}
			b.used -= b.count(e.cost)
		}
		oldest = min(oldest, b.first)
	}
	l.entries = l.entries[oldest-l.gone:]
	l.gone = oldest
}

// done takes the request, which took used, out of those in flight.
func (t ticket) done(used cost) {
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
			b.used += b.count(used) - b.count(e.cost)
		}
	}
	e.cost = used
}

// stats returns what the lane has seen; whose it is, the caller knows.
func (l *lane) stats() LaneStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}
