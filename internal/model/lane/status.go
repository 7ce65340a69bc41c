package lane

import (
	"time"

	"github.com/assay-eval/assay"
)

// Status is the state of one lane at one moment.
type Status struct {
	Name     string
	InFlight int
	Width    int
	// Oldest is the start of the oldest request in flight, or zero.
	Oldest time.Time
	// Waits names the cause for which the next request would wait: a bucket or the reason of a
	// pause. It starts with "closed" if the lane is closed, and is empty if a request could start
	// now.
	Waits string
	// Until is when the next request could start, or zero if that is unknown.
	Until  time.Time
	Closed *assay.Fault
	// Denial is the refusal of the key or the deployment if no request has worked since.
	Denial *assay.Fault
	Held   bool // paused by the user
	// Words are the endpoint's own words about a pause.
	Words string
	// Limits are the stated limits, 0 for a limit that is not stated, and the current width.
	// Learned are the limits that refusals have taught, and Found describes them with their
	// evidence; see [limit.Limiter.Words].
	Limits, Learned Limits
	Found           string
}

// Refused reports whether the endpoint was too busy for the request.
func (x Exchange) Refused() bool { return isRefusal(x.Usage(), x.Fault) }

// Waiting describes the requests waiting for a lane.
type Waiting struct {
	Requests int
	Since    time.Time // start of the longest wait, or zero
	// Until is when the last of the waits that lanes have announced to these requests ends, or zero.
	Until time.Time
}

// Status returns the state of all lanes and of the queue.
func (p *Pool) Status() ([]Status, Waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var lanes []Status
	for _, l := range p.q.lanes {
		s := l.status(now, p.q.typical())
		if until := p.q.heldAt(l, now); s.Waits == "" && !until.IsZero() {
			s.Waits, s.Until, s.Words = "the wait that the endpoint announced", until, l.words
		}
		lanes = append(lanes, s)
	}
	w := Waiting{Requests: p.q.depth()}
	if first := p.q.peek(); first != nil {
		w.Since = first.since
	}
	for _, request := range p.q.waiting[p.q.head:] {
		if !request.gone && request.held(now) {
			w.Until = later(w.Until, p.q.announced(request))
		}
	}
	return lanes, w
}

// DailyWait returns how long the daily limits that are stated let a number of further requests take
// at least. Lanes share them by their limits.
func (p *Pool) DailyWait(requests int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.dailyWait(requests)
}

func (q *queue) dailyWait(requests int) (wait time.Duration) {
	var open []*lane
	sum := 0
	for _, l := range q.lanes {
		if l.closed != nil || l.paused {
			continue
		}
		if l.stated[requestsPerDay] <= 0 {
			return 0
		}
		open, sum = append(open, l), sum+l.stated[requestsPerDay]
	}
	now := time.Now()
	for _, l := range open {
		limit := l.stated[requestsPerDay]
		mine := (requests*limit + sum - 1) / sum
		if mine == 0 {
			continue
		}
		w := &l.windows[requestsPerDay]
		days := (mine - 1) / limit
		rest := w.free(now, requestsPerDay, mine-days*limit, limit).Sub(now)
		wait = max(wait, time.Duration(days)*w.span+rest)
	}
	return wait
}

func (l *lane) status(now time.Time, typical cost) Status {
	s := Status{
		Name: l.Name, InFlight: l.inFlight, Width: l.widest(),
		Closed: l.closed, Denial: l.denial, Held: l.paused, Limits: l.limits(), Learned: l.learned(),
		Found: l.limiter.Words(),
	}
	for _, t := range l.since {
		if s.Oldest.IsZero() || t.Before(s.Oldest) {
			s.Oldest = t
		}
	}
	at, why, full := l.start(now, typical)
	switch {
	case l.closed != nil:
		s.Waits = "closed: " + l.closed.Error()
	case full:
		s.Waits = l.name(why)
		if !l.paused && at.After(now) {
			s.Until = at
		}
	case at.After(now):
		s.Waits, s.Until = l.name(why), at
	}
	switch why {
	case pausing:
		s.Words = l.pauseWords
	case refusal:
		s.Words = l.words
	}
	return s
}

// Hold pauses the lanes for which match returns true until it is called again
// with hold false. It returns the lanes' names.
func (p *Pool) Hold(hold bool, match func(lane string) bool) (names []string) {
	p.change(func(now time.Time) {
		for _, l := range p.q.lanes {
			if match(l.Name) {
				l.hold(now, hold)
				names = append(names, l.Name)
			}
		}
	})
	return names
}

// hold pauses or resumes a lane. Paused time does not count as time in which its endpoint failed or
// refused.
func (l *lane) hold(now time.Time, hold bool) {
	switch {
	case hold && !l.paused:
		l.heldSince = now
	case !hold && l.paused:
		for _, t := range []*time.Time{
			&l.refusedSince, &l.failingSince, &l.mistakenSince[0], &l.mistakenSince[1],
		} {
			if !t.IsZero() {
				*t = t.Add(now.Sub(later(l.heldSince, *t)))
			}
		}
	}
	l.paused = hold
}

// SetLimits replaces the stated limits of each bucket in set, on the lanes for
// which match returns true. 0 means that no limit is stated. Limits learned for
// these buckets are forgotten. SetLimits returns the lanes' names.
func (p *Pool) SetLimits(set map[assay.Bucket]int, match func(lane string) bool) (names []string) {
	p.change(func(now time.Time) {
		for _, l := range p.q.lanes {
			if !match(l.Name) {
				continue
			}
			names = append(names, l.Name)
			for i, b := range Buckets {
				if n, ok := set[b]; ok {
					l.state(now, i, n)
				}
			}
		}
	})
	return names
}

// state sets a limit as if it had been stated from the beginning.
func (l *lane) state(now time.Time, bucket, limit int) {
	l.stated[bucket], l.next[bucket], l.readings[bucket] = limit, time.Time{}, headerReading{}
	first, most := Limits{Concurrency: l.stated[concurrency]}.widths()
	l.limiter.Reset(now, first, most)
}
