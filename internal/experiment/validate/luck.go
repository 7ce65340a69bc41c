package validate

import (
	"fmt"
	"math"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A loss is a way in which a task's own plan failed on tools that fail sometimes.
type loss struct {
	tool  string // "" if no tool failed
	fault assay.ToolFault
	again bool   // the tool was called again
	rule  string // the condition of full success that did not hold
}

// lossOf finds the tool whose fault made an episode fail: one whose call happened although the
// answer did not say so, or else the first one that failed.
func lossOf(calls []assay.CallRecord, rule string) loss {
	l := loss{rule: rule}
	for i := range calls {
		c := &calls[i]
		if c.Met() == "" || l.tool != "" && !(c.Happened() && !c.OK) {
			continue
		}
		l.tool, l.fault = c.Tool, c.Met()
		l.again = slices.ContainsFunc(calls[i+1:], func(o assay.CallRecord) bool { return o.Tool == c.Tool })
		if c.Happened() && !c.OK {
			break
		}
	}
	return l
}

// String says what happened, and what a user can do about it.
func (l loss) String() string {
	const untrue = "it was not true that "
	switch {
	case l.tool == "":
		return untrue + l.rule
	case l.fault.Happens() && l.again:
		return fmt.Sprintf("a call of %[1]s happened although its answer was an error (fault %[2]s), and was "+
			"made again, and then %[3]s; to correct that, let %[1]s ignore or refuse what it has done already, or leave %[2]s out of "+
			"its faults", l.tool, l.fault, untrue+l.rule)
	}
	return fmt.Sprintf("a call of %s met the fault %s, and then %s", l.tool, l.fault, untrue+l.rule)
}

// lose counts an episode in which the plan failed.
func (r *result) lose(l loss) {
	if r.losses == nil {
		r.losses = make(map[loss]int)
	}
	r.losses[l]++
}

// excess is by how many full successes the oracle differs from its plan.
func (r *result) excess() float64 { return float64(r.full) - r.planned }

// isWithin reports whether full successes are as planned. If hardly any episode can fail, a
// difference of one episode is not evidence.
func isWithin(excess, variance float64) bool {
	return math.Abs(excess) <= stat.Z999*math.Sqrt(variance)+1
}

// nameLuck adds a finding to each task that makes the oracle of a library with own tools differ from
// the planner: those that differ by themselves, or the one that differs most.
func (v *validator) nameLuck(excess float64) {
	direction := math.Copysign(1, excess)
	most := slices.MaxFunc(indexes(v.results), func(a, b int) int {
		return int(math.Copysign(1, direction*(v.results[a].excess()-v.results[b].excess())))
	})
	for i := range v.results {
		r := &v.results[i]
		apart := direction*r.excess() > 0 && !isWithin(r.excess(), r.variance)
		switch {
		case r.episodes == 0 || !apart && i != most:
		case direction < 0:
			r.doubt(LosesToLuck, r.lost())
		default:
			r.doubt(BeatsOptimum, fmt.Sprintf("%d of %d episodes, and the optimum is %.2f %%; the judge may ask "+
				"for less than the plan does", r.full, r.episodes, 100*r.planned/float64(r.episodes)))
		}
	}
}

// lost words how often the plan failed, and the most frequent way.
func (r *result) lost() string {
	text := fmt.Sprintf("%d of %d episodes fail at reliability %v, where an agent that always knows what has "+
		"happened succeeds in %.2f %%",
		r.episodes-r.full, r.episodes, Reliability, 100*r.planned/float64(r.episodes))
	var often []string
	most := 0
	for l, n := range r.losses {
		switch {
		case n > most:
			often, most = []string{l.String()}, n
		case n == most:
			often = append(often, l.String())
		}
	}
	if most == 0 {
		return text
	}
	return fmt.Sprintf("%s; in %d of them, %s", text, most, slices.Min(often))
}

func indexes[T any](all []T) []int {
	list := make([]int, len(all))
	for i := range all {
		list[i] = i
	}
	return list
}
