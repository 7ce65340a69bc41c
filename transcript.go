package assay

import (
	"encoding/json"
	"time"
)

// A Transcript records everything that happened in an attempt. A fault has one too, up to the
// point where the episode stopped.
type Transcript struct {
	Messages []Message    `json:"messages"`
	Calls    []CallRecord `json:"calls"`
	// Turns holds one record for each reply of the model.
	Turns []TurnRecord `json:"turns"`
	// Plan holds the tools of the plan that the model was shown, in order. It is nil without
	// a plan.
	Plan []string `json:"plan,omitempty"`
	// Loops holds the first loop of each kind, in the order in which they were noticed.
	Loops []LoopRecord `json:"loops,omitempty"`
	// Ended is empty if a fault ended the episode.
	Ended Ended `json:"ended"`
	// State is the final state of the tools, in worlds that judge it. If the library has a
	// [Script.Base], it is a list of changes of that: a JSON Patch (RFC 6902).
	State json.RawMessage `json:"state,omitempty"`
	// Answer is the last reply in the tools' own formats of dates and times, if their interface has
	// others and the reply has some.
	Answer string `json:"answer,omitempty"`
	// Confidence is the reply to the question how likely the model has succeeded.
	Confidence string `json:"confidence,omitempty"`
	// Opinion is what the model of the task's judge said. It is nil without such a judge, and after a fault.
	Opinion *Opinion `json:"opinion,omitempty"`
	// Agent is the record of a foreign agent. It is nil in other episodes.
	Agent *AgentRecord `json:"agent,omitempty"`
	// Spans holds the time that each of Calls took. It is not stored.
	Spans []Span `json:"-"`
}

// An Opinion is what the model of a [Judge] said of an episode.
type Opinion struct {
	// Model is the judge's, and ServedModel the name in its latest response.
	Model       string `json:"model"`
	ServedModel string `json:"served_model"`
	Lane        string `json:"lane"`
	// Prompt is the version of the words that ask, and Asked a digest of all that the model was sent.
	Prompt string `json:"prompt"`
	Asked  string `json:"asked"`
	// Cut counts the bytes of the conversation that were left out of the question.
	Cut     int     `json:"cut,omitempty"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	JudgeSpend
}

// A Verdict is a judge's answer. It is empty if no model was asked.
type Verdict string

// The verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
)

// A Span is a length of time.
type Span struct{ Began, Ended time.Time }

// An AgentRecord holds the end and the output of a foreign agent, and what became of its calls.
type AgentRecord struct {
	// Exit describes how it ended, such as "exit status 1". It is empty for success.
	Exit string `json:"exit,omitempty"`
	// Output and Errors are the ends of its standard output and standard error.
	Output string `json:"output,omitempty"`
	Errors string `json:"errors,omitempty"`
	// Refused are the calls that were not carried out. Calls of one turn and kind share an entry.
	Refused []RefusedCall `json:"refused,omitempty"`
	// Lost are the calls that the model asked for and the agent did not carry out, or too late.
	Lost []LostCall `json:"lost,omitempty"`
	// ModelFaults are the planted faults of its model, in order.
	ModelFaults []ModelFaultRecord `json:"model_faults,omitempty"`
	// Plan has the entries of the latest plan that the agent has made for itself, if it tells.
	Plan []string `json:"plan,omitempty"`
}

// A LostCall is a call that a reply asked for and that never reached the tools. If Late is true, it
// reached them after a later call of the same reply was carried out.
type LostCall struct {
	Turn      int    `json:"turn"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments,omitempty"`
	Late      bool   `json:"late,omitempty"`
}

// A RefusedCall is a call of a tool that was not carried out, or several alike.
type RefusedCall struct {
	Turn int `json:"turn"`
	// Tool and Arguments belong to the first call, and Asked is as in [CallRecord].
	Tool      string `json:"tool"`
	Arguments string `json:"arguments,omitempty"`
	Asked     string `json:"asked,omitempty"`
	Why       string `json:"why"`
	Times     int    `json:"times"`
}

// Refused returns how many calls of a foreign agent were not carried out.
func (t *Transcript) Refused() (n int) {
	if t.Agent != nil {
		for _, r := range t.Agent.Refused {
			n += r.Times
		}
	}
	return n
}

// A TurnRecord holds the cost of one reply.
type TurnRecord struct {
	Lane        string `json:"lane"`
	ServedModel string `json:"served_model"`
	// Identity lists the parts that were ignored when ServedModel was compared with the name that
	// was ordered; see [SameModel].
	Identity string `json:"identity,omitempty"`
	Usage
	// Finish, Deviations and Reported are copies from the [Response].
	Finish     string            `json:"finish,omitempty"`
	Deviations []string          `json:"deviations,omitempty"`
	Reported   map[string]string `json:"reported,omitempty"`
	QueuedMS   int64             `json:"queued_ms"`
	WorkingMS  int64             `json:"working_ms"`
	Requests   int               `json:"requests"`
	// Lookups counts searches for tools and requests for a tool's details.
	Lookups int `json:"lookups"`
	// Assisted is true if the episode answered the reply with a correction.
	Assisted bool `json:"assisted"`
}

// A LoopRecord describes a loop: its kind, the turn in which it began and the turn in which it
// was noticed, both counted from 1.
type LoopRecord struct {
	Kind    LoopKind `json:"kind"`
	Began   int      `json:"began"`
	Noticed int      `json:"noticed"`
}

// A CallRecord is one executed call of a tool.
type CallRecord struct {
	Turn      int    `json:"turn"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments,omitempty"`
	// Asked is the call as the model wrote it, if the framework of a foreign agent made this one of
	// it.
	Asked string `json:"asked,omitempty"`
	// Written are the arguments as they were written, and Shown is the result as it was shown, if the
	// interface of the tools has them differently from Arguments and Output; see [Cell.Interface].
	Written string `json:"written,omitempty"`
	Shown   string `json:"shown,omitempty"`
	// OK is true if the answer was a success. See [CallRecord.Happened].
	OK bool `json:"ok"`
	// Code and Error are set if OK is false.
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
	// Mistake is true if the call failed because the model made an error. Such a call spends
	// no luck, so Chance and Luck are 0.
	Mistake bool `json:"mistake,omitempty"`
	// Output is the JSON that the model was shown as the tool's result.
	Output string `json:"output,omitempty"`
	// Chance is the probability, by the rules of the world, that the call meets no fault. Luck is
	// the uniform draw in [0,1) that decided the call: it meets a fault if Luck >= Chance.
	Chance float64 `json:"chance"`
	Luck   float64 `json:"luck"`
	// Fault is the kind of fault that the call met. It is empty in trials without a mix of faults,
	// where each failure by chance is [FaultBefore]; see [CallRecord.Met].
	Fault ToolFault `json:"fault,omitempty"`
	// Seconds is the reported duration of a slow call.
	Seconds int `json:"seconds,omitempty"`
	// Wait is the number of calls, of any tools, that have to be made before a tool takes calls again
	// that refused this one for a while.
	Wait int `json:"wait,omitempty"`
	// Renamed is the new name of a parameter, if the call used it; see [FaultDrift]. Arguments has the
	// name by which the tool knows it.
	Renamed string `json:"renamed,omitempty"`
	// Cursor is that with which the call asked for the rest of a list; see [FaultPartial]. Arguments are
	// those of the call whose answer was cut.
	Cursor string `json:"cursor,omitempty"`
	// Wrong is the value in Output that stands in place of Truth, both in JSON; see [FaultWrongValue].
	Wrong string `json:"wrong,omitempty"`
	Truth string `json:"truth,omitempty"`
}

// Met returns the kind of fault that the call met, or "" without a fault.
func (r *CallRecord) Met() ToolFault {
	if r.Fault == "" && !r.OK && !r.Mistake {
		return FaultBefore
	}
	return r.Fault
}

// Happened reports whether the call happened, whatever its answer was. OK is the answer's claim.
func (r *CallRecord) Happened() bool {
	if fault := r.Met(); fault != "" {
		return fault.Happens()
	}
	return r.OK
}
