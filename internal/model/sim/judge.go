package sim

import (
	"regexp"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// judge gives second opinions for `assay store classify`. It looks for phrases in the history that
// it is shown: the last mistake if there is one, or else the reason why the work was not done. It
// is only a stand-in for a real model.
func (m *Models) judge(v *agentView) assay.Message {
	type opinion struct {
		Category   string  `json:"category"`
		Confidence float64 `json:"confidence"`
		Reason     string  `json:"reason"`
	}
	o := opinion{assay.CategoryOther, .4, "nothing in the history stands out"}
	shows := func(text string) bool { return strings.Contains(v.asked, text) }
	called := shows(": worked: ") || shows(": failed by chance ") || shows(": mistake ")
	mistakes := mistakeText.FindAllStringSubmatch(v.asked, -1)
	switch {
	case !called && shows(": lookups: "):
		o = opinion{assay.CategoryMaxTurns, .8, "the agent only looked tools up"}
	case !called:
		o = opinion{assay.CategoryToolCallFormat, .9, "no call was made"}
	case len(mistakes) > 0 && mistakes[len(mistakes)-1][1] == assay1.DependencyFail:
		o = opinion{assay.CategoryDependency, .8, "a call came before what it needs"}
	case len(mistakes) > 0:
		o = opinion{assay.CategoryParameterConfig, .8, "the arguments of a call were wrong"}
	case shows("Required tools that succeeded: 100 %"):
		o = opinion{assay.CategorySequenceOrder, .6, "all required tools succeeded"}
	case shows("It ended so: the agent said that it had finished"):
		o = opinion{assay.CategoryToolSelection, .7, "the agent stopped before all was done"}
	}
	return assay.Message{Role: assay.Assistant, Content: encode(o)}
}

var mistakeText = regexp.MustCompile(`(?m)^turn \d+: mistake ([A-Z_]+):`)
