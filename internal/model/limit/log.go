package limit

import (
	"slices"
	"time"
)

// fate is the outcome of a request.
type fate uint8

const (
	pending fate = iota
	accepted
	refused
	dropped // ended without a sign of either
)

// request is a limiter's record of a request. Times are since the limiter was born.
type request struct {
	number      uint64
	sent, ended time.Duration
	amount      Amount
	burst       int // how many blocks had ended before
	fate        fate
	permitted   bool    // by the rules that were obeyed when it was sent
	measure     Measure // named by its refusal
}

// log has the latest requests in the order of sending.
type log struct {
	requests []request
	first    uint64 // the number of requests[0]
	burst    int
	slack    time.Duration // by which requests may arrive later than they were sent
}

// maxRequests are remembered one by one.
const maxRequests = 4096

func (g *log) next() uint64 { return g.first + uint64(len(g.requests)) }

func (g *log) add(r request) *request {
	if len(g.requests) >= 2*maxRequests {
		g.requests = append(g.requests[:0], g.requests[maxRequests:]...)
		g.first += maxRequests
	}
	r.number = g.next()
	r.burst = g.burst
	g.requests = append(g.requests, r)
	return &g.requests[len(g.requests)-1]
}

// at returns a request, or nil if it is forgotten.
func (g *log) at(n uint64) *request {
	if n < g.first || n >= g.next() {
		return nil
	}
	return &g.requests[n-g.first]
}

// latest returns the request that was sent last, or nil.
func (g *log) latest() *request {
	if len(g.requests) == 0 {
		return nil
	}
	return &g.requests[len(g.requests)-1]
}

// acceptedAfter reports whether a request that was sent after request n has been accepted.
func (g *log) acceptedAfter(n uint64) bool {
	for _, r := range g.requests[n+1-g.first:] {
		if r.fate == accepted {
			return true
		}
	}
	return false
}

// lastLive returns when the latest request was sent that has not been refused, or 0.
func (g *log) lastLive() time.Duration {
	for _, r := range slices.Backward(g.requests) {
		if r.fate != refused {
			return r.sent
		}
	}
	return 0
}

// firstLive returns when the first request after a time was sent that has not been refused, or -1.
func (g *log) firstLive(after time.Duration) time.Duration {
	for i := range g.requests {
		if q := &g.requests[i]; q.fate != refused && q.sent > after {
			return q.sent
		}
	}
	return -1
}

// live returns how many requests from a time on have not been refused.
func (g *log) live(since time.Duration) (n int) {
	for i := range g.requests {
		if q := &g.requests[i]; q.fate != refused && q.sent >= since {
			n++
		}
	}
	return n
}

// fresh returns how many requests that may still be refused were sent after a time, and when the
// first of them was.
func (g *log) fresh(after time.Duration) (n int, oldest time.Duration) {
	for _, r := range slices.Backward(g.requests) {
		if r.sent <= after {
			break
		}
		if r.fate == pending {
			n, oldest = n+1, r.sent
		}
	}
	return n, oldest
}

// explained reports whether all refusals from request epoch on are known.
func (g *log) explained(epoch uint64, known map[uint64]bool) bool {
	for i := range g.requests {
		q := &g.requests[i]
		if q.number >= epoch && q.fate == refused && !known[q.number] {
			return false
		}
	}
	return true
}
