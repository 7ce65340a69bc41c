package episode

import (
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// A LoopRule says when a kind of loop is noticed, and what follows.
type LoopRule struct {
	// After is how many times in a row: calls for repeat and error, replies for
	// search and monologue, rounds of two calls for ping_pong. 0 never.
	After int
	// Stop ends the episode when the loop is noticed; otherwise it is recorded.
	Stop bool
}

// LoopRules holds a rule for each kind of loop; a kind that is missing is never
// noticed.
type LoopRules map[assay.LoopKind]LoopRule

// defaultAfter is how often in a row a loop of any kind has to go round. Three
// times is no accident, and leaves most of ten turns.
const defaultAfter = 3

// DefaultLoops returns the rules of a world. The original had no rule for
// searches, so in pilot they are recorded like the others.
func DefaultLoops(worldName string) LoopRules {
	rules := make(LoopRules, len(assay.LoopKinds))
	for _, kind := range assay.LoopKinds {
		rules[kind] = LoopRule{After: defaultAfter, Stop: kind == assay.SearchLoop && worldName != world.PilotName}
	}
	return rules
}

// String spells the rules as a trial holds them, such as
// "repeat=3 search=3! ping_pong=3", where ! stands for stop.
func (r LoopRules) String() string {
	var words []string
	for _, kind := range assay.LoopKinds {
		rule := r[kind]
		if rule.After == 0 {
			continue
		}
		word := fmt.Sprintf("%s=%d", kind, rule.After)
		if rule.Stop {
			word += "!"
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, " ")
}

// rulesOf returns the rules of a trial.
func rulesOf(trial *assay.Trial) (LoopRules, error) {
	if trial.Loops == "" {
		return DefaultLoops(trial.World), nil
	}
	rules := make(LoopRules)
	if trial.Loops == "none" {
		return rules, nil
	}
	for word := range strings.FieldsSeq(trial.Loops) {
		var rule LoopRule
		kind, number, _ := strings.Cut(word, "=")
		number, rule.Stop = strings.CutSuffix(number, "!")
		if _, err := fmt.Sscanf(number, "%d", &rule.After); err != nil {
			return nil, fmt.Errorf("loop rule %q: %w", word, err)
		}
		rules[assay.LoopKind(kind)] = rule
	}
	return rules, nil
}
