package episode

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// defaultAfter is the number of rounds after which a loop of any kind is noticed. Three rounds are
// hardly an accident, and they leave most of an episode of ten turns. Trials keep only rules that
// differ, so another number would change the rules of stored trials.
const defaultAfter = 3

// DefaultLoops returns a world's default rules. The original had no rule for searches, so the pilot
// world only records search loops.
func DefaultLoops(worldName string) assay.LoopRules {
	rules := make(assay.LoopRules, len(assay.LoopKinds))
	d := world.Find(worldName)
	stops := d == nil || d.StopsSearches
	for _, kind := range assay.LoopKinds {
		rules[kind] = assay.LoopRule{After: defaultAfter, Stop: kind == assay.SearchLoop && stops}
	}
	return rules
}

// rulesOf returns the loop rules of a trial.
func rulesOf(trial *assay.Trial) (assay.LoopRules, error) {
	if trial.Loops == "" {
		return DefaultLoops(trial.World), nil
	}
	return assay.ParseLoopRules(trial.Loops)
}
