package lane

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/limit"
)

// amount is a cost as a [limit.Limiter] counts it.
func (c cost) amount() limit.Amount {
	return limit.Amount{Requests: c.requests, Input: c.input, Output: c.output}
}

// refused hands a refusal to the limiter.
func (l *lane) refused(now time.Time, t heldSlot, fault *assay.Fault) {
	l.loseHope(now, fault)
	refusal := limit.Refusal{Wait: fault.RetryAfter, Limit: fault.Limit}
	if i := slices.Index(Buckets[:], fault.Bucket); i >= 0 {
		refusal.Measure = rules[i].measure
	}
	l.limiter.Refuse(now, t.number, refusal)
	if state := l.limiter.State(now); state == limit.Waiting || state == limit.Pacing {
		l.refusedBurst = true
	}
	l.words = fault.Detail
}

// A hold is a wait that an endpoint announced to one request. Other requests may start meanwhile.
type hold struct {
	lane  string
	until time.Time
}

// hold notes that a lane has refused the request of a turn. If too many requests were in flight, a
// reply ends the wait, and not the clock.
func (t *turn) hold(lane string, fault *assay.Fault) {
	if fault.RetryAfter <= 0 || fault.Bucket == assay.Concurrency {
		return
	}
	t.holds = slices.DeleteFunc(t.holds, func(h hold) bool { return h.lane == lane })
	t.holds = append(t.holds, hold{lane, time.Now().Add(fault.RetryAfter)})
}

// heldUntil returns until when a request keeps away from a lane that refused it, or zero.
func (w *waiter) heldUntil(l *lane) time.Time {
	for _, h := range w.holds {
		if h.lane == l.Name {
			return h.until
		}
	}
	return time.Time{}
}

// held reports whether a request still keeps away from a lane.
func (w *waiter) held(now time.Time) bool {
	return slices.ContainsFunc(w.holds, func(h hold) bool { return h.until.After(now) })
}

// heldAt returns when the first waiting request that keeps away from a lane may return to it, or
// zero if no request does.
func (q *queue) heldAt(l *lane, now time.Time) (first time.Time) {
	for _, w := range q.waiting[q.head:] {
		if until := w.heldUntil(l); !w.gone && until.After(now) {
			first = earliest(first, until)
		}
	}
	return first
}

// starting reports whether a fault means that the endpoint is not ready yet.
func starting(fault *assay.Fault) bool {
	text := strings.ToLower(fault.Detail)
	for _, words := range []string{"loading", "not ready", "warming up", "starting", "initializing"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return fault.Kind == assay.Overloaded || fault.Kind == assay.Server
}

// learned returns the limits that the limiter obeys, per minute if they are of another span, if
// they are below the limits that the user stated.
func (l *lane) learned() (out Limits) {
	lower := func(b int, level float64) {
		n := max(1, int(math.Floor(level)))
		field := out.Of(Buckets[b])
		if stated := l.stated[b]; (stated == 0 || n < stated) && (*field == 0 || n < *field) {
			*field = n
		}
	}
	for _, r := range l.limiter.Rules() {
		perMinute := float64(r.Limit) * time.Minute.Seconds() / r.Span.Seconds()
		switch {
		case r.Measure == limit.InFlight:
			lower(concurrency, float64(r.Limit))
		case r.Rate > 0:
			lower(requests, 60*r.Rate)
		case r.Span >= day:
			lower(requestsPerDay, float64(r.Limit))
		case r.Measure == limit.Tokens:
			lower(tokens, perMinute)
		case r.Measure == limit.InputTokens:
			lower(inputTokens, perMinute)
		case r.Measure == limit.OutputTokens:
			lower(outputTokens, perMinute)
		default:
			lower(requests, perMinute)
		}
	}
	return out
}
