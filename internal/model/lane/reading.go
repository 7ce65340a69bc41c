package lane

import (
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// headerReading is the latest report of the endpoint's headers about a bucket. It never sets a
// limit. It warns of a block, or shows that a stated limit may be spent without pacing.
type headerReading struct {
	mark  int // the lane's total when the bucket will be empty
	limit int
	until time.Time // when a request may start if the bucket is empty
	// reset is when everything is available again according to the endpoint, first heard at the
	// time heard. If it is the same some seconds later, the endpoint counts in fixed windows.
	// Otherwise used amounts become available again one by one.
	reset, heard time.Time
	bounded      bool // until is before the reset
}

const (
	// longestBlock is the longest wait for a reset that a header reports, because
	// headers may mean something else.
	longestBlock = time.Minute
	// Two readings at least readingsApart that differ by less than sameReset confirm
	// a fixed window.
	readingsApart = 3 * time.Second
	sameReset     = 1500 * time.Millisecond
	// A wait for a reset is worth it if it is longer than shortWait. It lasts a little longer,
	// because the reply took some time.
	shortWait = 2 * time.Second
	soon      = 50 * time.Millisecond
)

// read takes over the headers of a reply.
func (l *lane) read(now time.Time, t heldSlot, quotas []assay.QuotaState) {
	for _, q := range quotas {
		b := slices.Index(Buckets[:], q.Bucket)
		if b <= concurrency || q.Remaining < 0 {
			continue
		}
		switch {
		case q.Remaining > 0:
			l.longestBlock = longestBlock
		case t.behindWall:
			l.longestBlock /= 2 // the last block was not one
		}
		r := &l.readings[b]
		r.mark, r.limit, r.until, r.bounded = q.Remaining+t.total.in(b), q.Limit, time.Time{}, false
		if q.Reset <= 0 {
			continue
		}
		reset := now.Add(q.Reset)
		if reset.Sub(r.reset).Abs() > sameReset {
			r.reset, r.heard = reset, now
		}
		wait := q.Reset
		if now.Sub(r.heard) < readingsApart {
			used := max(1, q.Limit-q.Remaining)
			wait = time.Duration(float64(q.Reset) * float64(max(1, t.estimate.in(b))) / float64(used))
		}
		if wait > shortWait {
			r.bounded = wait > l.longestBlock
			r.until = now.Add(min(wait, l.longestBlock) + soon)
		}
	}
}

// left returns how much of a bucket is left according to the latest headers.
func (l *lane) left(b int) int { return l.readings[b].mark - l.total.in(b) }

// blockedUntil returns until when a request of some weight has to wait for a reset.
func (l *lane) blockedUntil(b, weight int) time.Time {
	if r := l.readings[b]; r.until.IsZero() || l.left(b) >= weight {
		return time.Time{}
	}
	return l.readings[b].until
}

// pass lets a probe through a block. If the block was shortened, no other request
// passes before its reply.
func (l *lane) pass(now time.Time, c cost) (behindWall bool) {
	for b := range l.readings {
		r := &l.readings[b]
		if r.until.IsZero() || l.left(b) >= c.in(b) {
			continue
		}
		behindWall = true
		if r.until = (time.Time{}); r.bounded {
			r.until = now.Add(l.longestBlock)
		}
	}
	return behindWall
}

// takesBursts reports whether the headers show that a stated limit may be spent in
// a burst.
func (l *lane) takesBursts(b int, c cost) bool {
	r := l.readings[b]
	return !l.refusedBurst && r.limit > 0 && r.limit == l.stated[b] && l.left(b) >= c.in(b)
}
