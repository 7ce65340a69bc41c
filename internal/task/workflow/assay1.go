package workflow

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// assay1Rules are those of the world assay-1. A call whose dependencies have
// not all succeeded is a mistake, and so never worth making. What has to be
// called is known from the start, and nothing beats calling a tool again that
// has failed: it has to work in the end, and whatever else is called meanwhile
// would have to work too.
//
// Only where failures both last and cluster, and after calls that the policy
// would not have made itself, another order may be a little better.
//
// state.recent is 1 when the latest call failed.
type assay1Rules struct {
	work
	// rest holds, for each number of required tools done, what those to come
	// depend on, directly or through others.
	rest []set
	// chances are those of a call by whether the latest call of the same tool
	// failed, and the latest of any tool.
	chances [2][2]float64
}

func assay1Problem(catalog *assay.Catalog, problem Problem) (work, rules) {
	r := &assay1Rules{}
	r.work = newWork(catalog, problem.Required, distinct(Sequence(catalog, problem.Required)))
	r.rest = make([]set, len(r.required)+1)
	var toCome set
	for i, tool := range slices.Backward(r.required) {
		toCome |= only(tool)
		r.rest[i] = r.below(toCome)
	}
	setting := assay.Setting{Persistence: problem.Persistence, Burst: problem.Burst}
	for same := range r.chances {
		for latest := range r.chances[same] {
			r.chances[same][latest] = world.Assay1Chance(setting, problem.Reliability, same > 0, latest > 0)
		}
	}
	return r.work, r
}

// distinct drops all but the first of equal names.
func distinct(names []string) []string {
	var kept []string
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// below returns what tools depend on, directly or through others. Dependencies
// have lower numbers.
func (r *assay1Rules) below(tools set) set {
	var found set
	for i, t := range slices.Backward(r.tools) {
		if tools.has(i) || found.has(i) {
			found |= t.needs
		}
	}
	return found
}

// worth is the next required tool, or the first dependency that it waits for:
// the lower numbers are those of the earlier calls in the task's sequence.
func (r *assay1Rules) worth(s state) set {
	if next := r.next(s); next != none && r.callable(s, next) {
		return only(next)
	}
	for tool := range (r.rest[s.done] &^ s.have).all {
		if r.callable(s, tool) {
			return only(tool)
		}
	}
	return 0
}

// callable reports whether all dependencies of a tool have succeeded.
func (r *assay1Rules) callable(s state, tool int) bool {
	t := r.tools[tool]
	return t.lacking == 0 && t.needs&^s.have == 0
}

func (r *assay1Rules) chance(s state, tool int) float64 {
	same := 0
	if s.failed.has(tool) {
		same = 1
	}
	return r.chances[same][s.recent]
}

func (r *assay1Rules) remember(s state, tool int, ok bool) state {
	if ok {
		s.recent = 0
		s.failed &^= only(tool)
	} else {
		s.recent = 1
		s.failed |= only(tool)
	}
	return s
}

func (r *assay1Rules) stopped(state) bool { return false }
