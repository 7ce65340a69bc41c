package limit

import (
	"math"
	"slices"
	"time"
)

// levels calls yield for each request until it returns false, with the level of the request: how much
// of the limit it found used, and used itself. Because times are uncertain, the level is between low
// and high.
func (r *rule) levels(g *log, yield func(q *request, low, high float64) bool) {
	switch {
	case r.measure == InFlight:
		r.flights(g, yield)
	case r.shape == sliding:
		r.slide(g, yield)
	case r.placed:
		r.tile(g, yield)
	}
}

// flights finds the levels of a rule about requests in flight. Refused requests never count.
func (r *rule) flights(g *log, yield func(q *request, low, high float64) bool) {
	all := g.requests
	var ends []time.Duration
	for i := range all {
		if q := &all[i]; (q.fate == accepted || q.fate == dropped) && r.counted(q) > 0 {
			ends = append(ends, q.ended)
		}
	}
	slices.Sort(ends)
	ended := func(t time.Duration) int {
		n, _ := slices.BinarySearch(ends, t)
		return n
	}
	low, high, c, d := 0, 0, 0, 0
	for i := range all {
		q := &all[i]
		for ; c < len(all) && all[c].sent <= q.sent-g.slack; c++ {
			low += r.counted(&all[c])
		}
		for ; d < len(all) && all[d].sent <= q.sent+g.slack; d++ {
			high += r.counted(&all[d])
		}
		most := high - ended(q.sent-g.slack) + 1 - r.counted(q)
		if !yield(q, float64(max(1, low-ended(q.sent+g.slack)+1)), float64(most)) {
			return
		}
	}
}

// slide finds the levels of a sliding rule. Requests that were sent at about the same time may have
// arrived in any order.
func (r *rule) slide(g *log, yield func(q *request, low, high float64) bool) {
	all := g.requests
	low, high, a, b, c, d := 0, 0, 0, 0, 0, 0
	for i := range all {
		q := &all[i]
		for ; c < len(all) && all[c].sent <= q.sent-g.slack; c++ {
			low += r.counted(&all[c])
		}
		for ; a < c && all[a].sent <= q.sent-r.span+g.slack; a++ {
			low -= r.counted(&all[a])
		}
		for ; d < len(all) && all[d].sent <= q.sent+g.slack; d++ {
			high += r.counted(&all[d])
		}
		for ; b < d && all[b].sent <= q.sent-r.span-g.slack; b++ {
			high -= r.counted(&all[b])
		}
		w := r.measure.of(q.amount)
		if !yield(q, float64(low+w), float64(high+w-r.counted(q))) {
			return
		}
	}
}

// counted returns how much of the limit a request uses.
func (r *rule) counted(q *request) int {
	if q.fate == refused {
		return 0
	}
	return r.measure.of(q.amount)
}

// tile finds the levels of a rule whose spans follow each other.
func (r *rule) tile(g *log, yield func(q *request, low, high float64) bool) {
	all := g.requests
	from, low, high, c, d := time.Duration(math.MinInt64), 0, 0, 0, 0
	for i := range all {
		q := &all[i]
		begin, unsure := r.begin(q.sent)
		if begin != from {
			from, low, high, c, d = begin, 0, 0, i, i
		}
		for ; c < len(all) && all[c].sent <= q.sent-g.slack; c++ {
			if _, unsure := r.begin(all[c].sent); !unsure {
				low += r.counted(&all[c])
			}
		}
		for ; d < len(all) && all[d].sent <= q.sent+g.slack; d++ {
			high += r.counted(&all[d])
		}
		w := r.measure.of(q.amount)
		least, most := float64(low+w), float64(high+w-r.counted(q))
		if unsure {
			least, most = float64(w), math.Inf(1)
		}
		if !yield(q, least, most) {
			return
		}
	}
}

// begin returns when the span of some time began at the earliest, and whether the time is so close
// to that that it may belong to the span before.
func (r *rule) begin(t time.Duration) (begin time.Duration, unsure bool) {
	lo, hi := r.lo-tolerance, r.hi+tolerance
	n := (t - lo) / r.span
	if t < lo {
		n--
	}
	begin = lo + n*r.span
	return begin, t < begin+(hi-lo)
}

// place notes that a tiled span began after lo and before hi.
func (r *rule) place(lo, hi time.Duration) {
	if r.shape != tiled || hi-lo > r.span/6 {
		return
	}
	if r.placed { // the same phase again, so both are true
		shift := (lo - r.lo + r.span/2) / r.span * r.span
		a, b := max(lo, r.lo+shift), min(hi, r.hi+shift)
		if a < b {
			lo, hi = a, b
		}
	}
	r.lo, r.hi, r.placed = lo, hi, true
}
