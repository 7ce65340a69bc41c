package score

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// Pilot gives the outcome of an episode by the rules of the original's
// executor, all but Best: full success is every required tool succeeded and
// the first successes came in the required order; partial success is at least
// two of four signs of progress. The original's two other verdicts stand
// beside it.
func Pilot(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) assay.Outcome {
	return pilot(catalog, task, tr, nil)
}

func pilot(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript, w *witness) assay.Outcome {
	c := &course{catalog: catalog, required: task.Required, firsts: true}
	o := measured(task, tr, c.plan(), c.follow(tr.Calls))
	o.ScoreVersion = PilotVersion
	o.Coverage = coverage(task.Required, o.ExecutedTools)
	order := firsts(task.Required, o.ExecutedTools)
	o.OrderCorrect = o.Coverage == 1 && slices.Equal(order, task.Required)
	s := pilotSigns(task, tr, &o, w)
	w.decide("executor")
	w.need("all required tools succeeded", o.Coverage == 1, func() string { return covered(&o) })
	w.need("their first successes came in the required order", o.OrderCorrect, func() string { return "they came as " + list(order) })
	o.Level = s.level(o.OrderCorrect, w)
	o.Pilot = pilotScores(tr, &o)
	w.decide("paper")
	o.Pilot.Paper = s.level(w.need("the executor's full success, output and the model's word", o.OrderCorrect && s.output && s.claim, func() string {
		return fmt.Sprintf("%s, %s, %s", o.Level, had(s.output, "output"), had(s.claim, "word"))
	}), w)
	w.decide("batch")
	o.Pilot.Batch = batchLevel(o.Pilot, w)
	if o.Level != assay.FullSuccess {
		w.decide("category")
		o.ErrorCategory = pilotCategory(catalog, task, tr, w)
	}
	return o
}

// list is some tools in words.
func list(tools []string) string {
	if len(tools) == 0 {
		return "none"
	}
	return strings.Join(tools, ", ")
}

func had(it bool, what string) string {
	if it {
		return what
	}
	return "no " + what
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

func pilotSigns(task assay.Task, tr *assay.Transcript, o *assay.Outcome, w *witness) signs {
	least := pilotMinimum[task.Type]
	output, claim := slices.IndexFunc(o.ExecutedTools, makesOutput), claimedFinish(tr.Messages)
	w.decide("signs")
	return signs{
		coverage: w.ask("at least 60 % of the required tools succeeded", o.Coverage >= 0.6, func() string { return covered(o) }),
		output: w.ask("a tool that makes output by its name succeeded", output >= 0, func() string {
			if output < 0 {
				return "none of " + counted(len(o.ExecutedTools), "success")
			}
			return o.ExecutedTools[output]
		}),
		number: w.ask("as many calls succeeded as the type of the task asks for", len(o.ExecutedTools) >= least, func() string {
			return fmt.Sprintf("%d, and a %s asks for %d", len(o.ExecutedTools), task.Type, least)
		}),
		claim: w.ask("the model said that it was done", claim > 0, func() string {
			if claim == 0 {
				return "in none of " + counted(len(tr.Turns), "turn")
			}
			return fmt.Sprintf("in turn %d", claim)
		}),
	}
}

func (s signs) count() int {
	n := 0
	for _, sign := range []bool{s.coverage, s.output, s.number, s.claim} {
		if sign {
			n++
		}
	}
	return n
}

func (s signs) level(full bool, w *witness) assay.Level {
	switch {
	case full:
		return assay.FullSuccess
	case w.ask("at least two of the four signs", s.count() >= 2, func() string { return fmt.Sprintf("%d of 4", s.count()) }):
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

// claimedFinish returns the turn, from 1, of the first reply that claims the
// task to be done, and 0 without one.
func claimedFinish(messages []assay.Message) int {
	turn := 0
	for _, m := range messages {
		if m.Role != assay.Assistant {
			continue
		}
		if turn++; world.PilotFinished(m.Content) {
			return turn
		}
	}
	return 0
}

// pilotCategory decides by the whole history; the first rule that fits wins.
// A simulated TIMEOUT is a tool's bad luck like any other code.
func pilotCategory(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript, w *witness) string {
	if w.ask("no call was made", len(tr.Calls) == 0, func() string { return made(tr) }) {
		if w.ask("the model looked tools up", lookups(tr) > 0, func() string { return "in " + counted(lookups(tr), "turn") }) {
			return assay.CategoryMaxTurns
		}
		return w.remains(assay.CategoryToolCallFormat)
	}
	left, foreign := leftOut(task, tr), -1
	if left >= 0 {
		foreign = strayed(catalog, task.Required, tr.Calls)
	}
	if w.ask("a required tool was never called, and one for which the task has no use was", foreign >= 0, func() string {
		switch {
		case left < 0:
			return "all were called"
		case foreign < 0:
			return task.Required[left] + " never was, but none of no use was called"
		}
		return fmt.Sprintf("%s never was, but %s", task.Required[left], nth(tr.Calls, foreign))
	}) {
		return assay.CategoryToolSelection
	}
	if i := outOfOrder(task, tr); w.ask("a required tool was called before the one before it had succeeded", i >= 0, func() string { return found(tr.Calls, i) }) {
		return assay.CategorySequenceOrder
	}
	if i := hasty(catalog, task, tr); w.ask("a call failed while a dependency was missing that could have run first", i >= 0, func() string { return found(tr.Calls, i) }) {
		return assay.CategoryDependency
	}
	acted := len(tr.Calls) - extra(tr.Calls)
	if w.ask("the turns ran out, and one of them executed nothing", tr.Ended == assay.TurnLimit && acted < len(tr.Turns), func() string {
		return fmt.Sprintf("%s; %d of %d executed a call", endedBy(tr.Ended), acted, len(tr.Turns))
	}) {
		return assay.CategoryMaxTurns
	}
	return w.remains(assay.CategoryOther)
}

// found names the call that a search was for, if there is one.
func found(calls []assay.CallRecord, i int) string {
	if i < 0 {
		return "none of " + counted(len(calls), "call")
	}
	return nth(calls, i)
}

// leftOut returns the place of the first required tool that was never called,
// -1 where all were.
func leftOut(task assay.Task, tr *assay.Transcript) int {
	return slices.IndexFunc(task.Required, func(tool string) bool {
		return !slices.ContainsFunc(tr.Calls, func(c assay.CallRecord) bool { return c.Tool == tool })
	})
}

// outOfOrder returns the first call, -1 without one, of a required tool before
// an earlier one had succeeded.
func outOfOrder(task assay.Task, tr *assay.Transcript) int {
	done := make(map[string]bool)
	for n, c := range tr.Calls {
		if i := slices.Index(task.Required, c.Tool); i > 0 && !done[task.Required[i-1]] {
			return n
		}
		done[c.Tool] = done[c.Tool] || c.OK
	}
	return -1
}

// hasty returns the first call, -1 without one, that failed while something
// that it depends on had never succeeded, although that could have been run
// first without breaking the required order.
func hasty(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) int {
	done := make(map[string]bool)
	for n, c := range tr.Calls {
		tool, _ := catalog.Tool(c.Tool)
		for _, d := range tool.Dependencies {
			if !c.OK && !done[d] && slices.Index(task.Required, d) <= place(catalog, task.Required, c.Tool) {
				return n
			}
		}
		done[c.Tool] = done[c.Tool] || c.OK
	}
	return -1
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
