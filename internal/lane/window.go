package lane

import (
	"slices"
	"time"
)

// windowSpan is the length in which a limit per minute holds. It is a little
// longer than a minute because a server counts when a request arrives, and two
// requests can take differently long to get there.
const windowSpan = time.Minute + 250*time.Millisecond

// A window counts weights and knows when a further weight fits, so that no
// span of [windowSpan], wherever it begins, holds more than the limit. The
// zero limit means none. It is not safe for concurrent use.
type window struct {
	limit   int
	entries []entry // oldest first
	sum     int
	nextID  int
}

type entry struct {
	id     int
	at     time.Time
	weight int
}

// add counts a weight from now on and returns its ID.
func (w *window) add(now time.Time, weight int) int {
	if w.limit <= 0 {
		return 0
	}
	w.drop(now)
	w.nextID++
	w.entries = append(w.entries, entry{w.nextID, now, weight})
	w.sum += weight
	return w.nextID
}

// settle replaces an estimated weight by the real one. An entry that has left
// the window is past.
func (w *window) settle(id, weight int) {
	i, ok := slices.BinarySearchFunc(w.entries, id, func(e entry, id int) int { return e.id - id })
	if !ok {
		return
	}
	w.sum += weight - w.entries[i].weight
	w.entries[i].weight = weight
}

// free returns when weight fits at the earliest. A weight beyond the whole
// limit fits into an empty window, for else it never would.
func (w *window) free(now time.Time, weight int) time.Time {
	if w.limit <= 0 {
		return now
	}
	w.drop(now)
	excess := w.sum + weight - w.limit
	for _, e := range w.entries {
		if excess <= 0 {
			break
		}
		excess -= e.weight
		now = e.at.Add(windowSpan)
	}
	return now
}

func (w *window) drop(now time.Time) {
	n := 0
	for n < len(w.entries) && !w.entries[n].at.Add(windowSpan).After(now) {
		w.sum -= w.entries[n].weight
		n++
	}
	if n > 0 {
		w.entries = append(w.entries[:0], w.entries[n:]...)
	}
}
