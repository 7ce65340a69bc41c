package own

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// thrown has luck's decisions about a call.
type thrown struct {
	luck   spec.Luck
	chance float64
	fault  assay.ToolFault // "" if the call meets no fault
	named  bool            // the trial or the tool has a mix of faults
}

// throw decides the k-th call of a tool, counted from 0.
func throw(trial *assay.Trial, tool assay.Tool, k int) thrown {
	t := thrown{luck: spec.Draw(trial.Seed, tool.Name, k)}
	t.chance = reliabilityOf(tool, trial.Reliability)
	text := trial.Faults
	if tool.Faults != "" {
		text = tool.Faults
	}
	mix, err := assay.ParseFaultMix(text)
	if err != nil { // libraries and plans are checked when they are read
		panic("own: trial " + string(trial.ID) + ": " + err.Error())
	}
	t.named = text != ""
	if t.luck.Success >= t.chance {
		t.fault = t.luck.Fault(mix)
	}
	return t
}

// schedule implements [spec.Definition].
func schedule(
	catalog *assay.Catalog, trial *assay.Trial, problem policy.Problem,
) (faults map[spec.Place]bool, survivable bool) {
	spent := make(map[string]int)
	return spec.Scheduled(problem.Calls, problem.Required, func(name string) assay.ToolFault {
		tool, _ := catalog.Tool(name)
		spent[name]++
		return throw(trial, tool, spent[name]-1).fault
	})
}
