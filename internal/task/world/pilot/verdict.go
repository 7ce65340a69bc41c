package pilot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

func newCourse(catalog *assay.Catalog, required []string) *spec.Course {
	return &spec.Course{Catalog: catalog, Required: required, Firsts: true}
}

// Verdict judges an episode by the rules of the original's executor. Full success means that
// every required tool succeeded, and that their first successes came in the required order.
// Partial success means at least two of four signs of progress. The outcome also holds the
// original's two other verdicts. The rationale may be nil.
func Verdict(
	catalog *assay.Catalog, task assay.Task, tr *assay.Transcript, why *spec.Rationale,
) assay.Outcome {
	c := newCourse(catalog, task.Required)
	o := spec.Measured(task, tr, task.Required, c.Follow(tr.Calls))
	o.Coverage = coverage(task.Required, o.ExecutedTools)
	order := firsts(task.Required, o.ExecutedTools)
	o.OrderCorrect = o.Coverage == 1 && slices.Equal(order, task.Required)

	s := findSigns(task, tr, &o, why)
	why.Decide("executor")
	why.Need("all required tools succeeded", o.Coverage == 1, func() string {
		return spec.Covered(&o)
	})
	why.Need("their first successes came in the required order", o.OrderCorrect,
		func() string { return "they came as " + list(order) })
	o.Level = s.level(o.OrderCorrect, why)

	o.Pilot = scores(tr, &o)
	why.Decide("paper")
	paper := o.OrderCorrect && s.output && s.claim
	why.Need("the executor's full success, output and the model's word", paper, func() string {
		return fmt.Sprintf("%s, %s, %s", o.Level, had(s.output, "output"), had(s.claim, "word"))
	})
	o.Pilot.Paper = s.level(paper, why)
	why.Decide("batch")
	o.Pilot.Batch = batchLevel(o.Pilot, why)

	if o.Level != assay.FullSuccess {
		why.Decide("category")
		o.ErrorCategory = category(catalog, task, tr, why)
	}
	return o
}

// list joins the names of tools.
func list(tools []string) string {
	if len(tools) == 0 {
		return "none"
	}
	return strings.Join(tools, ", ")
}

func had(it bool, thing string) string {
	if it {
		return thing
	}
	return "no " + thing
}

// coverage divides by the length of the list. A tool that is required twice therefore keeps a
// task from full success, as in the original.
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

func findSigns(task assay.Task, tr *assay.Transcript, o *assay.Outcome, why *spec.Rationale) signs {
	least := minimum[task.Type]
	output, claim := slices.IndexFunc(o.ExecutedTools, makesOutput), claimedFinish(tr.Messages)
	why.Decide("signs")
	return signs{
		coverage: why.Ask("at least 60 % of the required tools succeeded", o.Coverage >= 0.6,
			func() string { return spec.Covered(o) }),
		output: why.Ask("a tool that makes output by its name succeeded", output >= 0, func() string {
			if output < 0 {
				return "none of " + assay.Counted(len(o.ExecutedTools), "success")
			}
			return o.ExecutedTools[output]
		}),
		number: why.Ask("as many calls succeeded as the type of the task asks for",
			len(o.ExecutedTools) >= least, func() string {
				return fmt.Sprintf("%d, and a %s asks for %d", len(o.ExecutedTools), task.Type,
					least)
			}),
		claim: why.Ask("the model said that it was done", claim > 0, func() string {
			if claim == 0 {
				return "in none of " + assay.Counted(len(tr.Turns), "turn")
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

func (s signs) level(full bool, why *spec.Rationale) assay.Level {
	switch {
	case full:
		return assay.FullSuccess
	case why.Ask("at least two of the four signs", s.count() >= 2,
		func() string { return fmt.Sprintf("%d of 4", s.count()) }):
		return assay.PartialSuccess
	}
	return assay.Failure
}

// minimum is the number of successful calls that counts as a sign of progress, by task type.
var minimum = map[string]int{
	"simple_task": 1, "basic_task": 2, "data_pipeline": 2, "api_integration": 2,
	"multi_stage_pipeline": 3,
}

// outputWords mark tools that make output, by their names. The original counted filters too.
var outputWords = []string{
	"writer", "export", "save", "output", "post", "publish", "store", "emit", "notify", "report",
	"generate", "filter", "aggregator", "compressor",
}

func makesOutput(tool string) bool {
	return slices.ContainsFunc(outputWords, func(why string) bool {
		return strings.Contains(tool, why)
	})
}

// claimedFinish returns the turn, counted from 1, of the first reply that claims the task to be
// done. It returns 0 if there is no such reply.
func claimedFinish(messages []assay.Message) int {
	turn := 0
	for _, m := range messages {
		if m.Role != assay.Assistant {
			continue
		}
		if turn++; Finished(m.Content) {
			return turn
		}
	}
	return 0
}

// category decides by the whole history. The first rule that applies wins. A simulated TIMEOUT is
// bad luck of the tool, like any other code.
func category(
	catalog *assay.Catalog, task assay.Task, tr *assay.Transcript, why *spec.Rationale,
) string {
	if why.Ask("no call was carried out", len(tr.Calls) == 0, func() string { return spec.Made(tr) }) {
		looked := spec.Lookups(tr)
		if why.Ask("the model looked tools up", looked > 0,
			func() string { return "in " + assay.Counted(looked, "turn") }) {
			return assay.CategoryMaxTurns
		}
		return why.Remains(assay.CategoryToolCallFormat)
	}

	left, foreign := leftOut(task, tr), -1
	if left >= 0 {
		foreign = spec.Strayed(catalog, task.Required, tr.Calls)
	}
	if why.Ask("a required tool was never called, but one that the task has no use for was",
		foreign >= 0, func() string { return missed(task, tr, left, foreign) }) {
		return assay.CategoryToolSelection
	}
	i := outOfOrder(task, tr)
	if why.Ask("a required tool was called before the one before it had succeeded", i >= 0,
		func() string { return found(tr.Calls, i) }) {
		return assay.CategorySequenceOrder
	}
	k := hasty(catalog, task, tr)
	if why.Ask("a call failed while a dependency was missing that could have run first", k >= 0,
		func() string { return found(tr.Calls, k) }) {
		return assay.CategoryDependency
	}
	acted := len(tr.Calls) - spec.Extra(tr.Calls)
	if why.Ask("the turns ran out, and one of them executed nothing",
		tr.Ended == assay.TurnLimit && acted < len(tr.Turns), func() string {
			return fmt.Sprintf("%s; %d of %d executed a call", spec.EndedBy(tr.Ended), acted,
				len(tr.Turns))
		}) {
		return assay.CategoryMaxTurns
	}
	return why.Remains(assay.CategoryOther)
}

// missed words which required tool was never called, and which foreign tool was.
func missed(task assay.Task, tr *assay.Transcript, left, foreign int) string {
	switch {
	case left < 0:
		return "all were called"
	case foreign < 0:
		return task.Required[left] + " never was, but no useless tool was called"
	}
	return fmt.Sprintf("%s never was, but %s", task.Required[left], spec.Nth(tr.Calls, foreign))
}

// found names the call at an index. An index of -1 means that no call fits.
func found(calls []assay.CallRecord, i int) string {
	if i < 0 {
		return "none of " + assay.Counted(len(calls), "call")
	}
	return spec.Nth(calls, i)
}

// leftOut returns the index of the first required tool that was never called, or -1.
func leftOut(task assay.Task, tr *assay.Transcript) int {
	return slices.IndexFunc(task.Required, func(tool string) bool {
		return !slices.ContainsFunc(tr.Calls, func(c assay.CallRecord) bool {
			return c.Tool == tool
		})
	})
}

// outOfOrder returns the index of the first call of a required tool before an earlier required
// tool had succeeded, or -1.
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

// hasty returns the index of the first call that failed while a dependency had never succeeded,
// although the dependency could have run first without breaking the required order. It returns -1
// if there is no such call.
func hasty(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) int {
	done := make(map[string]bool)
	for n, c := range tr.Calls {
		tool, _ := catalog.Tool(c.Tool)
		for _, d := range tool.Dependencies {
			if !c.OK && !done[d] &&
				slices.Index(task.Required, d) <= place(catalog, task.Required, c.Tool) {
				return n
			}
		}
		done[c.Tool] = done[c.Tool] || c.OK
	}
	return -1
}

// place returns the latest place in the required order where a tool is of use. For a required
// tool that is its own place, for others the first required tool that depends on it. If there is
// no such tool, place returns the end.
func place(catalog *assay.Catalog, required []string, tool string) int {
	if i := slices.Index(required, tool); i >= 0 {
		return i
	}
	for i, r := range required {
		if slices.Contains(policy.Missing(catalog, []string{r}), tool) {
			return i
		}
	}
	return len(required)
}
