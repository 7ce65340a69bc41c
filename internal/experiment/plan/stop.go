package plan

import (
	"fmt"

	"github.com/assay-eval/assay/internal/experiment/budget"
)

func (e *Experiment) stopDefaults() {
	e.stopRule("stop.hopeless", &e.Stop.Hopeless, budget.StopRule{
		After: budget.DefaultAfter, Below: budget.DefaultBelow, Per: budget.PerCell,
	})
	e.stopRule("stop.malformed", &e.Stop.Malformed, budget.StopRule{
		After: budget.DefaultAfter, Above: budget.DefaultAbove, Per: budget.PerModel,
	})
}

// stopRule fills in the fields of a rule that the file leaves out. A rule that is listed without a
// value is on too.
func (e *Experiment) stopRule(field string, rule **budget.StopRule, otherwise budget.StopRule) {
	if e.node(field) == nil {
		return
	}
	if *rule == nil {
		*rule = new(budget.StopRule)
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
	field string, r *budget.StopRule, name string, share float64, other string,
) error {
	if r.After < budget.LeastAfter {
		return e.FieldError(field+".after", fmt.Sprintf("%s.after is %d, want at least %d",
			field, r.After, budget.LeastAfter), "fewer outcomes are not enough to judge")
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
		[]string{budget.PerCell, budget.PerModel})
}
