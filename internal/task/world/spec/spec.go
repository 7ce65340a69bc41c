// Package spec defines the parts of a world and holds the rules that worlds share: luck, references,
// the wording of failures, and the parts of verdicts: the course of an episode, its measures, and the
// rationale that records how a verdict came about. Each world decides the level itself, and package
// score the cause.
//
// Each world is a folder next to this one. Package world lists them.
package spec

import (
	"context"
	"encoding/json"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
)

// A Definition is everything that sets one world apart from the others.
type Definition struct {
	Name string
	// ScoreVersion names the rules of Verdict. It changes whenever a transcript could get a
	// different outcome.
	ScoreVersion string

	// Begin returns the world at the start of a trial. A world that is an [Ender] has to be ended.
	// The context is the attempt's.
	Begin func(
		ctx context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
	) World
	// Planner describes the world's chances to the solver of best policies.
	Planner policy.Planner
	// Verdict judges an episode.
	Verdict Verdict

	// Chance is the chance of a call if its dependencies are met and no call failed recently.
	Chance func(reliability float64) float64
	// Steps returns the tools of a task's plan, in order.
	Steps func(catalog *assay.Catalog, required []string) []string
	// Course returns a course for following the calls of an episode. A world that does not follow
	// tools in order has Trace instead, which shows how it judged the calls.
	Course func(catalog *assay.Catalog, task *assay.Task) *Course
	Trace  func(catalog *assay.Catalog, task *assay.Task, tr *assay.Transcript) Trace
	// Facts returns what decides the cause of an outcome.
	Facts func(
		catalog *assay.Catalog, task *assay.Task, tr *assay.Transcript, o *assay.Outcome,
	) Facts

	// Throws returns a trial's luck: a function that returns the fault, or "", of the next call of a
	// tool that spends luck. It is nil if the luck depends on more than the tools called.
	Throws func(catalog *assay.Catalog, trial *assay.Trial) func(tool string) assay.ToolFault

	// Hidden reports whether faults of the tools of a plan can hide what has happened from an agent.
	// Then the planner's chance is that of an agent that knows it, which the best policy may not
	// reach. It is nil if answers always say what has happened.
	Hidden func(catalog *assay.Catalog, trial *assay.Trial, planned []string) bool

	// OwnTools means that users write the tools, their schemas and the judges of tasks.
	OwnTools bool
	// Environments means that an environment has the tools and judges, and each world is a
	// [Dialogue].
	Environments bool
	// References means that the world checks arguments, and that data is passed by reference.
	References bool
	// FailuresLast means that failures can be made to last and to cluster.
	FailuresLast bool
	// FaultKinds means that faults of tools can be of other kinds than [assay.FaultBefore].
	FaultKinds bool
	// ClaimTakesReply means that claiming completion takes a separate reply.
	ClaimTakesReply bool
	// StopsSearches means that a search loop ends an episode unless the experiment file changes
	// the rule. Otherwise it is only recorded.
	StopsSearches bool
}

// ChecksArguments reports whether tools have schemas that their arguments have to fit.
func (d *Definition) ChecksArguments() bool { return d.References || d.OwnTools }

// A Place is a call of a tool in the schedule of a trial's luck. Number counts the tool's calls
// that use luck, from 0.
type Place struct {
	Tool   string
	Number int
}

// A Verdict judges an episode. It fills in everything except the score version and the success of
// the best policy. The rationale may be nil.
type Verdict func(
	catalog *assay.Catalog, task assay.Task, tr *assay.Transcript, why *Rationale,
) assay.Outcome

// A World holds the state of the tools during one episode. It belongs to one goroutine.
type World interface {
	// Call executes a tool and records the call. If the library does not have the tool, it returns
	// an error, and does not use up luck or record the call.
	Call(turn int, name, arguments string) (assay.CallRecord, error)
	// Calls returns the calls so far. The caller must not change them.
	Calls() []assay.CallRecord
	// Succeeded returns the tools that have succeeded, in the order of their first success. In a
	// trial with a mix of faults, it returns the tool of each call that happened, in order.
	// The caller must not change them.
	Succeeded() []string
	// Claims reports whether a reply claims that the work is done, and Ends whether that claim
	// ends the episode. acts is true if the reply contains actions.
	Claims(reply string, acts bool) bool
	Ends(reply string, acts bool) bool
	// Stop reports whether the calls so far end the episode, and how.
	Stop() (assay.Ended, bool)
}

// A Refuser is a world whose tools have schemas, which an interface may offer differently.
type Refuser interface {
	// Refuse records a call that does not keep to the interface as a mistake, and does not execute
	// it. It returns an error where Call does.
	Refuse(turn int, name, arguments, why string) (assay.CallRecord, error)
}

// An Ender is a world whose tools have a state, which the verdict judges.
type Ender interface {
	// End ends the world and returns the state of its tools, or nil if that is unknown. The error
	// is a fault.
	End() (json.RawMessage, error)
}

// A Dialogue is a world in which a user may talk with the agent, and the tools may change.
type Dialogue interface {
	// Begun returns the fault that kept the world from beginning, or nil.
	Begun() error
	// Offers reports whether a tool can be called now.
	Offers(tool string) bool
	// Reply hands over a reply without actions. It returns the next message of the user, or "" if
	// the episode has ended. The error is a fault.
	Reply(ctx context.Context, text string) (next string, err error)
}

// InputsName refers to all inputs of a task. Followed by a dot and a name, it refers to one of
// them.
const InputsName = "inputs"

// RefKey is the member that makes an object a reference.
const RefKey = "ref"

// Clip shortens text that a model made up, so that it cannot fill the conversation.
func Clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return assay.Head(text, most) + "…"
}
