// Package score judges episodes: how far the model got, and for what is not
// full success the one reason.
//
// It holds pure functions of a task and a transcript, so that stored
// transcripts can be judged again. It does no I/O and knows no provider.
package score

import (
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/workflow"
	"github.com/assay-eval/assay/internal/world"
)

// PilotVersion names the rules of [Pilot]. It changes whenever a transcript
// could get another verdict.
const PilotVersion = "pilot-1"

// The categories of error, one for each outcome that is not full success.
const (
	ToolCallFormat  = "tool_call_format" // no valid call was ever made
	MaxTurns        = "max_turns"        // replies were spent without executing a tool
	ToolSelection   = "tool_selection"   // a required tool was left out, others were called
	ParameterConfig = "parameter_config" // wrong arguments; no call of the pilot can earn it
	SequenceOrder   = "sequence_order"   // right tools, wrong order
	DependencyError = "dependency"       // called before what it needs had succeeded
	OtherError      = "other"            // right decisions, bad luck
)

// Pilot gives the outcome of an episode by the rules of the original's
// executor: full success is every required tool succeeded and the first
// successes came in the required order; partial success is at least two of
// four signs of progress.
func Pilot(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) assay.Outcome {
	o := assay.Outcome{
		Ended:         tr.Ended,
		Turns:         len(tr.Turns),
		ToolCalls:     len(tr.Calls),
		RequiredTools: task.Required,
		ExecutedTools: succeeded(tr.Calls),
		ScoreVersion:  PilotVersion,
	}
	for _, t := range tr.Turns {
		if t.Assisted {
			o.Assisted++
		}
	}
	o.Coverage = coverage(task.Required, o.ExecutedTools)
	o.OrderCorrect = o.Coverage == 1 && slices.Equal(firsts(task.Required, o.ExecutedTools), task.Required)
	o.Level = pilotLevel(task, tr, o)
	if o.Level != assay.FullSuccess {
		o.ErrorCategory = pilotCategory(catalog, task, tr)
	}
	return o
}

func succeeded(calls []assay.CallRecord) []string {
	tools := []string{}
	for _, c := range calls {
		if c.OK {
			tools = append(tools, c.Tool)
		}
	}
	return tools
}

// coverage divides by the length of the list, so a tool that is required
// twice keeps a task from full success, as in the original.
func coverage(required, executed []string) float64 {
	if len(required) == 0 {
		return 0
	}
	return float64(len(firsts(required, executed))) / float64(len(required))
}

// firsts returns the required tools in the order of their first success.
func firsts(required, executed []string) []string {
	var order []string
	for _, t := range executed {
		if slices.Contains(required, t) && !slices.Contains(order, t) {
			order = append(order, t)
		}
	}
	return order
}

func pilotLevel(task assay.Task, tr *assay.Transcript, o assay.Outcome) assay.Level {
	if o.OrderCorrect {
		return assay.FullSuccess
	}
	signs := 0
	for _, sign := range []bool{
		o.Coverage >= 0.6,
		slices.ContainsFunc(o.ExecutedTools, makesOutput),
		len(o.ExecutedTools) >= pilotMinimum[task.Type],
		claimedFinish(tr.Messages),
	} {
		if sign {
			signs++
		}
	}
	if signs >= 2 {
		return assay.PartialSuccess
	}
	return assay.Failure
}

// pilotMinimum is how many successful calls count as a sign of progress.
var pilotMinimum = map[string]int{
	"simple_task": 1, "basic_task": 2, "data_pipeline": 2, "api_integration": 2, "multi_stage_pipeline": 3,
}

// outputWords mark, in a tool's name, that it makes output. That a filter is
// among them is the original's choice.
var outputWords = []string{
	"writer", "export", "save", "output", "post", "publish", "store", "emit", "notify", "report",
	"generate", "filter", "aggregator", "compressor",
}

func makesOutput(tool string) bool {
	return slices.ContainsFunc(outputWords, func(w string) bool { return strings.Contains(tool, w) })
}

func claimedFinish(messages []assay.Message) bool {
	return slices.ContainsFunc(messages, func(m assay.Message) bool {
		return m.Role == assay.Assistant && world.PilotFinished(m.Content)
	})
}

// pilotCategory decides by the whole history; the first rule that fits wins.
// A simulated TIMEOUT is a tool's bad luck like any other code.
func pilotCategory(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) string {
	switch {
	case len(tr.Calls) == 0 && !lookedUp(tr):
		return ToolCallFormat
	case len(tr.Calls) == 0:
		return MaxTurns
	case leftOut(task, tr) && strayed(catalog, task, tr):
		return ToolSelection
	case outOfOrder(task, tr):
		return SequenceOrder
	case hasty(catalog, task, tr):
		return DependencyError
	case tr.Ended == assay.TurnLimit && busyTurns(tr) < len(tr.Turns):
		return MaxTurns
	}
	return OtherError
}

// lookedUp reports whether the model searched for a tool or read about one.
func lookedUp(tr *assay.Transcript) bool {
	return slices.ContainsFunc(tr.Turns, func(t assay.TurnRecord) bool { return t.Lookups > 0 })
}

func leftOut(task assay.Task, tr *assay.Transcript) bool {
	return slices.ContainsFunc(task.Required, func(tool string) bool {
		return !slices.ContainsFunc(tr.Calls, func(c assay.CallRecord) bool { return c.Tool == tool })
	})
}

// strayed reports whether a tool was called that the task neither requires nor
// builds on.
func strayed(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) bool {
	useful := slices.Concat(task.Required, workflow.Missing(catalog, task.Required))
	return slices.ContainsFunc(tr.Calls, func(c assay.CallRecord) bool { return !slices.Contains(useful, c.Tool) })
}

// outOfOrder reports whether a required tool was called before an earlier one
// had succeeded.
func outOfOrder(task assay.Task, tr *assay.Transcript) bool {
	done := make(map[string]bool)
	for _, c := range tr.Calls {
		if i := slices.Index(task.Required, c.Tool); i > 0 && !done[task.Required[i-1]] {
			return true
		}
		done[c.Tool] = done[c.Tool] || c.OK
	}
	return false
}

// hasty reports whether a call failed while something that it depends on had
// never succeeded, although that could have been run first without breaking
// the required order.
func hasty(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) bool {
	done := make(map[string]bool)
	for _, c := range tr.Calls {
		tool, _ := catalog.Tool(c.Tool)
		for _, d := range tool.Dependencies {
			if !c.OK && !done[d] && slices.Index(task.Required, d) <= place(catalog, task.Required, c.Tool) {
				return true
			}
		}
		done[c.Tool] = done[c.Tool] || c.OK
	}
	return false
}

// place returns where in the required order a tool is of use at the latest: a
// required tool at its own place, another one before the first required tool
// that builds on it, and one on which none builds at the end.
func place(catalog *assay.Catalog, required []string, tool string) int {
	if i := slices.Index(required, tool); i >= 0 {
		return i
	}
	for i, r := range required {
		if slices.Contains(workflow.Missing(catalog, []string{r}), tool) {
			return i
		}
	}
	return len(required)
}

// busyTurns counts the turns in which a tool was executed.
func busyTurns(tr *assay.Transcript) int {
	turns := make(map[int]bool)
	for _, c := range tr.Calls {
		turns[c.Turn] = true
	}
	return len(turns)
}
