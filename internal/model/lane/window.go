package lane

import (
	"time"
)

// newWindow returns the window that counts a bucket. It is a little longer than
// the limit's period because the server counts a request when it arrives, and some
// requests take longer to arrive than others.
func newWindow(bucket int) window {
	per := rules[bucket].per
	if per > time.Minute {
		return window{of: per, span: per + time.Minute, grain: time.Minute}
	}
	return window{of: per, span: per + per/120}
}

const day = 24 * time.Hour

// cost is the amount of its lane's limits that one request uses.
type cost struct{ requests, input, output int }

// in returns the amount that a bucket counts.
func (c cost) in(bucket int) int {
	if counts := rules[bucket].counts; counts != nil {
		return counts(c)
	}
	return 0
}

func (c cost) plus(d cost, sign int) cost {
	return cost{
		requests: c.requests + sign*d.requests,
		input:    c.input + sign*d.input,
		output:   c.output + sign*d.output,
	}
}

// window remembers the costs of the last span, so that no span of that length,
// wherever it begins, exceeds a limit. It is not safe for concurrent use.
type window struct {
	of   time.Duration // the limit's period
	span time.Duration
	// grain is the time within which costs are merged into one entry, so that a
	// day has few entries. If it is 0, costs are not merged. An entry leaves the
	// window together with its latest part.
	grain   time.Duration
	born    time.Time     // when the first cost was added
	entries []windowEntry // entries[head:] are in the window, oldest first
	head    int
	first   int // the ID of entries[head]
	sum     cost
}

// A windowEntry has no pointers, because a window of a minute may have half a million of them.
type windowEntry struct {
	began, at time.Duration // of the first and the latest part, since the window was born
	cost      cost
}

// add adds a cost at the given time and returns the ID of its entry.
func (w *window) add(now time.Time, c cost) int {
	if w.born.IsZero() {
		w.born = now
	}
	w.drop(now)
	w.sum = w.sum.plus(c, 1)
	at := now.Sub(w.born)
	if n := len(w.entries) - 1; n >= w.head && at-w.entries[n].began < w.grain {
		w.entries[n].at = at
		w.entries[n].cost = w.entries[n].cost.plus(c, 1)
		return w.first + n - w.head
	}
	w.entries = append(w.entries, windowEntry{at, at, c})
	return w.first + len(w.entries) - 1 - w.head
}

// correct adds a difference to an entry. It ignores an entry that has left the
// window, and a negative ID.
func (w *window) correct(id int, by cost) {
	if id < w.first || id < 0 {
		return
	}
	e := &w.entries[w.head+id-w.first]
	e.cost = e.cost.plus(by, 1)
	w.sum = w.sum.plus(by, 1)
}

// free returns the earliest time at which weight fits into the limit of bucket b.
// A weight above the limit fits into an empty window, because otherwise it would
// never fit.
func (w *window) free(now time.Time, b, weight, limit int) time.Time {
	w.drop(now)
	excess := w.sum.in(b) + weight - limit
	at := now
	for _, e := range w.entries[w.head:] {
		if excess <= 0 {
			break
		}
		if n := e.cost.in(b); n > 0 {
			excess -= n
			at = w.born.Add(e.at + w.span)
		}
	}
	return at
}

func (w *window) drop(now time.Time) {
	left := now.Sub(w.born) - w.span
	for w.head < len(w.entries) && w.entries[w.head].at <= left {
		w.sum = w.sum.plus(w.entries[w.head].cost, -1)
		w.head++
		w.first++
	}
	if w.head > 64 && w.head > len(w.entries)/2 {
		w.entries = append(w.entries[:0], w.entries[w.head:]...)
		w.head = 0
	}
}
