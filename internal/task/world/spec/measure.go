package spec

import (
	"slices"
	"strings"
	"unicode"

	"github.com/assay-eval/assay"
)

// Measured returns an outcome with the measures that all worlds share. plan is the task's own plan,
// and uses are the uses of the transcript's calls.
func Measured(task assay.Task, tr *assay.Transcript, plan []string, uses []Use) assay.Outcome {
	o := assay.Outcome{
		Ended:         tr.Ended,
		Turns:         len(tr.Turns),
		ToolCalls:     len(tr.Calls),
		RequiredTools: task.Required,
		ExecutedTools: Succeeded(tr.Calls),
		Extra:         Extra(tr.Calls),
	}
	for _, t := range tr.Turns {
		if t.Assisted {
			o.Assisted++
		}
	}
	o.Adherence = adherence(plan, o.ExecutedTools)
	if len(tr.Plan) > 0 {
		o.GivenAdherence = new(adherence(tr.Plan, o.ExecutedTools))
		if own := planned(tr, task.Required); len(own) > 0 {
			o.PlannedAdherence = new(adherence(tr.Plan, own))
		}
	}
	countFailures(&o, tr.Calls)

	useful := 0
	for _, u := range uses {
		switch {
		case u.Wasted():
			o.Wasted++
		case u == Useful:
			useful++
		}
	}
	if len(o.ExecutedTools) > 0 {
		o.Precision = float64(useful) / float64(len(o.ExecutedTools))
	}
	if o.ToolCalls > 0 {
		o.Efficiency = float64(o.ToolCalls-o.Wasted) / float64(o.ToolCalls)
	}
	if len(tr.Loops) > 0 {
		o.Loop, o.LoopTurn = tr.Loops[0].Kind, tr.Loops[0].Began
	}
	return o
}

// planned returns the tools that the own plan of a foreign agent names, in order, among those that it was shown,
// has called or should have called. A name is a whole word, perhaps with a prefix such as mcp__assay__.
func planned(tr *assay.Transcript, required []string) (own []string) {
	if tr.Agent == nil || len(tr.Agent.Plan) == 0 {
		return nil
	}
	known := make(map[string]bool)
	for _, name := range slices.Concat(tr.Plan, required) {
		known[name] = true
	}
	for _, c := range tr.Calls {
		known[c.Tool] = true
	}
	for _, step := range tr.Agent.Plan {
		for _, word := range strings.FieldsFunc(step, func(c rune) bool {
			return c != '_' && c != '-' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
		}) {
			word = strings.Trim(word, ".-")
			if i := strings.LastIndex(word, "__"); i >= 0 {
				word = word[i+2:]
			}
			if known[word] {
				own = append(own, word)
			}
		}
	}
	return own
}

// Succeeded returns the tools of the calls that happened, in order.
func Succeeded(calls []assay.CallRecord) []string {
	tools := []string{}
	for _, c := range calls {
		if c.Happened() {
			tools = append(tools, c.Tool)
		}
	}
	return tools
}

// Extra counts the calls beyond the first of each reply.
func Extra(calls []assay.CallRecord) int {
	n := 0
	for i := range calls {
		if BeyondFirst(calls, i) {
			n++
		}
	}
	return n
}

// BeyondFirst reports whether calls[i] is not the first of its reply. Calls are in the order of
// their turns.
func BeyondFirst(calls []assay.CallRecord, i int) bool {
	return i > 0 && calls[i].Turn == calls[i-1].Turn
}

// A Fate is how a call went.
type Fate int

// The fates of calls.
const (
	Worked   Fate = iota
	Mistake       // failed by the model's own mistake
	Lost          // failed by chance
	Overcome      // failed by chance, and its tool succeeded later
)

// Fates returns the fates of calls. It goes backwards so that it knows which tools succeed later.
func Fates(calls []assay.CallRecord) []Fate {
	all := make([]Fate, len(calls))
	var later []string
	for i, c := range slices.Backward(calls) {
		switch {
		case c.Happened():
			if !slices.Contains(later, c.Tool) {
				later = append(later, c.Tool)
			}
		case c.Mistake:
			all[i] = Mistake
		case slices.Contains(later, c.Tool):
			all[i] = Overcome
		default:
			all[i] = Lost
		}
	}
	return all
}

func countFailures(o *assay.Outcome, calls []assay.CallRecord) {
	for _, f := range Fates(calls) {
		switch f {
		case Mistake:
			o.Mistakes++
		case Overcome:
			o.Recovered++
			o.Failures++
		case Lost:
			o.Failures++
		}
	}
}

// adherence is the length of the longest common subsequence of a plan and the successful calls,
// divided by the length of the longer one. It is 1 if they are equal, less if anything is left
// out, added or moved, and 0 without a success.
func adherence(plan, executed []string) float64 {
	if len(executed) == 0 {
		return 0
	}
	return float64(Common(plan, executed)) / float64(max(len(plan), len(executed)))
}

// Common returns the length of the longest common subsequence.
func Common(a, b []string) int {
	row := make([]int, len(b)+1) // row[j] is the result for the part of a read so far and b[:j]
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

// Share returns the share of the required tools that occur among others. It is 0 if no tool is
// required.
func Share(required, others []string) float64 {
	n := 0
	for _, t := range required {
		if slices.Contains(others, t) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(required)))
}

// Lookups counts the turns in which the model searched for a tool or read about one.
func Lookups(tr *assay.Transcript) int {
	n := 0
	for _, t := range tr.Turns {
		if t.Lookups > 0 {
			n++
		}
	}
	return n
}
