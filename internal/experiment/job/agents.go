package job

import (
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// An Agent is a foreign agent of an experiment.
type Agent struct {
	bridge.Agent
	// Most is the largest number of attempts at a time.
	Most int
	// Missing is an error if its program is not on this machine, and otherwise nil.
	Missing error
}

// agents returns the agents among the experiment's models.
func (j *Job) agents(providers *plan.Providers) map[string]Agent {
	agents := make(map[string]Agent)
	for _, model := range j.Experiment.Models {
		name := j.Experiment.Base(model)
		if _, ok := j.Experiment.Agents[name]; !ok || providers == nil {
			continue
		}
		a := providers.Agent(name)
		a.Hidden = append(a.Hidden, j.Experiment.Folders()...)
		agents[model] = Agent{a, providers.Agents[name].Most(), providers.CheckProgram(name)}
	}
	return agents
}
