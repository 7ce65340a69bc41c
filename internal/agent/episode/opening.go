package episode

import (
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// An opening is how an episode begins: the tools of the plan that the model is shown, and the
// messages. Episodes share both and never change them.
type opening struct {
	plan     []string
	messages []assay.Message
	// later has the parts of the plan for the user's next messages.
	later []*workflow.Plan
}

// openings keeps the latest openings, because an experiment's cells advance together, so each of
// them is needed again for repeats and other models, often at the same moment. It is safe for
// concurrent use.
type openings struct {
	known *lru.Cache[openingKey, func() (*opening, error)] // which render it once
}

// An openingKey has everything that [GivenPlan] and the templates depend on. Tasks are compared by
// their address, because they never change.
type openingKey struct {
	task                            *assay.Task
	variant, severity               string
	seed                            uint64 // of a flaw, or 0
	reliability                     float64
	faults                          bool
	world, protocol, tools, several string
	turns, calls                    int
	offered                         string // the interface
}

// The most openings that are kept, and the size in bytes of the largest.
const maxOpenings, largestOpening = 512, 64 << 10

func newOpenings() *openings {
	known, err := lru.New[openingKey, func() (*opening, error)](maxOpenings)
	if err != nil {
		panic("episode: " + err.Error()) // the size is positive
	}
	return &openings{known}
}

func keyOf(trial *assay.Trial, task *assay.Task) openingKey {
	k := openingKey{
		task: task, variant: trial.Variant, severity: trial.Severity, seed: trial.Seed,
		reliability: trial.Reliability, faults: trial.Faults != "",
		world: trial.World, protocol: trial.Protocol, tools: trial.Tools,
		several: trial.SeveralCalls, turns: trial.Setting.Turns, calls: trial.Calls,
		offered: trial.Interface,
	}
	if slices.Contains(assay.PlainVariants, trial.Variant) {
		k.seed = 0
	}
	return k
}

// opening returns the opening of a trial. It fails like [GivenPlan].
func (r *Runner) opening(trial *assay.Trial, task *assay.Task) (*opening, error) {
	key := keyOf(trial, task)
	render, known := r.openings.known.Get(key)
	if !known {
		render = sync.OnceValues(func() (*opening, error) {
			return newOpening(r.catalog, trial, task)
		})
		if earlier, ok, _ := r.openings.known.PeekOrAdd(key, render); ok {
			render = earlier
		}
	}
	o, err := render()
	if err != nil || len(o.messages[0].Content)+len(o.messages[1].Content) > largestOpening {
		r.openings.known.Remove(key)
	}
	return o, err
}

func newOpening(
	catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
) (*opening, error) {
	plan, err := GivenPlan(catalog, trial, task)
	if err != nil {
		return nil, err
	}
	e := &episode{Runner: &Runner{catalog: catalog}, trial: trial, task: task, offer: newOffer(catalog, trial, task)}
	first, o := plan, new(opening)
	if plan != nil {
		for _, s := range plan.Steps {
			o.plan = append(o.plan, s.Tool)
		}
		first, o.later = plan.Split()
	}
	o.messages = e.introduce(first)
	o.plan, o.messages = slices.Clip(o.plan), slices.Clip(o.messages)
	return o, nil
}
