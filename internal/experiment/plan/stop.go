package plan

import (
	"fmt"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A Budget bounds the spending of a run. Zero means no bound. Dollars count only for models that
// have a price.
type Budget struct {
	USD    float64 `yaml:"usd" json:"usd,omitempty"`
	Tokens int     `yaml:"tokens" json:"tokens,omitempty"`
}

// Budgets bound a whole run, each of its models and each of its cells.
type Budgets struct {
	Budget   `yaml:",inline"`
	PerModel Budget `yaml:"per_model" json:"per_model,omitzero"`
	PerCell  Budget `yaml:"per_cell" json:"per_cell,omitzero"`
}

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
	MinAfter     = 5
	DefaultBelow = 0.02
	DefaultAbove = 0.8
)

// Reason returns why a cell or a model (see per) should be stopped after n outcomes, of which full
// are full successes and malformed had no valid call. It returns "" if no rule is met. Malformed is
// checked first because it also names the cause.
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

func (e *Experiment) stopDefaults() {
	e.stopRule("stop.hopeless", &e.Stop.Hopeless, StopRule{
		After: DefaultAfter, Below: DefaultBelow, Per: PerCell,
	})
	e.stopRule("stop.malformed", &e.Stop.Malformed, StopRule{
		After: DefaultAfter, Above: DefaultAbove, Per: PerModel,
	})
}

// stopRule fills in the fields of a rule that the file leaves out. A rule that is listed without a
// value is on too.
func (e *Experiment) stopRule(field string, rule **StopRule, otherwise StopRule) {
	if e.node(field) == nil {
		return
	}
	if *rule == nil {
		*rule = new(StopRule)
	}
	r := *rule
	if !e.has(field + ".after") {
		r.After = otherwise.After
	}
	if !e.has(field + ".below") {
		r.Below = otherwise.Below
	}
	if !e.has(field + ".above") {
		r.Above = otherwise.Above
	}
	orElse(&r.Per, otherwise.Per)
}

func (e *Experiment) checkStop() error {
	if r := e.Stop.Hopeless; r != nil {
		if err := e.checkRule("stop.hopeless", r, "below", r.Below, "above"); err != nil {
			return err
		}
	}
	if r := e.Stop.Malformed; r != nil {
		return e.checkRule("stop.malformed", r, "above", r.Above, "below")
	}
	return nil
}

// checkRule checks a rule that has the share name and must not have the share
// other.
func (e *Experiment) checkRule(
	field string, r *StopRule, name string, share float64, other string,
) error {
	if r.After < MinAfter {
		return e.FieldError(field+".after", fmt.Sprintf("%s.after is %d, want at least %d",
			field, r.After, MinAfter), "fewer outcomes are not enough to judge")
	}
	if e.has(field + "." + other) {
		return e.FieldError(field+"."+other, fmt.Sprintf("%s has no %s", field, other),
			"write "+name+" for the share at which the rule applies")
	}
	if !(share > 0 && share < 1) {
		hint := ""
		if share > 1 && share < 100 {
			hint = fmt.Sprintf("write %.4g for %.4g %%", share/100, share)
		}
		return e.FieldError(field+"."+name,
			fmt.Sprintf("%s.%s is %v, not between 0 and 1", field, name, share), hint)
	}
	return e.checkNames(field+".per", "scope of a stop rule", []string{r.Per},
		[]string{PerCell, PerModel})
}
