package lane

import "time"

// windowSpan is the length in which a limit per minute holds. It is a little
// longer than a minute because a server counts when a request arrives, and two
// requests can take differently long to get there: a burst that hundreds of
// requests make at once is slow on its way.
const windowSpan = time.Minute + 500*time.Millisecond

// daySpan is the same for a limit per day.
const daySpan = 24*time.Hour + time.Minute

// A cost is what one request takes of its lane's limits.
type cost struct{ requests, input, output int }

// in returns the part that a bucket counts.
func (c cost) in(bucket int) int {
	switch bucket {
	case requests, requestsPerDay:
		return c.requests
	case tokens:
		return c.input + c.output
	case inputTokens:
		return c.input
	case outputTokens:
		return c.output
	}
	return 0
}

func (c cost) plus(d cost, sign int) cost {
	return cost{c.requests + sign*d.requests, c.input + sign*d.input, c.output + sign*d.output}
}

// A window remembers what was taken in the last span, so that no span of that
// length, wherever it begins, holds more than a limit. It is not safe for
// concurrent use.
type window struct {
	span time.Duration
	// grain merges what was taken within it into one entry, so that a day has
	// few; 0 merges nothing. An entry leaves when its latest part does.
	grain   time.Duration
	entries []entry // entries[head:] are in the window, oldest first
	head    int
	first   int // the ID of entries[head]
	sum     cost
}

type entry struct {
	began, at time.Time // of its first and its latest part
	cost      cost
}

// add counts a cost from now on and returns the ID of its entry.
func (w *window) add(now time.Time, c cost) int {
	w.drop(now)
	w.sum = w.sum.plus(c, 1)
	if n := len(w.entries) - 1; n >= w.head && now.Sub(w.entries[n].began) < w.grain {
		w.entries[n].at = now
		w.entries[n].cost = w.entries[n].cost.plus(c, 1)
		return w.first + n - w.head
	}
	w.entries = append(w.entries, entry{now, now, c})
	return w.first + len(w.entries) - 1 - w.head
}

// correct adds a difference to an entry. One that has left the window is past.
func (w *window) correct(id int, by cost) {
	if id < w.first {
		return
	}
	e := &w.entries[w.head+id-w.first]
	e.cost = e.cost.plus(by, 1)
	w.sum = w.sum.plus(by, 1)
}

// free returns when weight fits into a limit of bucket b at the earliest. A
// weight beyond the whole limit fits into an empty window, for else it never
// would.
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
			at = e.at.Add(w.span)
		}
	}
	return at
}

func (w *window) drop(now time.Time) {
	for w.head < len(w.entries) && !w.entries[w.head].at.Add(w.span).After(now) {
		w.sum = w.sum.plus(w.entries[w.head].cost, -1)
		w.head++
		w.first++
	}
	if w.head > 64 && w.head > len(w.entries)/2 {
		w.entries = append(w.entries[:0], w.entries[w.head:]...)
		w.head = 0
	}
}
