package conversation

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/own"
)

// A Verdict is what is known about a conversation.
type Verdict struct {
	Origin       Origin
	Conversation string
	Task         assay.TaskID
	// Level is empty if the conversation does not decide it. Undecided says why.
	Level     assay.Level
	Undecided string
	// Reason has no cause for full success, and if the conversation does not decide it. NoCause says why.
	score.Reason
	NoCause string
	// measures are the other fields of the outcome by their names. What is unknown is nil.
	measures map[string]any
}

// MarshalJSON returns the record of a conversation: its origin, and the fields of its outcome by their names in
// exports. It has no trial, so that nothing takes it for the record of one.
func (v Verdict) MarshalJSON() ([]byte, error) {
	all := map[string]any{
		"origin": v.Origin, "conversation": v.Conversation, "task": v.Task,
		"level": known(v.Level), "undecided": known(v.Undecided),
		"cause": known(v.Cause), "cause_undecided": known(v.NoCause),
		"turn": known(v.Turn), "call": known(v.Call), "because": known(v.Because), "right": known(v.Right),
	}
	maps.Copy(all, v.measures)
	return json.Marshal(all)
}

// known returns a value, or nil if it is empty.
func known[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// A Judge judges conversations about the tasks of a library.
type Judge struct {
	catalog *assay.Catalog
	kit     *toolkit.Kit
	judge   *score.Judge
}

// NewJudge returns a judge. It returns an error if users did not write the tools, because then there is no
// verdict without the luck of a trial, or if only an environment can judge.
func NewJudge(catalog *assay.Catalog) (*Judge, error) {
	switch world.For(catalog) {
	case world.OpenEnv:
		return nil, errors.New("only the environment can judge its tasks, and it cannot be asked afterwards")
	case "":
		return nil, assay.WithHint(errors.New(
			"the library has no tools of your own, whose tasks can be judged from a conversation"), assay.HintOwnLibrary)
	}
	kit, err := toolkit.Of(catalog)
	return &Judge{catalog, kit, score.New(catalog)}, err
}

// Verdict judges a conversation about a task.
func (j *Judge) Verdict(c *Conversation, task *assay.Task) Verdict {
	v := Verdict{Origin: c.Origin, Conversation: c.Name, Task: task.ID}
	if v.Undecided = c.unfit(task); v.Undecided != "" {
		return v
	}
	all, err := histories(j.kit, j.catalog, task, c.calls)
	if err != nil {
		v.Undecided = err.Error()
		return v
	}
	trial := c.trialOf(task)
	var found []score.Explanation
	for _, h := range all {
		if v.Undecided = h.withheld(task); v.Undecided != "" {
			return v
		}
		for _, ended := range c.ends(task) {
			tr := c.transcript(&h, j.planOf(c, trial, task))
			tr.Ended, tr.State = ended, h.state
			e := j.judge.Explain(trial, task, tr)
			if v.Undecided = e.Outcome.Undecided; v.Undecided != "" {
				return v
			}
			found = append(found, e)
		}
	}
	if v.agree(found, all[0].open); v.Level == "" {
		return v
	}
	if v.NoCause == "" && v.Level != assay.FullSuccess {
		v.NoCause = c.causeless(all, &found[0], j.planOf(c, trial, task))
	}
	if v.NoCause != "" {
		v.Reason = score.Reason{}
		delete(v.measures, "error_category")
	}
	if !c.seeded { // they depend on the luck that was not had
		for _, name := range []string{"best_possible", "faults_scheduled", "faults_met"} {
			delete(v.measures, name)
		}
	}
	return v
}

// unfit returns why a conversation about a task cannot be judged at all, or "".
func (c *Conversation) unfit(task *assay.Task) string {
	switch {
	case c.gap != "":
		return c.gap
	case len(c.turns) == 0:
		return "it has no reply of a model"
	case task.Judge != nil && task.Judge.Rubric != "":
		return "a model judges this task, and it is asked only about trials of Assay"
	case c.trial != nil && c.trial.Interface != "" && task.Judge != nil &&
		len(task.Judge.Answer)+len(task.Judge.NotAnswer)+len(task.Judge.Check) > 0:
		return "the tools were offered with the interface " + c.trial.Interface +
			", and the trace does not have the answer in their own formats"
	}
	return ""
}

// withheld returns why the verdict on a history is unknown, or "".
func (h *history) withheld(task *assay.Task) string {
	switch {
	case h.foreign != "":
		return h.foreign
	case task.Judge == nil:
	case h.blind != "" && (len(task.Judge.State) > 0 || task.Judge.Check != ""):
		return "the judge needs the state of the tools, which is unknown: " + h.blind
	case task.Judge.Check != "" && slices.ContainsFunc(h.calls, func(r assay.CallRecord) bool { return r.OK && r.Output == "" }):
		return "the check reads the results of calls, and the conversation does not have all of them"
	}
	return ""
}

// trialOf returns the trial that the conversation is judged as.
func (c *Conversation) trialOf(task *assay.Task) *assay.Trial {
	if c.trial != nil {
		return c.trial
	}
	t := assay.Trial{Cell: assay.Cell{Variant: assay.Baseline, Reliability: 1}, Task: task.ID}
	t.World = own.Name
	return &t
}

// planOf returns the tools of the plan that the model was shown, or nil.
func (j *Judge) planOf(c *Conversation, trial *assay.Trial, task *assay.Task) []string {
	if c.plan != nil || !assay.ShowsPlan(trial.Variant) {
		return c.plan
	}
	if _, drawn := assay.FlawOf(trial.Variant); drawn && !c.seeded {
		return nil
	}
	plan, ok := workflow.Own(j.catalog, trial, task)
	if !ok {
		return nil
	}
	var tools []string
	for _, s := range plan.Steps {
		tools = append(tools, s.Tool)
	}
	return tools
}

// stopped are the ways in which an episode may have ended whose model was still acting.
var stopped = []assay.Ended{assay.TurnLimit, assay.CallLimit, assay.TokenLimit, assay.CostLimit, assay.Loop}

// ends returns the ways in which the conversation may have ended.
func (c *Conversation) ends(task *assay.Task) []assay.Ended {
	last := c.messages[len(c.messages)-1]
	done := last.Role == assay.Assistant && len(last.Calls) == 0
	switch {
	case c.ended != "":
		return []assay.Ended{c.ended}
	case done && (!c.bare || own.Claims(task, last.Content)):
		return []assay.Ended{assay.Finished}
	case c.bare:
		return stopped
	}
	return append(slices.Clone(stopped), assay.AgentError, assay.AgentTimeout)
}

// transcript returns the transcript of a history.
func (c *Conversation) transcript(h *history, plan []string) *assay.Transcript {
	tr := &assay.Transcript{
		Messages: c.messages, Calls: slices.Clone(h.calls), Turns: slices.Clone(c.turns), Plan: plan,
	}
	if !c.bare {
		tr.Agent = new(assay.AgentRecord)
	}
	return tr
}

// agree takes over what all explanations agree on. Open are the calls of which nobody knows what became of
// them.
func (v *Verdict) agree(all []score.Explanation, open []int) {
	first := &all[0]
	v.Level, v.Reason, v.measures = first.Outcome.Level, first.Reason, fields(&first.Outcome)
	doubt := "it depends on how the conversation ended, which it does not say"
	if len(open) > 0 {
		doubt = fmt.Sprintf("it depends on whether %s happened: the results are errors or missing", listed(open))
	}
	for i := range all {
		o := &all[i].Outcome
		if o.Level != first.Outcome.Level {
			v.Undecided = doubt
		}
		if all[i].Reason.Cause != first.Reason.Cause {
			v.NoCause = doubt
		}
		for name, value := range fields(o) {
			if !reflect.DeepEqual(value, v.measures[name]) {
				v.measures[name] = nil
			}
		}
	}
	if v.Undecided != "" {
		*v = Verdict{Origin: v.Origin, Conversation: v.Conversation, Task: v.Task, Undecided: v.Undecided}
	}
}

// fields returns the fields of an outcome by their names in exports, without those of a verdict.
func fields(o *assay.Outcome) map[string]any {
	text, err := json.Marshal(o)
	if err != nil {
		panic("conversation: outcome as JSON: " + err.Error())
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		panic("conversation: outcome from JSON: " + err.Error())
	}
	delete(all, "level")
	delete(all, "cause")
	return all
}

// causeless returns why the cause of a failure is unknown although all histories agree on it, or "".
func (c *Conversation) causeless(all []history, e *score.Explanation, plan []string) string {
	switch {
	case c.unsure != "":
		return c.unsure
	case c.trial != nil && !c.bare && e.Outcome.ToolCalls == 0:
		return "it depends on whether calls of the agent were refused, which the conversation does not say"
	case c.seeded:
		return ""
	}
	limited := e.Outcome.Ended != assay.Finished
	for _, h := range all {
		for i := range h.calls {
			r := &h.calls[i]
			if met := r.Met(); met.Rule().Permanent || limited && met != "" && !r.Happened() {
				return "it depends on the luck of the trial, which the conversation does not have"
			}
		}
	}
	if c.trial != nil && assay.ShowsPlan(c.trial.Variant) && plan == nil && score.FromPlan(e.Reason.Cause) {
		return "it depends on the plan that the model was shown, which the conversation does not have"
	}
	return ""
}
