package sim

import (
	"regexp"
	"strings"

	"github.com/assay-eval/assay"
)

// judge gives second opinions, as `assay classify` asks for them. It goes by a
// few words of the history that it is shown: by the last mistake if there is
// one, by what kept the work from being done otherwise. It is no more than a
// stand-in for a model.
func (m *Models) judge(v *view) assay.Message {
	category, confidence, reason := "other", .4, "nothing in the history stands out"
	called := strings.Contains(v.asked, ": worked: ") || strings.Contains(v.asked, ": failed by chance ") || strings.Contains(v.asked, ": mistake ")
	mistakes := mistakeText.FindAllStringSubmatch(v.asked, -1)
	switch {
	case !called && strings.Contains(v.asked, ": lookups: "):
		category, confidence, reason = "max_turns", .8, "the agent only looked tools up"
	case !called:
		category, confidence, reason = assay.CategoryToolCallFormat, .9, "no call was made"
	case len(mistakes) > 0 && mistakes[len(mistakes)-1][1] == "DEPENDENCY_ERROR":
		category, confidence, reason = "dependency", .8, "a call came before what it needs"
	case len(mistakes) > 0:
		category, confidence, reason = "parameter_config", .8, "the arguments of a call were wrong"
	case strings.Contains(v.asked, "Required tools that succeeded: 100 %"):
		category, confidence, reason = "sequence_order", .6, "all required tools succeeded"
	case strings.Contains(v.asked, "It ended so: the agent said that it had finished"):
		category, confidence, reason = "tool_selection", .7, "the agent stopped before all was done"
	}
	return assay.Message{Role: assay.Assistant, Content: encode(map[string]any{"category": category, "confidence": confidence, "reason": reason})}
}

var mistakeText = regexp.MustCompile(`(?m)^turn \d+: mistake ([A-Z_]+):`)
