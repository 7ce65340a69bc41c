package assay1

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// Dice decide which calls of a trial meet a fault, and of which kind. They only know the tools of
// the calls that used luck so far.
type dice struct {
	trial  *assay.Trial
	mix    assay.FaultMix
	spent  map[string]int  // calls so far, by tool
	faulty map[string]bool // the tool's latest call met a fault
	latest bool            // the latest call of any tool met a fault
	spec.Outages
}

// newDice returns the dice at the start of a trial. The plan has checked the trial's mix.
func newDice(trial *assay.Trial) *dice {
	mix, err := assay.ParseFaultMix(trial.Faults)
	if err != nil {
		panic("assay1: trial " + string(trial.ID) + ": " + err.Error())
	}
	return &dice{
		trial: trial, mix: mix, spent: make(map[string]int), faulty: make(map[string]bool),
		Outages: spec.NewOutages(trial),
	}
}

// A throw has luck's decisions about a call.
type throw struct {
	spec.Throw
	// lasts means that the call meets a fault only because the tool's latest call met one.
	lasts bool
}

// throw decides the next call of a tool.
func (d *dice) throw(tool string) throw {
	k, same := d.spent[tool], d.faulty[tool]
	reliability := d.trial.Reliability
	luck := spec.Draw(d.trial.Seed, tool, k)
	t := throw{Throw: d.Meet(tool, luck, Chance(d.trial.Setting, reliability, same, d.latest), d.mix)}
	t.lasts = t.Fault != "" && luck.Success < Chance(d.trial.Setting, reliability, false, d.latest)
	d.spent[tool]++
	d.faulty[tool], d.latest = t.Fault != "", t.Fault != ""
	return t
}

// throws implements [spec.Definition].
func throws(_ *assay.Catalog, trial *assay.Trial) func(tool string) assay.ToolFault {
	d := newDice(trial)
	return func(tool string) assay.ToolFault {
		fault := d.throw(tool).Fault
		d.Pass()
		return fault
	}
}
