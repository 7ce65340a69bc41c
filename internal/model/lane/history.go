package lane

import "math"

// history remembers which of a lane's latest requests failed with a fault, in the order in
// which they were sent. Only that order distinguishes bad luck from trouble. Refusals arrive at
// once and replies take seconds, so in order of arrival every burst would begin with a row of
// failures.
type history struct {
	broken [4096]bool // request n is at n % len(broken)
	next   uint64     // number of the next request
}

// sent records a new request and returns its number.
func (h *history) sent() uint64 {
	n := h.next
	h.next++
	h.broken[n%uint64(len(h.broken))] = false
	return n
}

// fail notes that a request failed.
func (h *history) fail(n uint64) {
	if h.remembers(n) {
		h.broken[n%uint64(len(h.broken))] = true
	}
}

func (h *history) remembers(n uint64) bool {
	return n < h.next && h.next-n <= uint64(len(h.broken))
}

// row returns how many consecutive requests failed around request n, which failed too. It counts
// up to limit.
func (h *history) row(n uint64, limit int) int {
	row := 1
	failed := func(i uint64) bool {
		return row < limit && h.remembers(i) && h.broken[i%uint64(len(h.broken))]
	}
	for i := n + 1; failed(i); i++ {
		row++
	}
	for i := n - 1; failed(i); i-- {
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
