package lane

import "math"

// history remembers the results of a lane's latest requests in the order in
// which they were sent. Only that order distinguishes bad luck from trouble.
// Refusals arrive at once and replies take seconds, so in order of arrival every
// burst would begin with a row of failures.
type history struct {
	states []state // request n is at n % len(states)
	next   uint64  // number of the next request
}

type state uint8

const (
	pending state = iota
	good
	broken // failed with a fault
)

func newHistory(width int) history {
	size := 64
	for size < 2*width {
		size *= 2
	}
	return history{states: make([]state, size)}
}

// sent records a new request and returns its number.
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

// row returns how many consecutive requests around request n are in state s. It
// counts up to limit.
func (h *history) row(n uint64, s state, limit int) int {
	matches := func(i uint64) bool {
		return h.remembers(i) && h.states[i%uint64(len(h.states))] == s
	}
	row := 0
	for i := n; row < limit && matches(i); i-- {
		row++
		if i == 0 {
			break
		}
	}
	for i := n + 1; row < limit && matches(i); i++ {
		row++
	}
	return row
}

// share estimates the share of a lane's requests that fail by chance.
type share struct {
	mean float64
	n    int
}

// succeeded counts a success. It also counts the failures in doubt, because the
// success shows that they were chance.
func (s *share) succeeded(inDoubt *int) {
	for ; *inDoubt > 0; *inDoubt-- {
		s.count(true)
	}
	s.count(false)
}

// count adds one request to a running mean over about a hundred requests.
func (s *share) count(failed bool) {
	s.n++
	x := 0.0
	if failed {
		x = 1
	}
	s.mean += (x - s.mean) / float64(min(s.n, 100))
}

// improbableRow returns how many failures in a row cannot be bad luck if each
// has probability p. The probability of such a row is below one in a million.
func improbableRow(p float64, lower, upper int) int {
	if p <= 0 {
		return lower
	}
	if p >= 1 {
		return upper
	}
	n := int(math.Ceil(math.Log(1e-6) / math.Log(p)))
	return max(lower, min(upper, n))
}
