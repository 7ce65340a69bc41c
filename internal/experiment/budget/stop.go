package budget

import (
	"fmt"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A StopRule stops a cell or a model early when its results will not get better.
type StopRule struct {
	// After is the number of outcomes that must exist before the rule is checked.
	After int `yaml:"after" json:"after"`
	// Below is the threshold of [StopRules.Hopeless], Above the threshold of [StopRules.Malformed].
	Below float64 `yaml:"below" json:"below,omitempty"`
	Above float64 `yaml:"above" json:"above,omitempty"`
	// Per is the scope in which the rule counts outcomes and skips trials: PerCell or PerModel.
	Per string `yaml:"per" json:"per"`
}

// StopRules are the stop rules of an experiment. A nil rule is off.
type StopRules struct {
	// Hopeless is met when the upper end of the 95 % interval of full success is below Below.
	// Without a single full success this takes 16 outcomes for 0.2, 35 for 0.1 and 189 for 0.02.
	Hopeless *StopRule `yaml:"hopeless" json:"hopeless,omitempty"`
	// Malformed is met when more than the share Above of the outcomes are failures without any call
	// that could be carried out.
	Malformed *StopRule `yaml:"malformed" json:"malformed,omitempty"`
}

// Scopes of a stop rule.
const (
	PerCell  = "cell"
	PerModel = "model"
)

// Defaults of stop rules, and the smallest number of outcomes that After accepts.
const (
	DefaultAfter = 20
	LeastAfter   = 5
	DefaultBelow = 0.02
	DefaultAbove = 0.8
)

// Reason returns why a cell or a model (see per) should be stopped after n outcomes, of which
// full are full successes and malformed had no valid call. It returns "" if no rule is met. Malformed is checked first because it also names the cause.
func (r StopRules) Reason(n, full, malformed int, per string) string {
	if m := r.Malformed; m.due(n, per) && float64(malformed)/float64(n) > m.Above {
		return fmt.Sprintf("%d of %d outcomes made no valid call, more than %s",
			malformed, n, percent(m.Above))
	}
	if h := r.Hopeless; h.due(n, per) && stat.Wilson(full, n, stat.Z95).High < h.Below {
		return fmt.Sprintf("full success is below %s with 95 %% confidence after %d trials",
			percent(h.Below), n)
	}
	return ""
}

// due reports whether the rule exists, has this scope and has enough outcomes.
func (r *StopRule) due(n int, per string) bool {
	return r != nil && r.Per == per && n >= r.After
}

func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }
