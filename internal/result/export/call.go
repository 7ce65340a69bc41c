package export

import (
	"fmt"

	"github.com/assay-eval/assay"
)

// A Call is one executed tool call, with the fields of its attempt that are
// needed to group calls.
type Call struct {
	Trial       assay.TrialID `json:"trial"`
	Attempt     int           `json:"attempt"`
	Model       string        `json:"model"`
	Variant     string        `json:"variant"`
	Severity    string        `json:"severity"`
	Difficulty  string        `json:"difficulty"`
	TaskType    string        `json:"task_type"`
	Reliability float64       `json:"reliability"`
	Task        assay.TaskID  `json:"task"`
	Experiment  string        `json:"experiment"`
	Run         assay.RunID   `json:"run"`
	// Lane is the lane of the turn.
	Lane string `json:"lane"`
	// Level and FaultKind belong to the attempt. One of them is empty.
	Level     assay.Level     `json:"level"`
	FaultKind assay.FaultKind `json:"fault"`
	// Turn is the number of the model's reply, and Number the number of the
	// call in the attempt, both from 1.
	Turn   int    `json:"turn"`
	Number int    `json:"call"`
	Tool   string `json:"tool"`
	// Arguments is JSON as the model wrote it. It may be empty.
	Arguments string  `json:"arguments"`
	OK        bool    `json:"ok"`
	Code      string  `json:"code"`
	Error     string  `json:"error"`
	Mistake   bool    `json:"mistake"`
	Chance    float64 `json:"chance"`
	Luck      float64 `json:"luck"`
	// Met is the kind of fault of the tool that the call met, or empty.
	Met assay.ToolFault `json:"tool_fault"`
	// Asked is as in [assay.CallRecord].
	Asked string `json:"asked"`
	// Class is that of the fault's kind, and Reaction is what became of a fault that did not continue an
	// earlier one, as far as that is known.
	Class    string `json:"fault_class"`
	Reaction string `json:"reaction"`
}

// CallsOf returns the calls of an attempt in order. Reaction words what became of the fault of a call,
// by its number from 0.
func CallsOf(a *assay.Attempt, t *assay.Transcript, reaction func(int) string) []Call {
	all := make([]Call, len(t.Calls))
	for i, c := range t.Calls {
		lane := a.Lane
		if c.Turn >= 1 && c.Turn <= len(t.Turns) {
			lane = t.Turns[c.Turn-1].Lane
		}
		all[i] = Call{
			Trial: a.ID, Attempt: a.Number, Model: a.Model, Variant: a.Variant,
			Severity: a.Severity, Difficulty: a.Difficulty,
			TaskType: a.TaskType, Reliability: a.Reliability, Task: a.Task,
			Experiment: a.Experiment, Run: a.Run, Lane: lane,
			Level: a.Level, FaultKind: a.FaultKind,
			Turn: c.Turn, Number: i + 1, Tool: c.Tool, Arguments: c.Arguments, OK: c.OK,
			Code: c.Code, Error: c.Error,
			Mistake: c.Mistake, Chance: c.Chance, Luck: c.Luck, Met: c.Met(), Asked: c.Asked,
		}
		if met := c.Met(); met != "" {
			all[i].Class, all[i].Reaction = met.Rule().Class(), reaction(i)
		}
	}
	return all
}

// calls is the table of calls.
var calls = complete(table[Call]{
	name:     CallTable,
	distinct: []string{"trial", "arguments"},
	absences: []absence[Call]{
		newAbsence(struct {
			Level assay.Level `json:"level"`
		}{}, "null for a fault", ofOutcome),
		newAbsence(struct {
			Chance float64 `json:"chance"`
			Luck   float64 `json:"luck"`
		}{}, "null for a mistake", spentLuck),
	},
	label:     func(c *Call) string { return fmt.Sprintf("trial %s: call %d", c.Trial, c.Number) },
	canonical: canonicalCall,
})

// canonicalCall returns c without luck if it is a mistake.
func canonicalCall(c Call) Call {
	if c.Mistake {
		c.Chance, c.Luck = 0, 0
	}
	return c
}

// Calls of faulted attempts have no level, and mistakes no luck.
func ofOutcome(c *Call) bool { return c.Level != "" }
func spentLuck(c *Call) bool { return !c.Mistake }
