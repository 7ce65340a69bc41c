package assay

import (
	"fmt"
	"strings"
)

// The tool settings: how the tools of a task are presented to the model.
const (
	// Discover gives the model three functions with which it finds the library's tools,
	// reads about them and executes them.
	Discover = "discover"
	// Listed makes each tool of the library a separate function.
	Listed = "listed"
)

// ToolSettings lists the tool settings, the default first.
var ToolSettings = []string{Discover, Listed}

// Efforts lists how hard a model can be asked to think, from the least. An endpoint knows some.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// ToolChoices lists the values of [Sampling.ToolChoice].
var ToolChoices = []string{"auto", "required", "none"}

// The protocols: how a model acts.
const (
	Native = "native" // function calls, as the endpoint's API defines them
	Tags   = "tags"   // tags in the text of a reply
)

// Protocols lists the protocols, the default first.
var Protocols = []string{Native, Tags}

// A LoopRule defines when a kind of loop is noticed, and the reaction to it.
type LoopRule struct {
	// After is how many times in a row something has to happen: calls for repeat and error,
	// replies for search and monologue, rounds of two calls for ping_pong. 0 means never.
	After int
	// Stop ends the episode when the loop is noticed. Otherwise the loop is only recorded.
	Stop bool
}

// LoopRules holds a rule for each kind of loop. A kind without a rule is never noticed.
type LoopRules map[LoopKind]LoopRule

// noLoops spells rules that notice no loop.
const noLoops = "none"

// String spells the rules as a [Setting] holds them, such as
// "repeat=3 search=3! ping_pong=3", where ! stands for stop.
func (r LoopRules) String() string {
	var words []string
	for _, kind := range LoopKinds {
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
		return noLoops
	}
	return strings.Join(words, " ")
}

// LimitsBest reports whether a setting has limits that the best policy does not know, so that its
// chance is unknown: on tokens, on dollars, or by a rule that ends an episode in a loop. The best
// policy does not search, so the rule for [SearchLoop] is not one of them.
func (s *Setting) LimitsBest() bool {
	rules, err := ParseLoopRules(s.Loops)
	stops := err != nil
	for kind, rule := range rules {
		stops = stops || rule.Stop && kind != SearchLoop
	}
	return stops || s.Tokens > 0 || s.USD > 0
}

// ParseLoopRules reads the spelling of [LoopRules.String].
func ParseLoopRules(text string) (LoopRules, error) {
	rules := make(LoopRules)
	if text == noLoops {
		return rules, nil
	}
	for word := range strings.FieldsSeq(text) {
		var rule LoopRule
		kind, number, _ := strings.Cut(word, "=")
		number, rule.Stop = strings.CutSuffix(number, "!")
		if _, err := fmt.Sscanf(number, "%d", &rule.After); err != nil {
			return nil, fmt.Errorf("loop rule %q: %w", word, err)
		}
		rules[LoopKind(kind)] = rule
	}
	return rules, nil
}
