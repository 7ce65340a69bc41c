package pilot

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
)

// rules are this world's rules for a policy. Any call can succeed, less often if dependencies are
// missing or recent calls have failed. A call is worth making if its tool is the next required one,
// a dependency that is not required, so that no success breaks the required order, or any other tool
// that does no harm, because a success among the latest calls helps the next one. That a failure
// would spoil the earlier success of a dependency is left out.
type rules struct {
	work  policy.Work
	extra policy.Set // dependencies that can be inserted, and a tool that has no part in the work
	// chances are indexed by the number of missing dependencies and the latest outcomes.
	chances     [][recents]float64
	inOrder     bool
	noEarlyStop bool
}

// State.Recent holds the last outcomes as bits, the newest in the lowest bit, below a leading 1.
// It is 0 or 1 before any call and 8 after three failures. If five failures in a row end the
// episode, the fourth gives fourFailed and the fifth fiveFailed.
const (
	threeFailed = 8
	fourFailed  = 16
	fiveFailed  = 17
	recents     = 17 // number of values, without fiveFailed
)

// maxExtra is the maximum number of dependencies that can be inserted. The deepest chain of the
// known tools has four.
const maxExtra = 10

func planner(catalog *assay.Catalog, problem policy.Problem) (policy.Work, policy.Rules) {
	var extra []string
	if !problem.InOrder {
		extra = policy.Missing(catalog, problem.Required)
		extra = extra[:min(len(extra), maxExtra)]
	}
	names := slices.Concat(problem.Required, extra)
	w := policy.NewWork(catalog, problem.Required, names)

	r := &rules{inOrder: problem.InOrder, noEarlyStop: problem.NoEarlyStop}
	for _, name := range extra {
		r.extra |= policy.Only(w.Number(name))
	}
	w.Matters |= r.extra
	if other := easiest(catalog, names); other != "" && !r.inOrder {
		r.extra |= policy.Only(len(w.Tools))
		w.Tools = append(w.Tools, policy.Part{Name: other})
	}
	r.work = w

	lacking := 0
	for _, t := range w.Tools {
		lacking = max(lacking, t.Lacking+t.Needs.Len())
	}
	for n := range lacking + 1 {
		r.chances = append(r.chances, chances(problem.Reliability, n))
	}
	return w, r
}

func chances(reliability float64, lacking int) (chances [recents]float64) {
	deps := slices.Repeat([]Dependency{Missing}, lacking)
	for recent := range chances {
		chances[recent] = Chance(reliability, deps, outcomes(recent))
	}
	return chances
}

// outcomes returns the outcomes of the last three calls, oldest first. It returns nil if there
// were fewer.
func outcomes(recent int) []bool {
	switch {
	case recent < threeFailed:
		return nil
	case recent == fourFailed:
		recent = threeFailed
	}
	return []bool{recent&4 != 0, recent&2 != 0, recent&1 != 0}
}

// easiest returns the tool outside a list with the fewest dependencies, or "".
func easiest(catalog *assay.Catalog, names []string) string {
	others := slices.DeleteFunc(slices.Clone(catalog.All()), func(t assay.Tool) bool {
		return slices.Contains(names, t.Name)
	})
	if len(others) == 0 {
		return ""
	}
	return slices.MinFunc(others, func(a, b assay.Tool) int {
		return cmp.Compare(len(a.Dependencies), len(b.Dependencies))
	}).Name
}

// Worth implements [policy.Rules].
func (r *rules) Worth(s policy.State) policy.Set {
	worth := policy.Only(r.work.Next(s)) | r.extra
	if r.inOrder {
		return worth
	}
	for _, tool := range r.work.Required[:s.Done] {
		worth |= policy.Only(tool)
	}
	return worth
}

// Chance implements [policy.Rules].
func (r *rules) Chance(s policy.State, tool int) float64 {
	t := r.work.Tools[tool]
	return r.chances[t.Lacking+(t.Needs&^s.Have).Len()][s.Recent]
}

// Remember implements [policy.Rules].
func (r *rules) Remember(s policy.State, _ int, ok bool) policy.State {
	switch {
	case ok:
		s.Recent = lastThree(withoutStreak(s.Recent)<<1 | 1)
	case r.noEarlyStop || s.Recent < fourFailed && s.Recent != threeFailed:
		s.Recent = lastThree(max(s.Recent, 1) << 1)
	case s.Recent == threeFailed:
		s.Recent = fourFailed
	default:
		s.Recent = fiveFailed
	}
	return s
}

// Ruins reports whether a success of a tool breaks the required order: it is the first one of a tool
// whose turn has not come.
func (r *rules) Ruins(s policy.State, tool int) bool {
	return tool != policy.None && tool != r.work.Next(s) &&
		slices.Contains(r.work.Required[s.Done:], tool) && !slices.Contains(r.work.Required[:s.Done], tool)
}

// Stopped implements [policy.Rules].
func (r *rules) Stopped(s policy.State) bool { return s.Recent == fiveFailed }

// withoutStreak drops the distinction between three and more failures in a row.
func withoutStreak(recent uint16) uint16 {
	switch {
	case recent == 0:
		return 1
	case recent >= fourFailed:
		return threeFailed
	}
	return recent
}

// lastThree keeps three outcomes below the leading 1.
func lastThree(recent uint16) uint16 {
	if recent < 2*threeFailed {
		return recent
	}
	return recent&(threeFailed-1) | threeFailed
}
