package lane

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// applyQuotas adopts the limits that the endpoint reports in its headers if the
// user did not state them or stated higher ones. It also takes into account usage
// that the endpoint counted and we did not.
func (l *lane) applyQuotas(now time.Time, quotas []assay.QuotaState) {
	for _, q := range quotas {
		b := slices.Index(Buckets[:], q.Bucket)
		if b < requests || q.Limit <= 0 {
			continue
		}
		l.learned[b].declare(now, q.Limit)
		if q.Remaining < 0 {
			continue
		}
		l.explainUsage(now, b, q)
	}
}

const (
	// usuallyWithheld is the number of tokens that we expect an endpoint with
	// limit headers to reserve for a reply, until its headers show the real
	// number.
	usuallyWithheld = 256
	// margin allows for growing conversations. It costs little, because tokens
	// kept free for requests in flight can be used once these have ended.
	margin = 1.25
)

// explainUsage explains why an endpoint's count exceeds ours. If tokens are
// counted and requests are in flight, the endpoint reserves tokens for them.
// Otherwise the key has other users.
func (l *lane) explainUsage(now time.Time, b int, q assay.QuotaState) {
	w := l.window(b)
	beyond := max(0, q.Limit-q.Remaining-w.sum.in(b))
	if countsTokens := b != requests && b != requestsPerDay; countsTokens && l.inFlight > 0 {
		// The estimate rises at once and falls slowly. Too high an estimate costs
		// little, and our window still holds usage that has just left theirs.
		each := float64(beyond) / float64(l.inFlight)
		if l.withheld[b] == 0 {
			each = max(each, usuallyWithheld)
		}
		l.withheld[b] = max(each, l.withheld[b]+(each-l.withheld[b])/10_000)
		beyond = 0
	}
	span := w.span
	if q.Reset > 0 {
		span = min(span, q.Reset)
	}
	l.foreign[b] = foreign{beyond, now.Add(span)}
}

// refused reacts to a refusal. It may come from a limit or from chance, because
// some endpoints refuse now and then under load. A limit refuses all requests
// that follow, so a few refusals in a row are believed. If later successes
// contradict that, rollback undoes the reaction.
func (l *lane) refused(now time.Time, t ticket, fault *assay.Fault) {
	l.history.mark(t.number, refused)
	if fault.RetryAfter > longestRetryAfter {
		l.close(&assay.Fault{
			Kind: assay.Quota, Lane: l.Name, Status: fault.Status,
			Detail: fmt.Sprintf("the endpoint asks for a wait of %v: %s",
				fault.RetryAfter, fault.Detail),
		})
		return
	}
	if l.belief.testedBy(t.number) {
		l.belief.refused++
	}
	if l.refusals.mean < busyShare/10 {
		l.learned[concurrency].good = 0 // only a round without refusals proves a width
	}

	certain := fault.Limit > 0 || fault.RetryAfter > shortWait
	fresh := t.started.After(l.cutAt) // not part of a burst that was believed
	needed := l.refusalsNeeded()
	if fresh && !certain && l.history.row(t.number, refused, needed) < needed {
		l.refusalsInDoubt++
		return
	}
	l.refusalsInDoubt = 0
	switch {
	case certain:
		l.belief = nil
	case fresh:
		l.belief = &belief{
			after: t.number, before: l.history.next,
			learned: l.learned, pausedUntil: l.pausedUntil,
		}
	}

	if fresh {
		l.doubted, l.calm = !certain && l.isCalm(), 0
	}
	if !l.doubted {
		l.learn(now, fault, fresh)
	}
	if wait := l.pauseLength(now, fault, t); wait > 0 {
		l.pause(now, wait, string(fault.Kind))
	}
	if fresh {
		l.cutAt = now
	}
}

// isCalm reports whether enough requests have succeeded since the latest burst
// of refusals for the next burst to count as new. That takes twice as many
// successes as there are slots.
func (l *lane) isCalm() bool { return l.calm >= max(8, 2*l.limit(concurrency)) }

// refusalsNeeded returns how many refusals in a row are taken for a limit.
func (l *lane) refusalsNeeded() int {
	if l.refusals.mean > busyShare && l.refusals.n > 200 { // more than the first burst
		return 1
	}
	// A narrow lane needs one refusal and a lane of 128 needs four, because a wide
	// lane loses little by a few more refusals and much by a pause.
	lower := max(1, (bits.Len(uint(l.limit(concurrency)))+1)/2-1)
	return improbableRow(l.refusals.mean, lower, believeAfter)
}

// rollback undoes the reaction to refusals that turned out to be chance.
func (l *lane) rollback() {
	l.learned, l.pausedUntil, l.belief = l.belief.learned, l.belief.pausedUntil, nil
	l.refusals.count(true)
}

// pauseLength returns how long to pause. That is as long as the endpoint asks, or
// a short time if it does not ask. Each further burst in a row makes the pause
// longer. Requests sent before the pause began belong to the same burst and do
// not make it longer.
func (l *lane) pauseLength(now time.Time, fault *assay.Fault, t ticket) time.Duration {
	if l.sentBeforePause(t) {
		return fault.RetryAfter
	}
	if l.limitedRow == 0 {
		l.refusedSince = now
	}
	l.limitedRow++

	if now.Sub(l.refusedSince) > patience {
		l.close(&assay.Fault{
			Kind: assay.Quota, Lane: l.Name, Status: fault.Status,
			Detail: fmt.Sprintf("the endpoint has refused everything for %v: %s",
				patience, fault.Detail),
		})
	}
	if fault.RetryAfter > 0 && l.limitedRow <= 2 {
		return fault.RetryAfter
	}
	return max(fault.RetryAfter, jitter(time.Second<<min(l.limitedRow-1, 3)))
}

// learn lowers the limit that caused a refusal, once per burst.
func (l *lane) learn(now time.Time, fault *assay.Fault, fresh bool) {
	b := slices.Index(Buckets[:], fault.Bucket)
	if b < 0 {
		b, fresh = l.suspect(now, fault, fresh)
	}
	g, allowed := &l.learned[b], l.inFlight
	if b != concurrency {
		allowed = l.window(b).sum.in(b)
	}
	switch {
	case fault.Limit > 0:
		if b == requests && l.limit(b) > 0 && allowed < fault.Limit*9/10 && fresh {
			// The endpoint refused a request within its limit, so it does not
			// accept bursts.
			l.spacing = time.Minute / time.Duration(fault.Limit)
		}
		g.declare(now, fault.Limit)
	case b != concurrency && now.Sub(l.born) < l.window(b).span &&
		(g.recalled || allowed < minRate || fault.RetryAfter <= shortWait):
		// We have counted for less than a minute and the endpoint for longer, so
		// our count does not measure the rate. Pausing has to be enough.
	default:
		floor := 1
		switch {
		case b != concurrency:
			allowed = int(math.Round(caution * float64(allowed)))
			if floor = minRate; g.limit > 0 {
				floor = g.limit / 2
			}
		case allowed == 0: // others use the whole limit
			floor = g.limit / 2
		}
		if fresh {
			g.cut(now, allowed, max(1, floor))
		} else {
			g.refine(allowed)
		}
	}
}

// suspect guesses which limit was hit and reports whether it blames that limit
// for the first time. All refusals of a burst have the same reason. But when the
// first one arrives, others that will be refused are still in flight, which can
// look like too many requests at once.
func (l *lane) suspect(now time.Time, fault *assay.Fault, fresh bool) (bucket int, isNew bool) {
	width := &l.learned[concurrency]
	before := *width
	if !fresh && l.narrowed != nil {
		before = *l.narrowed
	}
	// If the endpoint has accepted more requests in flight than there are now, it
	// limits a rate. The margin allows for replies on their way.
	few := l.inFlight < before.held-max(1, before.held/10) || fresh && l.inFlight == 0
	switch {
	case !fresh && (l.suspected != concurrency || !few):
		return l.suspected, false
	case !few && fault.RetryAfter <= shortWait:
		l.suspected, l.narrowed = concurrency, &before
	default:
		l.suspected = l.likelyRate()
		if few && l.narrowed != nil && now.Sub(width.changed) < windowSpan {
			*width = *l.narrowed // the width was not the reason
		}
		l.narrowed = nil
	}
	return l.suspected, true
}

// likelyRate returns the limit per minute that was probably hit: requests or
// tokens, whichever is not stated or is used up more.
func (l *lane) likelyRate() int {
	rpm, tpm := l.stated[requests], l.stated[tokens]
	switch {
	case rpm == 0:
		return requests
	case tpm == 0, l.minute.sum.in(tokens)*rpm > l.minute.sum.in(requests)*tpm:
		return tokens
	}
	return requests
}
