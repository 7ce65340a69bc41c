package lane

import "math"

// A history remembers how a lane's latest requests went, in the order in which
// they were sent. That order tells bad luck from trouble: refusals come back at
// once and replies take seconds, so in the order of arrival every burst begins
// with a row of failures.
type history struct {
	states []state // of request n at n % len
	next   uint64  // number of the next request
}

type state uint8

const (
	pending state = iota
	good
	broken  // by a fault
	refused // for its rate
)

func newHistory(width int) history {
	size := 64
	for size < 2*width {
		size *= 2
	}
	return history{states: make([]state, size)}
}

// sent returns the number of a request that is sent now.
func (h *history) sent() uint64 {
	n := h.next
	h.next++
	h.states[n%uint64(len(h.states))] = pending
	return n
}

func (h *history) mark(n uint64, s state) {
	if h.remembers(n) {
		h.states[n%uint64(len(h.states))] = s
	}
}

func (h *history) remembers(n uint64) bool {
	return n < h.next && h.next-n <= uint64(len(h.states))
}

// row is how many requests that were sent one after the other, n among them,
// are in a state; most are counted.
func (h *history) row(n uint64, s state, most int) int {
	ended := func(i uint64) bool { return h.remembers(i) && h.states[i%uint64(len(h.states))] == s }
	row := 0
	for i := n; row < most && ended(i); i-- {
		row++
		if i == 0 {
			break
		}
	}
	for i := n + 1; row < most && ended(i); i++ {
		row++
	}
	return row
}

// A share is the part of a lane's latest requests to which something happened.
type share struct {
	of float64
	n  int
}

// chance counts a success, and what it shows to have been chance.
func (s *share) chance(inDoubt *int) {
	for ; *inDoubt > 0; *inDoubt-- {
		s.count(true)
	}
	s.count(false)
}

// count weighs the last hundred requests most.
func (s *share) count(happened bool) {
	s.n++
	x := 0.0
	if happened {
		x = 1
	}
	s.of += (x - s.of) / float64(min(s.n, 100))
}

// tooMany is how many failures in a row are no longer bad luck when each has
// the chance p: their probability is below one in a million.
func tooMany(p float64, least, most int) int {
	if p <= 0 {
		return least
	}
	if p >= 1 {
		return most
	}
	return max(least, min(most, int(math.Ceil(math.Log(1e-6)/math.Log(p)))))
}
