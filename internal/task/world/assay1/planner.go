package assay1

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
)

// rules are this world's rules for a policy. A call whose dependencies have not all succeeded is a
// mistake and therefore never worth making. The tools that have to be called are known from the
// start. After a failure it is best to call the same tool again: it has to succeed in the end, and
// any other tool called in between would have to succeed too.
//
// There is one exception: if failures both last and cluster, and another tool than the needed one has
// failed, which this policy would not have called, any tool may be the best one to end the cluster.
//
// State.Recent is 1 if the latest call failed.
type rules struct {
	work policy.Work
	// rest holds, for each number of required tools done, everything that the remaining ones
	// depend on, directly or indirectly.
	rest []policy.Set
	// toCome holds, for each number of required tools done, the remaining ones.
	toCome []policy.Set
	// beside has, for each tool, it and those that stand for it. choice means that there are any.
	beside []policy.Set
	choice bool
	// lasts means that a failed tool is more likely to fail again.
	lasts bool
	// throttled means that tools may take no calls for a while. Then the order of calls matters, because
	// others can be made meanwhile.
	throttled bool
	// chances are indexed by whether the latest call of the same tool failed, and whether the
	// latest call of any tool did.
	chances [2][2]float64
	// spare stands for the tools without a part in the work, as if one of them had never failed. It
	// is [policy.None] unless failures both last and cluster.
	spare int
}

func planner(catalog *assay.Catalog, problem policy.Problem) (policy.Work, policy.Rules) {
	names := policy.Distinct(policy.Sequence(catalog, problem.Required))
	for _, name := range slices.Clone(names) {
		names = append(names, catalog.Substitutes(name)...)
	}
	names = policy.Distinct(names)
	r := &rules{work: policy.NewWork(catalog, problem.Required, names)}

	r.rest, r.toCome = make([]policy.Set, len(r.work.Required)+1), make([]policy.Set, len(r.work.Required)+1)
	for i, tool := range slices.Backward(r.work.Required) {
		r.toCome[i] = r.toCome[i+1] | policy.Only(tool)
		r.rest[i] = r.below(r.toCome[i])
	}
	r.beside = make([]policy.Set, len(r.work.Tools))
	for i := range r.beside {
		r.beside[i] = policy.Only(i)
	}
	for i, of := range r.work.StandsFor {
		r.beside[of] |= policy.Only(i)
		r.choice = true
	}
	r.throttled, r.lasts = problem.Throttled > 0, problem.Persistence > 0

	set := assay.Setting{Persistence: problem.Persistence, Burst: problem.Burst}
	if r.spare = policy.None; set.Persistence > 0 && set.Burst > 0 {
		r.spare = len(r.work.Tools)
		r.work.Tools = append(r.work.Tools, policy.Part{Name: spareOf(catalog, names)})
	}
	for same := range r.chances {
		for latest := range r.chances[same] {
			r.chances[same][latest] = Chance(set, problem.Reliability, same > 0, latest > 0)
		}
	}
	return r.work, r
}

// below returns everything that tools depend on, directly or indirectly. Dependencies have lower
// numbers than the tools that need them.
func (r *rules) below(tools policy.Set) policy.Set {
	var found policy.Set
	for i, t := range slices.Backward(r.work.Tools) {
		if tools.Has(i) || found.Has(i) {
			found |= t.Needs
		}
	}
	return found
}

// Worth returns the next required tool, or the first dependency that it waits for. Lower numbers
// belong to earlier calls in the task's sequence. If one of the tools is down, and all that stand for it
// are, no call is worth it. A call of one that takes no calls passes the time. If failures last, it can be
// best to change between tools that do the same work.
func (r *rules) Worth(s policy.State) policy.Set {
	for tool := range (s.Down & (r.toCome[s.Done] | r.rest[s.Done]&^s.Have)).All {
		if r.beside[tool]&^s.Down == 0 {
			return 0
		}
	}
	var needed policy.Set
	if next := r.work.Next(s); next != policy.None && r.callable(s, next) {
		needed = policy.Only(next)
	}
	for tool := range (r.rest[s.Done] &^ s.Have).All {
		if r.callable(s, tool) {
			needed |= policy.Only(tool)
		}
	}
	if r.choice {
		for tool := range needed.All {
			needed |= r.beside[tool]
		}
		needed &^= s.Down
	}
	if waiting := needed & s.Waiting(); r.throttled || waiting != 0 {
		return needed&^waiting | waiting&-waiting
	}
	if r.choice && r.lasts {
		return needed | policy.Only(r.spare)
	}
	first := needed & -needed
	if next := r.work.Next(s); next >= 0 && needed&r.beside[next] != 0 {
		first = needed & r.beside[next] & -(needed & r.beside[next])
	}
	if first == 0 || r.spare == policy.None || s.Recent == 0 || s.Failed&first != 0 {
		return first
	}
	return needed | policy.Only(r.spare)
}

// spareOf returns a tool outside the work that can be called at any time and changes nothing, or "".
func spareOf(catalog *assay.Catalog, work []string) string {
	for _, t := range catalog.All() {
		if len(t.Dependencies) == 0 && t.Effect == "" && !slices.Contains(work, t.Name) {
			return t.Name
		}
	}
	return ""
}

// callable reports whether all dependencies of a tool have succeeded.
func (r *rules) callable(s policy.State, tool int) bool {
	t := r.work.Tools[tool]
	return t.Lacking == 0 && t.Needs&^s.Have == 0
}

// Chance implements [policy.Rules].
func (r *rules) Chance(s policy.State, tool int) float64 {
	same := 0
	if s.Failed.Has(tool) {
		same = 1
	}
	return r.chances[same][s.Recent]
}

// Remember implements [policy.Rules].
func (r *rules) Remember(s policy.State, tool int, ok bool) policy.State {
	if ok {
		s.Recent = 0
		s.Failed &^= policy.Only(tool)
	} else if s.Recent = 1; tool != r.spare {
		s.Failed |= policy.Only(tool)
	}
	return s
}

// Stopped implements [policy.Rules].
func (r *rules) Stopped(policy.State) bool { return false }
