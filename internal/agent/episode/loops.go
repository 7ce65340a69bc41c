package episode

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// defaultAfter is how often in a row a loop of any kind has to go round. Three
// times is no accident, and leaves most of ten turns.
const defaultAfter = 3

// DefaultLoops returns the rules of a world. The original had no rule for
// searches, so in pilot they are recorded like the others.
func DefaultLoops(worldName string) assay.LoopRules {
	rules := make(assay.LoopRules, len(assay.LoopKinds))
	d := world.Find(worldName)
	stops := d == nil || d.StopsSearches
	for _, kind := range assay.LoopKinds {
		rules[kind] = assay.LoopRule{After: defaultAfter, Stop: kind == assay.SearchLoop && stops}
	}
	return rules
}

// rulesOf returns the rules of a trial.
func rulesOf(trial *assay.Trial) (assay.LoopRules, error) {
	if trial.Loops == "" {
		return DefaultLoops(trial.World), nil
	}
	return assay.ParseLoopRules(trial.Loops)
}
