// Package score judges episodes: how far the model got, what its calls were
// worth, and for what is not full success the one reason.
//
// It holds pure functions of a trial, a task and a transcript, so that stored
// transcripts can be judged again. It does no I/O and knows no provider.
// docs/worlds.md holds the same definitions in words.
package score

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// The versions name the rules of [Pilot] and [Assay1]. One changes whenever a
// transcript could get another outcome.
const (
	PilotVersion  = "pilot-2"
	Assay1Version = "assay-1.1"
)

// Version names the rules by which episodes of a world are judged now; empty
// for a world that does not exist.
func Version(worldName string) string {
	switch worldName {
	case world.Assay1Name:
		return Assay1Version
	case world.PilotName:
		return PilotVersion
	}
	return ""
}

// A Judge gives the outcomes of episodes with the tools of one catalog. It is
// safe for concurrent use.
type Judge struct {
	catalog *assay.Catalog
	bounds  *workflow.Bounds
}

// New returns a judge.
func New(catalog *assay.Catalog) *Judge {
	return &Judge{catalog: catalog, bounds: workflow.NewBounds(catalog)}
}

// Outcome judges an episode by the rules of its trial's world. It is a function
// of its arguments alone. A world that does not exist is a bug of the caller.
func (j *Judge) Outcome(trial *assay.Trial, task *assay.Task, tr *assay.Transcript) assay.Outcome {
	return j.judge(trial, task, tr, nil)
}

func (j *Judge) judge(trial *assay.Trial, task *assay.Task, tr *assay.Transcript, w *witness) assay.Outcome {
	var o assay.Outcome
	switch trial.World {
	case world.Assay1Name:
		o = assay1(j.catalog, *task, tr, w)
	case world.PilotName:
		o = pilot(j.catalog, *task, tr, w)
	default:
		panic("score: no world is named " + trial.World)
	}
	o.Best = j.bounds.Best(trial, task.Required)
	return o
}

// measured returns what both worlds measure alike. Plan is the task's own, and
// uses are those of the transcript's calls.
func measured(task assay.Task, tr *assay.Transcript, plan []string, uses []use) assay.Outcome {
	o := assay.Outcome{
		Ended:         tr.Ended,
		Turns:         len(tr.Turns),
		ToolCalls:     len(tr.Calls),
		RequiredTools: task.Required,
		ExecutedTools: succeeded(tr.Calls),
		Extra:         extra(tr.Calls),
	}
	for _, t := range tr.Turns {
		if t.Assisted {
			o.Assisted++
		}
	}
	o.Adherence = adherence(plan, o.ExecutedTools)
	if len(tr.Plan) > 0 {
		o.GivenAdherence = new(adherence(tr.Plan, o.ExecutedTools))
	}
	countFailures(&o, tr.Calls)
	for _, u := range uses {
		if u.wasted() {
			o.Wasted++
		}
	}
	if o.ToolCalls > 0 {
		o.Efficiency = float64(o.ToolCalls-o.Wasted) / float64(o.ToolCalls)
	}
	if len(tr.Loops) > 0 {
		o.Loop, o.LoopTurn = tr.Loops[0].Kind, tr.Loops[0].Began
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

// extra counts the calls beyond the first of each reply.
func extra(calls []assay.CallRecord) int {
	n := 0
	for i := range calls {
		if beyondFirst(calls, i) {
			n++
		}
	}
	return n
}

// beyondFirst reports whether calls[i] is not the first of its reply. Calls
// stand in the order of their turns.
func beyondFirst(calls []assay.CallRecord, i int) bool {
	return i > 0 && calls[i].Turn == calls[i-1].Turn
}

// A fate is how a call went.
type fate int

// The fates of calls.
const (
	worked   fate = iota
	mistake       // failed by the model's own error
	lost          // failed by chance
	overcome      // failed by chance, and its tool succeeded later
)

// fates goes backwards, so that it knows which tools succeed later.
func fates(calls []assay.CallRecord) []fate {
	all := make([]fate, len(calls))
	var later []string
	for i, c := range slices.Backward(calls) {
		switch {
		case c.OK:
			if !slices.Contains(later, c.Tool) {
				later = append(later, c.Tool)
			}
		case c.Mistake:
			all[i] = mistake
		case slices.Contains(later, c.Tool):
			all[i] = overcome
		default:
			all[i] = lost
		}
	}
	return all
}

func countFailures(o *assay.Outcome, calls []assay.CallRecord) {
	for _, f := range fates(calls) {
		switch f {
		case mistake:
			o.Mistakes++
		case overcome:
			o.Recovered++
			o.Failures++
		case lost:
			o.Failures++
		}
	}
}

// adherence is the length of the longest common subsequence of a plan and the
// successful calls, as a share of the longer of both: 1 where they are equal,
// less for whatever is left out, added or moved, and 0 without a success.
func adherence(plan, executed []string) float64 {
	if len(executed) == 0 {
		return 0
	}
	return float64(common(plan, executed)) / float64(max(len(plan), len(executed)))
}

// common is the length of the longest common subsequence.
func common(a, b []string) int {
	row := make([]int, len(b)+1) // row[j]: of what a was read so far and b[:j]
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// share is the part of the required tools that are among others; 0 where none
// is required.
func share(required, others []string) float64 {
	n := 0
	for _, t := range required {
		if slices.Contains(others, t) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(required)))
}

// lookups counts the turns in which the model searched for a tool or read
// about one.
func lookups(tr *assay.Transcript) int {
	n := 0
	for _, t := range tr.Turns {
		if t.Lookups > 0 {
			n++
		}
	}
	return n
}
