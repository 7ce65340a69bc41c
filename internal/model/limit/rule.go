package limit

import (
	"math"
	"slices"
	"time"
)

// Measure is the unit that a rule counts.
type Measure uint8

// The measures. A refusal that does not name one is Unnamed, and may come from any rule.
const (
	Unnamed Measure = iota
	InFlight
	Requests
	RequestsPerDay
	Tokens
	InputTokens
	OutputTokens
)

func (m Measure) of(a Amount) int {
	switch m {
	case Tokens:
		return a.Input + a.Output
	case InputTokens:
		return a.Input
	case OutputTokens:
		return a.Output
	}
	return a.Requests
}

// shape is where a span of time begins.
type shape uint8

const (
	sliding shape = iota // anywhere
	clock                // at the multiples of the span in Unix time
	tiled                // where a block was seen to end, and then one after the other
)

const day = 24 * time.Hour

// kinds has all kinds of rules that an endpoint may have. To add one, add a row. There is a rule
// for each measure, span and shape.
var kinds = []struct {
	measures []Measure
	spans    []time.Duration // 0 for requests in flight
	shapes   []shape
}{
	{[]Measure{InFlight}, []time.Duration{0}, []shape{sliding}},
	{[]Measure{Requests}, []time.Duration{time.Second}, []shape{sliding, clock}},
	{[]Measure{Requests}, []time.Duration{
		5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, time.Hour,
	}, []shape{sliding, clock, tiled}},
	{[]Measure{RequestsPerDay}, []time.Duration{day}, []shape{sliding, clock, tiled}},
	{
		[]Measure{Tokens, InputTokens, OutputTokens},
		[]time.Duration{time.Minute},
		[]shape{sliding, clock},
	},
}

// kind is the measure that a rule counts, and the spans in which it counts.
type kind struct {
	measure Measure
	span    time.Duration // 0 for requests in flight
	shape   shape
}

// rule is a kind of rule with the evidence for and against it.
type rule struct {
	kind
	// A span that does not slide begins after lo and until hi, modulo the span, if placed is true.
	lo, hi time.Duration
	placed bool

	most     float64   // the highest level that was accepted, or -1
	least    float64   // the lowest level that was refused, or infinite
	refusals []refusal // in the order of sending
}

// refusal is a refused request with its level.
type refusal struct {
	request
	level float64
}

// newRules returns a rule of each kind, without evidence, for a limiter that was born at some time.
func newRules(born time.Time) (rules []*rule) {
	for _, k := range kinds {
		for _, m := range k.measures {
			for _, span := range k.spans {
				for _, s := range k.shapes {
					r := &rule{kind: kind{m, span, s}, most: -1, least: math.Inf(1)}
					if s == clock {
						r.lo, r.placed = born.Truncate(span).Sub(born), true
						r.hi = r.lo
					}
					rules = append(rules, r)
				}
			}
		}
	}
	return rules
}

// weigh sums up the evidence of the requests from number epoch on, except for refusals that other
// rules explain. If others may explain some of the rest as well, then only refusals of requests
// that were not permitted count, at levels that were never accepted. Otherwise no more evidence is
// needed once there is a contradiction.
func (r *rule) weigh(g *log, epoch uint64, explained map[uint64]bool, partly bool) {
	r.most, r.least, r.refusals = -1, math.Inf(1), r.refusals[:0]
	r.levels(g, func(q *request, low, high float64) bool {
		switch {
		case q.number < epoch:
		case q.fate == accepted:
			r.most = max(r.most, low)
		case q.fate == refused && !explained[q.number] &&
			(q.measure == Unnamed || q.measure == r.measure):
			r.refusals = append(r.refusals, refusal{*q, high})
			r.least = min(r.least, high)
		}
		return partly || r.least > r.most
	})
	if partly {
		r.refusals = slices.DeleteFunc(r.refusals, func(f refusal) bool {
			return f.permitted || f.level <= r.most
		})
		r.least = math.Inf(1)
		for _, f := range r.refusals {
			r.least = min(r.least, f.level)
		}
	}
}

// possible reports whether the rule explains the refusals.
func (r *rule) possible() bool { return r.least > r.most && !math.IsInf(r.least, 1) }

// Bursts that confirm a rule are this part of its span apart, because closer ones may have had
// another cause. There are fewer of these beside a rule that is surely right.
const apart, apartBeside = 0.6, 0.25

// confirmed reports whether the rule is to be obeyed. One burst is enough if the endpoint named
// requests in flight as its limit.
func (r *rule) confirmed(apart float64) bool {
	if !r.possible() || r.limit() < 1 {
		return false
	}
	first, last := r.refusals[0], r.refusals[len(r.refusals)-1]
	bursts := slices.ContainsFunc(r.refusals, func(f refusal) bool { return f.burst != first.burst })
	named := slices.ContainsFunc(r.refusals, func(f refusal) bool { return f.measure == InFlight })
	return named || bursts && last.sent-first.sent >= max(
		time.Duration(apart*float64(r.span)), 500*time.Millisecond)
}

// limit returns the highest level that the rule permits. A limit of tokens is known only roughly.
func (r *rule) limit() int {
	if r.measure >= Tokens {
		return int((r.most + r.least) / 2)
	}
	return int(math.Ceil(r.least)) - 1
}
