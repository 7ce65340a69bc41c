package lane

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// heed takes over what the endpoint says about its limits: a limit that the
// user did not state, or overstated, and what it has counted beyond our count.
func (l *lane) heed(now time.Time, quotas []assay.QuotaState) {
	for _, q := range quotas {
		b := slices.Index(Buckets[:], q.Bucket)
		if b < requests || q.Limit <= 0 {
			continue
		}
		l.learned[b].declare(now, q.Limit)
		if q.Remaining < 0 {
			continue
		}
		l.compare(now, b, q)
	}
}

const (
	// usuallyWithheld is what a lane expects an endpoint that tells its limits
	// to hold back for a reply, in tokens, until many headers have told.
	usuallyWithheld = 256
	// margin is for what grows with a conversation. It costs little: what is
	// kept free for requests in flight is used when they have ended.
	margin = 1.25
)

// compare explains by how much an endpoint's count exceeds ours: by what it
// holds back for our requests in flight, or else by other users of the key.
func (l *lane) compare(now time.Time, b int, q assay.QuotaState) {
	w := l.window(b)
	beyond := max(0, q.Limit-q.Remaining-w.sum.in(b))
	if counts := b != requests && b != requestsPerDay; counts && l.inFlight > 0 {
		// It rises at once and falls slowly: too much costs little, and our
		// window still holds what has just left theirs.
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

// refused answers a refusal. It may be a limit or chance: some endpoints
// refuse now and then under load. A limit refuses all requests that follow, so
// a few in a row are believed, and what a later success contradicts is taken
// back.
func (l *lane) refused(now time.Time, t ticket, fault *assay.Fault) {
	l.history.mark(t.number, refused)
	if fault.RetryAfter > longestRetryAfter {
		l.shut(&assay.Fault{
			Kind: assay.Quota, Lane: l.Name, Status: fault.Status,
			Detail: fmt.Sprintf("the endpoint asks to wait %v: %s", fault.RetryAfter, fault.Detail),
		})
		return
	}
	if l.belief.about(t.number) {
		l.belief.refused++
	}
	if l.refusals.of < busyShare/10 {
		l.learned[concurrency].good = 0 // only a round without a refusal proves a width
	}
	certain := fault.Limit > 0 || fault.RetryAfter > shortWait
	fresh := t.started.After(l.cutAt) // not of a burst that was believed
	if needed := l.believes(); fresh && !certain && l.history.row(t.number, refused, needed) < needed {
		l.refusalsInDoubt++
		return
	}
	l.refusalsInDoubt = 0
	switch {
	case certain:
		l.belief = nil
	case fresh:
		l.belief = &belief{after: t.number, before: l.history.next, learned: l.learned, pausedUntil: l.pausedUntil}
	}
	if fresh {
		l.doubted, l.calm = !certain && l.isCalm(), 0
	}
	if !l.doubted {
		l.learn(now, fault, fresh)
	}
	if wait := l.asked(now, fault, t); wait > 0 {
		l.pause(now, wait, string(fault.Kind))
	}
	if fresh {
		l.cutAt = now
	}
}

// isCalm reports that so many requests succeeded since the latest burst of
// refusals that the next one has nothing to do with it: all slots twice over.
func (l *lane) isCalm() bool { return l.calm >= max(8, 2*l.limit(concurrency)) }

// believes is how many refusals in a row the lane takes for a limit.
func (l *lane) believes() int {
	if l.refusals.of > busyShare && l.refusals.n > 200 { // not the first burst alone
		return 1
	}
	// One for a narrow lane, four for one of 128: a wide one loses little by
	// some more refusals, and much by a pause.
	least := max(1, (bits.Len(uint(l.limit(concurrency)))+1)/2-1)
	return tooMany(l.refusals.of, least, believeAfter)
}

// recant undoes what was done because of refusals that were chance.
func (l *lane) recant() {
	l.learned, l.pausedUntil, l.belief = l.belief.learned, l.belief.pausedUntil, nil
	l.refusals.count(true)
}

// asked is how long to pause: as long as the endpoint asks, or a little, and
// longer with each burst in a row, for there may be more to it. Requests that
// were sent before the pause began belong to the same burst and do not
// lengthen it.
func (l *lane) asked(now time.Time, fault *assay.Fault, t ticket) time.Duration {
	if l.oldNews(t) {
		return fault.RetryAfter
	}
	if l.limitedRow == 0 {
		l.refusedSince = now
	}
	l.limitedRow++
	if now.Sub(l.refusedSince) > patience {
		l.shut(&assay.Fault{
			Kind: assay.Quota, Lane: l.Name, Status: fault.Status,
			Detail: fmt.Sprintf("the endpoint has refused everything for %v: %s", patience, fault.Detail),
		})
	}
	if fault.RetryAfter > 0 && l.limitedRow <= 2 {
		return fault.RetryAfter
	}
	return max(fault.RetryAfter, jitter(time.Second<<min(l.limitedRow-1, 3)))
}

// learn lowers the limit that a refusal is about, once a burst.
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
			// Refused within its limit: the endpoint takes no bursts.
			l.spacing = time.Minute / time.Duration(fault.Limit)
		}
		g.declare(now, fault.Limit)
	case b != concurrency && now.Sub(l.born) < l.window(b).span && (g.recalled || allowed < leastRate || fault.RetryAfter <= shortWait):
		// Less than a minute of ours is no measure of a rate, and the
		// endpoint's count began before: the wait has to do.
	default:
		floor := 1
		switch {
		case b != concurrency:
			allowed = int(math.Round(caution * float64(allowed)))
			if floor = leastRate; g.limit > 0 {
				floor = g.limit / 2
			}
		case allowed == 0: // others have all there is
			floor = g.limit / 2
		}
		if fresh {
			g.cut(now, allowed, max(1, floor))
		} else {
			g.refine(allowed)
		}
	}
}

// suspect guesses which limit was hit, and says whether it is a new one. A
// burst has one reason, but its first refusal may come while others are on
// their way that will be refused as well, and so look like too many in flight.
func (l *lane) suspect(now time.Time, fault *assay.Fault, fresh bool) (bucket int, isNew bool) {
	width := &l.learned[concurrency]
	before := *width
	if !fresh && l.narrowed != nil {
		before = *l.narrowed
	}
	// A rate, if the endpoint has had more in flight than it has now, with a
	// margin for replies that are on their way.
	few := l.inFlight < before.held-max(1, before.held/10) || fresh && l.inFlight == 0
	switch {
	case !fresh && (l.suspected != concurrency || !few):
		return l.suspected, false
	case !few && fault.RetryAfter <= shortWait:
		l.suspected, l.narrowed = concurrency, &before
	default:
		l.suspected = l.likelyRate()
		if few && l.narrowed != nil && now.Sub(width.changed) < windowSpan {
			*width = *l.narrowed // which was not to blame, then
		}
		l.narrowed = nil
	}
	return l.suspected, true
}

// likelyRate is requests or tokens a minute: what the user did not state, or
// else has used more of.
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
