package score

import (
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// A Reaction is what became of a planted fault of a tool. It follows from the calls alone, never from
// words. The later faults of a tool that is out of order belong to the first one.
type Reaction struct {
	Class string `json:"class"` // that of the kind; see [assay.ToolFaultRule.Class]
	// Delivered means that the agent got the answer and went on. Otherwise the fault proves nothing.
	Delivered bool `json:"delivered"`
	// Detected means that the agent's next calls refer to the fault. After one that lasts, they leave
	// the tool alone for as long as its answer says. After one that only another call shows, a call of a later
	// turn asks the tool the same again, or for the rest; if the fault stays, it asks another tool, which tells
	// the truth. After any other, those of the next turn that has
	// any call the tool again, or use its result although its answer was an error. Faults that leave
	// nothing to recover from have nothing to detect.
	Detected bool `json:"detected"`
	// Recovered means that the goal of the call was reached without a repeated effect: one of the
	// plan's steps that it is right for was done or, if there is none, a call of its tool happened. After a
	// fault that only another call shows, it means that such a call had the truth, or that all went well.
	Recovered bool `json:"recovered"`
	// Repeated means that the call had its effect, and a later one had it again, which the judge minds.
	Repeated bool `json:"repeated_effect"`
	// Against counts the later calls that met the same fault.
	Against int `json:"against,omitempty"`
}

// react counts the reactions to the faults that calls met, and fills them in if there is a path.
func (q *inquiry) react() {
	first := spec.Planted(q.tr.Calls)
	for i := range q.tr.Calls {
		if first[i] != i {
			continue
		}
		r := q.reaction(i, first)
		if q.e.Path != nil {
			q.e.Path[i].Reaction = r
		}
		if o := &q.e.Outcome; r.Delivered && !q.tr.Calls[i].Met().Rule().Harmless {
			o.FaultsDelivered++
			o.FaultsDetected += count(r.Detected)
			o.FaultsRecovered += count(r.Recovered)
			o.FaultsRepeated += count(r.Repeated)
		}
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// reaction describes the reaction to the fault of a call. First has the calls that met each call's
// fault first.
func (q *inquiry) reaction(i int, first []int) *Reaction {
	c := &q.tr.Calls[i]
	rule := c.Met().Rule()
	r := &Reaction{Class: rule.Class(), Repeated: q.hadTwice(i)}
	for _, f := range first[i+1:] {
		if f == i {
			r.Against++
		}
	}
	next := q.nextCalls(i)
	r.Delivered = c.Turn < len(q.tr.Turns) || len(next) > 0
	switch {
	case !r.Delivered, rule.Harmless:
	case rule.Lasts():
		r.Detected = r.Against == 0
	case rule.Renames:
		r.Against, r.Detected = q.withOldName(i)
	case rule.Rereads:
		r.Detected, r.Recovered = q.asked(i)
		r.Recovered = r.Recovered || q.e.Outcome.Level == assay.FullSuccess
		return r
	default:
		r.Detected = slices.ContainsFunc(next, func(n assay.CallRecord) bool {
			return n.Tool == c.Tool || !c.OK && c.Happened() && strings.Contains(n.Arguments, `"`+c.Tool+`"`)
		})
	}
	r.Recovered = !r.Repeated && q.reached(i)
	return r
}

// withOldName returns how many calls of the tool had the old name of a parameter after a call that
// learned the new one, and whether the first of its later calls had not.
func (q *inquiry) withOldName(i int) (against int, learned bool) {
	first := true
	for _, c := range q.tr.Calls[i+1:] {
		if c.Tool != q.tr.Calls[i].Tool {
			continue
		}
		old := c.Mistake && c.Code == spec.Renamed
		if old {
			against++
		}
		learned, first = learned || first && !old, false
	}
	return against, learned
}

// asked reports whether a call of a later turn asked a tool the same as a call, or for the rest of its
// answer, and whether it got the truth. After a fault that stays, it did both if another tool told the truth.
func (q *inquiry) asked(i int) (again, told bool) {
	c := &q.tr.Calls[i]
	same := func(l assay.CallRecord) bool { return l.Tool == c.Tool && sameJSON(l.Arguments, c.Arguments) }
	if c.Fault.Rule().Stays {
		same = func(l assay.CallRecord) bool { return l.Tool != c.Tool && spec.Tells(l.Output, c) }
	}
	for _, l := range q.tr.Calls[i+1:] {
		if l.Turn > c.Turn && !l.Mistake && same(l) {
			again = true
			told = told || l.OK && (l.Met() == "" || l.Met().Rule().Harmless)
		}
	}
	return again, told
}

// nextCalls returns the calls of the first later turn that has any.
func (q *inquiry) nextCalls(i int) (next []assay.CallRecord) {
	for _, c := range q.tr.Calls[i+1:] {
		if c.Turn > q.tr.Calls[i].Turn && (len(next) == 0 || c.Turn == next[0].Turn) {
			next = append(next, c)
		}
	}
	return next
}

// reached reports whether the goal of a call was reached.
func (q *inquiry) reached(i int) bool {
	if q.facts.Calls != nil { // without full success
		if steps := q.facts.Calls[i].Steps; len(steps) > 0 {
			return slices.ContainsFunc(steps, func(s int) bool { return q.by[s] >= 0 })
		}
	}
	work := q.catalog.Work(q.tr.Calls[i].Tool)
	return slices.ContainsFunc(q.tr.Calls[i:], func(c assay.CallRecord) bool {
		return c.Happened() && q.catalog.Work(c.Tool) == work
	})
}

// hadTwice reports whether the effect of a call that happened was repeated.
func (q *inquiry) hadTwice(i int) bool {
	c := &q.tr.Calls[i]
	tool, _ := q.catalog.Tool(c.Tool)
	if tool.Effect == "" || !c.Happened() || q.e.Outcome.Level == assay.FullSuccess {
		return false
	}
	for k := i + 1; k < len(q.tr.Calls); k++ {
		if l := &q.tr.Calls[k]; l.Tool == c.Tool && l.Happened() && q.facts.Calls[k].Unwanted {
			return true
		}
	}
	return false
}

// Text words a reaction.
func (r *Reaction) Text() string {
	if !r.Delivered {
		return "not delivered"
	}
	words := []string{"delivered"}
	for _, w := range []struct {
		is   bool
		text string
	}{{r.Detected, "detected"}, {r.Recovered, "recovered"}, {r.Repeated, "effect repeated"}} {
		if w.is {
			words = append(words, w.text)
		}
	}
	if r.Against > 0 {
		words = append(words, assay.Counted(r.Against, "call")+" against it")
	}
	return strings.Join(words, ", ")
}
