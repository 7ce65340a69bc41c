// Package score judges episodes: how far the model got, how useful its calls were, and why an
// episode was not a full success.
//
// It holds pure functions of a trial, a task and a transcript, so that stored transcripts can be
// judged again. It does no I/O and knows no provider. The rules themselves belong to the worlds;
// docs/worlds.md states them in words.
package score

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/verdict"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// Version names the rules by which a world's episodes are judged now. It returns "" if the world
// does not exist.
func Version(worldName string) string {
	if d := world.Find(worldName); d != nil {
		return d.ScoreVersion
	}
	return ""
}

// Versions lists the rules by which the worlds are judged now.
func Versions() []string {
	var versions []string
	for _, d := range world.All {
		versions = append(versions, d.ScoreVersion)
	}
	return versions
}

// A Judge determines the outcomes of episodes with the tools of one catalog. It is safe for
// concurrent use.
type Judge struct {
	catalog *assay.Catalog
	bounds  *workflow.Bounds
}

// New returns a judge.
func New(catalog *assay.Catalog) *Judge {
	return &Judge{catalog: catalog, bounds: workflow.NewBounds(catalog)}
}

// Outcome judges an episode by the rules of its trial's world. It depends on its arguments only.
// If the world does not exist, it panics.
func (j *Judge) Outcome(trial *assay.Trial, task *assay.Task, tr *assay.Transcript) assay.Outcome {
	return j.judge(trial, task, tr, nil)
}

// agentCategories are the categories of agents that failed, whatever the calls were.
var agentCategories = map[assay.Ended]string{
	assay.AgentError: assay.CategoryAgentFailure, assay.AgentTimeout: assay.CategoryTimeout,
}

func (j *Judge) judge(
	trial *assay.Trial, task *assay.Task, tr *assay.Transcript, w *verdict.Witness,
) assay.Outcome {
	d := world.Of(trial.World)
	o := d.Verdict(j.catalog, *task, tr, w)
	if category := agentCategories[tr.Ended]; category != "" && o.Level != assay.FullSuccess {
		w.Ask("the agent itself failed", true, func() string { return verdict.EndedBy(tr.Ended) })
		o.ErrorCategory = category
	} else if asked := changed(&o, tr); asked != "" {
		w.Ask("the framework changed the arguments between the model's reply and the tool server", true,
			func() string { return "the model asked for " + asked })
		o.ErrorCategory = assay.CategoryFramework
	}
	o.ScoreVersion = d.ScoreVersion
	if planned, known := workflow.Planned(trial.World, task); known {
		o.Best = j.bounds.Best(trial, planned)
	} else {
		o.Best = 1
	}
	if d.Schedule != nil {
		planned, _ := workflow.Planned(trial.World, task)
		faults, _ := d.Schedule(j.catalog, trial, workflow.ProblemOf(trial, planned))
		o.FaultsScheduled, o.FaultsMet = len(faults), met(faults, tr.Calls)
	}
	return o
}

// changed returns the call that a model asked for if an agent's framework made a call of it that
// failed as a mistake or was refused, or that has wrong arguments. It returns "" if there is no
// such call, or if luck decided.
func changed(o *assay.Outcome, tr *assay.Transcript) string {
	if o.ErrorCategory == "" || o.ErrorCategory == assay.CategoryOther {
		return ""
	}
	for _, c := range tr.Calls {
		if c.Asked != "" && (c.Mistake || o.ErrorCategory == assay.CategoryParameterConfig) {
			return c.Asked
		}
	}
	if tr.Agent != nil {
		for _, r := range tr.Agent.Refused {
			if r.Asked != "" {
				return r.Asked
			}
		}
	}
	return ""
}

// met counts the calls that met a scheduled fault.
func met(faults map[spec.Place]bool, calls []assay.CallRecord) int {
	n := 0
	spent := make(map[string]int)
	for _, c := range calls {
		if c.Mistake {
			continue
		}
		if c.Met() != "" && faults[spec.Place{Tool: c.Tool, Number: spent[c.Tool]}] {
			n++
		}
		spent[c.Tool]++
	}
	return n
}
