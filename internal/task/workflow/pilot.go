package workflow

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// pilotRules are those of the pilot world: any call can work, less probably
// where dependencies are missing or calls failed lately. What is worth calling
// is the next required tool, or a dependency that is not required, so that no
// success breaks the required order.
type pilotRules struct {
	work
	extra set // dependencies that can be inserted
	// chances are those of a call, by missing dependencies and by the outcomes
	// of the latest calls.
	chances     [][recents]float64
	noEarlyStop bool
}

// state.recent holds the last outcomes, newest in the lowest bit, below a
// leading one: 0 or 1 before any call, 8 after three failures. Where five
// failures in a row end the episode, the fourth gives fourFailed and the fifth
// fiveFailed.
const (
	threeFailed = 8
	fourFailed  = 16
	fiveFailed  = 17
	recents     = 17 // how many there are but for the end
)

// maxExtra bounds how many dependencies can be inserted. The deepest chain of
// the known tools has four.
const maxExtra = 10

func pilotProblem(catalog *assay.Catalog, problem Problem) (work, rules) {
	var extra []string
	if !problem.InOrder {
		extra = Missing(catalog, problem.Required)
		extra = extra[:min(len(extra), maxExtra)]
	}
	w := newWork(catalog, problem.Required, slices.Concat(problem.Required, extra))
	r := &pilotRules{noEarlyStop: problem.NoEarlyStop}
	for _, name := range extra {
		r.extra |= only(w.number(name))
	}
	w.matters |= r.extra
	r.work = w
	lacking := 0
	for _, t := range w.tools {
		lacking = max(lacking, t.lacking+t.needs.len())
	}
	for n := range lacking + 1 {
		r.chances = append(r.chances, pilotChances(problem.Reliability, n))
	}
	return w, r
}

func pilotChances(reliability float64, lacking int) (chances [recents]float64) {
	deps := slices.Repeat([]world.Dependency{world.Missing}, lacking)
	for recent := range chances {
		chances[recent] = world.PilotChance(reliability, deps, outcomes(recent))
	}
	return chances
}

// outcomes returns those of the last three calls, oldest first, and none while
// there are fewer.
func outcomes(recent int) []bool {
	switch {
	case recent < threeFailed:
		return nil
	case recent == fourFailed:
		recent = threeFailed
	}
	return []bool{recent&4 != 0, recent&2 != 0, recent&1 != 0}
}

// worth includes dependencies that nothing depends on any more: a success
// among the latest calls is of use too.
func (r *pilotRules) worth(s state) set { return only(r.next(s)) | r.extra&^s.have }

func (r *pilotRules) chance(s state, tool int) float64 {
	t := r.tools[tool]
	return r.chances[t.lacking+(t.needs&^s.have).len()][s.recent]
}

func (r *pilotRules) remember(s state, _ int, ok bool) state {
	switch {
	case ok:
		s.recent = lastThree(withoutStreak(s.recent)<<1 | 1)
	case r.noEarlyStop || s.recent < fourFailed && s.recent != threeFailed:
		s.recent = lastThree(max(s.recent, 1) << 1)
	case s.recent == threeFailed:
		s.recent = fourFailed
	default:
		s.recent = fiveFailed
	}
	return s
}

func (r *pilotRules) stopped(s state) bool { return s.recent == fiveFailed }

// withoutStreak forgets which of equal last outcomes begin a longer streak.
func withoutStreak(recent uint16) uint16 {
	switch {
	case recent == 0:
		return 1
	case recent >= fourFailed:
		return threeFailed
	}
	return recent
}

// lastThree keeps three outcomes below the leading one.
func lastThree(recent uint16) uint16 {
	if recent < 2*threeFailed {
		return recent
	}
	return recent&(threeFailed-1) | threeFailed
}

// Missing returns, by name, the tools that the required ones depend on,
// directly or through others, and that are not required themselves.
func Missing(catalog *assay.Catalog, required []string) []string {
	var missing []string
	todo := slices.Clone(required)
	for len(todo) > 0 {
		tool, _ := catalog.Tool(todo[0])
		todo = todo[1:]
		for _, d := range tool.Dependencies {
			if !slices.Contains(required, d) && !slices.Contains(missing, d) {
				missing = append(missing, d)
				todo = append(todo, d)
			}
		}
	}
	slices.Sort(missing)
	return missing
}
