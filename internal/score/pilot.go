package score

import (
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/workflow"
	"github.com/assay-eval/assay/internal/world"
)

// Pilot gives the outcome of an episode by the rules of the original's
// executor, all but Best: full success is every required tool succeeded and
// the first successes came in the required order; partial success is at least
// two of four signs of progress. The original's two other verdicts stand
// beside it.
func Pilot(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) assay.Outcome {
	c := &course{catalog: catalog, required: task.Required, firsts: true}
	o := measured(task, tr, task.Required, c.follow(tr.Calls))
	o.ScoreVersion = PilotVersion
	o.Coverage = coverage(task.Required, o.ExecutedTools)
	o.OrderCorrect = o.Coverage == 1 && slices.Equal(firsts(task.Required, o.ExecutedTools), task.Required)
	s := pilotSigns(task, tr, &o)
	o.Level = s.level(o.OrderCorrect)
	o.Pilot = pilotScores(tr, &o)
	o.Pilot.Paper = s.level(o.OrderCorrect && s.output && s.claim)
	if o.Level != assay.FullSuccess {
		o.ErrorCategory = pilotCategory(catalog, task, tr)
	}
	return o
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

// signs are the four signs of progress.
type signs struct{ coverage, output, number, claim bool }

func pilotSigns(task assay.Task, tr *assay.Transcript, o *assay.Outcome) signs {
	return signs{
		coverage: o.Coverage >= 0.6,
		output:   slices.ContainsFunc(o.ExecutedTools, makesOutput),
		number:   len(o.ExecutedTools) >= pilotMinimum[task.Type],
		claim:    claimedFinish(tr.Messages),
	}
}

func (s signs) level(full bool) assay.Level {
	n := 0
	for _, sign := range []bool{s.coverage, s.output, s.number, s.claim} {
		if sign {
			n++
		}
	}
	switch {
	case full:
		return assay.FullSuccess
	case n >= 2:
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
	case leftOut(task, tr) && strayed(catalog, task.Required, tr.Calls):
		return ToolSelection
	case outOfOrder(task, tr):
		return SequenceOrder
	case hasty(catalog, task, tr):
		return DependencyError
	case tr.Ended == assay.TurnLimit && len(tr.Calls)-extra(tr.Calls) < len(tr.Turns):
		return MaxTurns
	}
	return OtherError
}

func leftOut(task assay.Task, tr *assay.Transcript) bool {
	return slices.ContainsFunc(task.Required, func(tool string) bool {
		return !slices.ContainsFunc(tr.Calls, func(c assay.CallRecord) bool { return c.Tool == tool })
	})
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
