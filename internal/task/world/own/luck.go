package own

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// thrown has luck's decisions about a call.
type thrown struct {
	spec.Throw
	named bool // the trial or the tool has a mix of faults
}

// throw decides the k-th call of a tool, counted from 0. A tool with an effect meets no fault that only
// another call could show.
func throw(trial *assay.Trial, tool assay.Tool, k int, outages *spec.Outages) thrown {
	luck, mix := spec.Draw(trial.Seed, tool.Name, k), mixOf(trial, tool)
	t := thrown{outages.Meet(tool.Name, luck, reliabilityOf(tool, trial.Reliability), mix), mix != nil}
	if t.Fault.Rule().Rereads && tool.Effect != "" {
		t.Fault = ""
	}
	return t
}

// mixOf returns the mix of a tool's faults: its own, or else the trial's. It is nil if neither has one.
func mixOf(trial *assay.Trial, tool assay.Tool) assay.FaultMix {
	mix, err := assay.ParseFaultMix(cmp.Or(tool.Faults, trial.Faults))
	if err != nil { // libraries and plans are checked when they are read
		panic("own: trial " + string(trial.ID) + ": " + err.Error())
	}
	return mix
}

// hidden implements [spec.Definition]. Nothing lists what has happened, and a look costs calls, if
// there is any. What else can be done while a tool takes no calls depends on the judge.
func hidden(catalog *assay.Catalog, trial *assay.Trial, planned []string) bool {
	return slices.ContainsFunc(planned, func(name string) bool {
		tool, _ := catalog.Tool(name)
		for kind, share := range mixOf(trial, tool) {
			rule := kind.Rule()
			hides := rule.Hides && !(rule.Rereads && tool.Effect != "")
			if (hides || rule.Waits) && share > 0 && reliabilityOf(tool, trial.Reliability) < 1 {
				return true
			}
		}
		return false
	})
}

// throws implements [spec.Definition].
func throws(catalog *assay.Catalog, trial *assay.Trial) func(tool string) assay.ToolFault {
	spent, outages := make(map[string]int), spec.NewOutages(trial)
	return func(name string) assay.ToolFault {
		tool, _ := catalog.Tool(name)
		fault := throw(trial, tool, spent[name], &outages).Fault
		spent[name]++
		outages.Pass()
		return fault
	}
}
