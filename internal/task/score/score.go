// Package score judges episodes: how far the model got, how useful its calls were, and why an
// episode was not a full success.
//
// It holds pure functions of a trial, a task and a transcript, so that stored transcripts can be
// judged again. It does no I/O and knows no provider. The rules themselves belong to the worlds;
// docs/worlds.md states them in words.
package score

import (
	"github.com/assay-eval/assay"
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
	e, _ := j.judge(trial, task, tr, nil)
	return e.Outcome
}

// judge judges an episode, and explains it except for its measures. The path of a full success is
// only traced if there is a rationale.
func (j *Judge) judge(
	trial *assay.Trial, task *assay.Task, tr *assay.Transcript, why *spec.Rationale,
) (Explanation, basis) {
	d := world.Of(trial.World)
	e := Explanation{Outcome: d.Verdict(j.catalog, *task, tr, why)}
	if why != nil {
		e.Rules = why.Rules
	}
	var b basis
	o := &e.Outcome
	if why != nil || o.Level != assay.FullSuccess {
		b = e.trace(j.catalog, trial, task, tr)
	}
	if o.Level != "" {
		q := newInquiry(j.catalog, &e, trial, task, tr)
		e.decide(q)
		q.react()
	}
	for _, f := range tr.ModelFaults() {
		if f.Delivered {
			o.ModelFaultsMet++
		}
		if f.Recovered {
			o.ModelFaultsRecovered++
		}
	}
	o.ScoreVersion = d.ScoreVersion
	planned, known := workflow.Planned(trial.World, task)
	if o.Best = 1; known {
		o.Best = j.bounds.Best(trial, planned)
	}
	if d.Throws != nil {
		faults, _ := spec.Scheduled(j.catalog, workflow.ProblemOf(trial, planned).Calls,
			d.Steps(j.catalog, planned), d.Throws(j.catalog, trial))
		o.FaultsScheduled, o.FaultsMet = len(faults), met(faults, tr.Calls)
	}
	return e, b
}

// decide finds the reason of an outcome and its error category. A world may have decided the
// category by rules of its own; they don't know agents.
func (e *Explanation) decide(q *inquiry) {
	o := &e.Outcome
	e.Reason = q.reason()
	if o.Level != assay.FullSuccess {
		category := q.category(&e.Reason)
		q.attribute(&e.Reason)
		switch {
		case e.Reason.Cause == assay.ByFramework:
			o.ErrorCategory = assay.CategoryFramework
		case o.ErrorCategory == "", e.Reason.Cause == assay.AgentFailed, e.Reason.Cause == assay.ModelFailed,
			e.Reason.Stop == assay.Crashed, e.Reason.Stop == assay.OutOfTime:
			o.ErrorCategory = category
		}
	}
	o.Stop, o.Cause = e.Reason.Stop, e.Reason.Cause
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
