package limit

import (
	"slices"
	"time"
)

// obeyed is a confirmed rule with the use of its limit so far.
type obeyed struct {
	kind
	rule   *rule
	limit  int
	slack  time.Duration // by which spans may end later
	lo, hi time.Duration
	used   []use // of the latest span, in the order of sending
	sum    int
}

// use is one request's share of a limit.
type use struct {
	number uint64
	sent   time.Duration
	amount int
}

// obey returns a rule with the use by the requests so far.
func (r *rule) obey(g *log) *obeyed {
	o := &obeyed{kind: r.kind, rule: r, limit: r.limit(), lo: r.lo, hi: r.hi}
	o.slack = max(tolerance, min(g.slack, o.span/20))
	for i := range g.requests {
		if g.requests[i].fate != refused {
			o.add(&g.requests[i])
		}
	}
	return o
}

func (o *obeyed) add(r *request) {
	if o.span > 0 {
		o.used, o.sum = o.since(o.counted(r.sent))
		o.used = append(o.used, use{r.number, r.sent, o.measure.of(r.amount)})
		o.sum += o.measure.of(r.amount)
	}
}

// correct changes the recorded use of a request.
func (o *obeyed) correct(r *request, by Amount) {
	i, ok := slices.BinarySearchFunc(o.used, r.number, func(u use, n uint64) int {
		return int(int64(u.number - n))
	})
	if ok {
		o.used[i].amount += o.measure.of(by)
		o.sum += o.measure.of(by)
	}
}

// since returns the use after a time, and its sum.
func (o *obeyed) since(t time.Duration) (used []use, sum int) {
	used, sum = o.used, o.sum
	for len(used) > 0 && used[0].sent <= t {
		sum -= used[0].amount
		used = used[1:]
	}
	return used, sum
}

// counted returns the time after which use may still count now.
func (o *obeyed) counted(now time.Duration) time.Duration {
	if o.shape == sliding {
		return now - o.span - o.slack
	}
	_, keep := o.ends(now)
	return keep - 1
}

// next returns when the rule permits a request.
func (o *obeyed) next(now time.Duration, a Amount, inFlight int) time.Duration {
	switch {
	case o.span == 0 && inFlight >= o.limit:
		return never
	case o.span == 0:
		return now
	}
	used, sum := o.since(o.counted(now))
	over := sum + o.measure.of(a) - o.limit
	if o.shape != sliding {
		if over > 0 && sum > 0 {
			end, _ := o.ends(now)
			return end
		}
		return now
	}
	at := now
	for _, u := range used {
		if over <= 0 {
			break
		}
		over -= u.amount
		at = u.sent + o.span + o.slack + 1
	}
	return at
}

// ends returns when the span of a rule that does not slide ends for sure, and from when on requests
// may count in it.
func (o *obeyed) ends(now time.Duration) (end, keep time.Duration) {
	r := rule{kind: o.kind, lo: o.lo, hi: o.hi}
	begin, unsure := r.begin(now)
	late := begin + (o.hi - o.lo) + 2*o.slack + 1
	if unsure {
		return late, begin - o.span
	}
	return late + o.span, begin
}

// permitted returns when all obeyed rules permit a request.
func (l *Limiter) permitted(now time.Duration, a Amount) time.Duration {
	at := now
	for _, o := range l.obeyed {
		at = max(at, o.next(now, a, l.inFlight))
	}
	return at
}

// soonest returns when the first of the obeyed rules permits a request.
func (l *Limiter) soonest(now time.Duration, a Amount) time.Duration {
	at := never
	for _, o := range l.obeyed {
		at = min(at, o.next(now, a, l.inFlight))
	}
	return at
}
