package plan

import (
	"fmt"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A StopRule gives up part of an experiment that will not get better.
type StopRule struct {
	// After is how many outcomes there have to be before the rule is asked.
	After int `yaml:"after" json:"after"`
	// Below belongs to [StopRules.Hopeless], Above to [StopRules.Malformed].
	Below float64 `yaml:"below" json:"below,omitempty"`
	Above float64 `yaml:"above" json:"above,omitempty"`
	// Per says what the rule counts and gives up: PerCell or PerModel.
	Per string `yaml:"per" json:"per"`
}

// StopRules are the rules of an experiment; nil for one that is off.
type StopRules struct {
	// Hopeless holds when the upper end of the 95 % interval of full success
	// is below Below. Without any full success that takes 16 outcomes for 0.2,
	// 35 for 0.1 and 189 for 0.02.
	Hopeless *StopRule `yaml:"hopeless" json:"hopeless,omitempty"`
	// Malformed holds when more than the share Above of the outcomes are of
	// error category tool_call_format.
	Malformed *StopRule `yaml:"malformed" json:"malformed,omitempty"`
}

// What a stop rule counts and gives up.
const (
	PerCell  = "cell"
	PerModel = "model"
)

// The defaults of stop rules, and the fewest outcomes that one may judge by.
const (
	DefaultAfter = 20
	LeastAfter   = 5
	DefaultBelow = 0.02
	DefaultAbove = 0.8
)

// Reason says why a cell or a model, as per says, should be given up after n
// outcomes, of which so many are full successes and so many malformed; "" if
// it should not. Malformed is asked first: it also tells what is wrong.
func (r StopRules) Reason(n, full, malformed int, per string) string {
	if m := r.Malformed; m.asked(n, per) && float64(malformed)/float64(n) > m.Above {
		return fmt.Sprintf("%d of %d outcomes are tool_call_format, more than %s", malformed, n, percent(m.Above))
	}
	if h := r.Hopeless; h.asked(n, per) && stat.Wilson(full, n, stat.Z95).High < h.Below {
		return fmt.Sprintf("full success is below %s with 95 %% confidence after %d trials", percent(h.Below), n)
	}
	return ""
}

func (r *StopRule) asked(n int, per string) bool { return r != nil && r.Per == per && n >= r.After }

func percent(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }

func (e *Experiment) stopDefaults() {
	e.stopRule("stop.hopeless", &e.Stop.Hopeless, StopRule{After: DefaultAfter, Below: DefaultBelow, Per: PerCell})
	e.stopRule("stop.malformed", &e.Stop.Malformed, StopRule{After: DefaultAfter, Above: DefaultAbove, Per: PerModel})
}

// stopRule gives a rule that the file names what the file leaves out of it. A
// name without a value turns the rule on too.
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

// checkRule checks a rule that has one share and not the other.
func (e *Experiment) checkRule(field string, r *StopRule, name string, share float64, other string) error {
	if r.After < LeastAfter {
		return e.FieldError(field+".after", fmt.Sprintf("%s.after is %d, want at least %d", field, r.After, LeastAfter), "fewer outcomes say too little")
	}
	if e.has(field + "." + other) {
		return e.FieldError(field+"."+other, fmt.Sprintf("%s has no %s", field, other), "write "+name+" for the share at which the rule holds")
	}
	if !(share > 0 && share < 1) {
		hint := ""
		if share > 1 && share < 100 {
			hint = fmt.Sprintf("write %.4g for %.4g %%", share/100, share)
		}
		return e.FieldError(field+"."+name, fmt.Sprintf("%s.%s is %v, not between 0 and 1", field, name, share), hint)
	}
	return e.checkNames(field+".per", "scope of a stop rule", []string{r.Per}, []string{PerCell, PerModel})
}
