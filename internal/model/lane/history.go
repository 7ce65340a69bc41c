package lane

import "math"

// history remembers the results of a lane's latest requests in the order in
// which they were sent. Only that order distinguishes bad luck from trouble.
// Refusals arrive at once and replies take seconds, so in order of arrival every
// burst would begin with a row of failures.
type history struct {
	states [4096]state // request n is at n % len(states)
	next   uint64      // number of the next request
}

type state uint8

const (
	pending state = iota
	good
	broken // failed with a fault
)

// sent records a new request and returns its number.
func (h *history) sent() uint64 {
	n := h.next
	h.next++
	*h.state(n) = pending
	return n
}

func (h *history) mark(n uint64, s state) {
	if h.remembers(n) {
		*h.state(n) = s
	}
}

func (h *history) state(n uint64) *state { return &h.states[n%uint64(len(h.states))] }

func (h *history) remembers(n uint64) bool {
	return n < h.next && h.next-n <= uint64(len(h.states))
}

// row returns how many consecutive requests around request n are in the same state as it. It
// counts up to limit.
func (h *history) row(n uint64, limit int) int {
	row := 1
	same := func(i uint64) bool {
		return row < limit && h.remembers(i) && *h.state(i) == *h.state(n)
	}
	for i := n + 1; same(i); i++ {
		row++
	}
	for i := n - 1; same(i); i-- {
		row++
	}
	return row
}

// improbableRow returns how many failures in a row cannot be bad luck if each
// has probability p. The probability of such a row is below one in a million.
func improbableRow(p float64, lower, upper int) int {
	n := math.Ceil(math.Abs(math.Log(1e-6) / math.Log(p)))
	return int(max(float64(lower), min(float64(upper), n)))
}
