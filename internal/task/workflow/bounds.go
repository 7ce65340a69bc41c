package workflow

import (
	"fmt"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// Bounds remembers how probable full success is under the best policy. Tasks
// of one kind share it. It is safe for concurrent use.
type Bounds struct {
	catalog *assay.Catalog

	mu    sync.Mutex
	known map[string]float64 // by problem; at most maxKnown
}

// maxKnown bounds what is remembered to some megabytes.
const maxKnown = 1 << 15

// NewBounds returns the bounds of tasks over a catalog.
func NewBounds(catalog *assay.Catalog) *Bounds {
	return &Bounds{catalog: catalog, known: make(map[string]float64)}
}

// Best is the probability with which the best policy fully succeeds at a
// trial of a task with these required tools, by the rules of the trial's
// world, with one call a reply.
func (b *Bounds) Best(trial *assay.Trial, required []string) float64 {
	problem := ProblemOf(trial, required)
	key := fmt.Sprintf("%#v", problem)
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.known[key]
	if !ok {
		if len(b.known) == maxKnown {
			clear(b.known)
		}
		p = Solve(b.catalog, problem).Success()
		b.known[key] = p
	}
	return p
}

// ProblemOf returns the problem that a trial poses: with one call a reply, and
// in assay-1 with one reply left to say that the work is done.
func ProblemOf(trial *assay.Trial, required []string) Problem {
	p := Problem{World: trial.World, Required: required, Reliability: trial.Reliability, Calls: trial.Setting.Turns}
	if trial.World == world.Assay1Name {
		p.Calls = max(0, p.Calls-1)
		p.Persistence, p.Burst = trial.Persistence, trial.Burst
	}
	return p
}
