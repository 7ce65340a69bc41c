package assay

import "strings"

// A Stop is how an episode ended.
type Stop string

// The ways in which episodes end. The ones with a limit are the end only if the model was still
// acting.
const (
	Answered    Stop = "answered"   // the model said that it was done
	GaveUp      Stop = "gave_up"    // it stopped acting and said that it could not go on
	Declined    Stop = "refused"    // the same, without any call
	LeftEarly   Stop = "left_early" // an agent ended without a word about that
	CutOff      Stop = "cut_off"    // the endpoint cut its last reply off
	OutOfTurns  Stop = "limit_of_turns"
	OutOfCalls  Stop = "limit_of_calls"
	OutOfTokens Stop = "limit_of_tokens"
	OutOfMoney  Stop = "limit_of_dollars"
	OutOfTime   Stop = "limit_of_time"
	Looped      Stop = "loop"
	Failed      Stop = "failures_in_a_row"
	Crashed     Stop = "crash_of_the_agent"
)

// Stops lists the ways in which episodes end.
var Stops = []Stop{
	Answered, GaveUp, Declined, LeftEarly, CutOff, OutOfTurns, OutOfCalls, OutOfTokens, OutOfMoney,
	OutOfTime, Looped, Failed, Crashed,
}

// A Cause is what a person would name first if asked why an episode failed: the first thing that went
// wrong and was not made good. It does not depend on how a task is judged.
type Cause string

// The causes.
const (
	NoAction       Cause = "no_action"                // it stopped acting, or never began
	MalformedCall  Cause = "malformed_call"           // no call could be read
	FalseClaim     Cause = "false_claim"              // it said that it was done, without any call
	WrongTool      Cause = "wrong_tool"               // a tool that the task has no use for
	WrongArgument  Cause = "wrong_argument"           // the right tool with wrong arguments, data or values
	WrongOrder     Cause = "wrong_order"              // a step before its turn
	SkippedStep    Cause = "skipped_step"             // it went on without a step
	NotRetried     Cause = "did_not_retry"            // a call was answered by an error, and it stopped there
	RetriedTooMuch Cause = "repeated_needlessly"      // calls again and again that had succeeded
	RepeatedEffect Cause = "repeated_an_effect"       // which had happened, perhaps without an answer
	BelievedAnswer Cause = "believed_a_wrong_answer"  // it acted on a stale one, or one with a part missing
	HarmfulEffect  Cause = "harmful_effect"           // a change that the task did not ask for
	WrongAnswer    Cause = "wrong_answer"             // all steps were done, but the result is wrong
	NoEnd          Cause = "no_end"                   // all steps were done, but it did not say so
	HitLimit       Cause = "hit_a_limit"              // right decisions, and a limit came first
	FollowedFlaw   Cause = "followed_the_flaw"        // it did what the flawed plan says
	ByFramework    Cause = "changed_by_the_framework" // of a foreign agent
	BadLuck        Cause = "bad_luck"                 // with this luck, nobody could have succeeded
	AgentFailed    Cause = "the_agent_failed"         // it crashed, hung or left before the end
	ModelFailed    Cause = "a_fault_of_its_model"     // planted; the agent did not ask again
	JudgeSaidNo    Cause = "the_judge_said_no"        // a model did, and the task's other conditions hold
	Unclear        Cause = "unclear"                  // the judge is not content, and nothing says why
)

// Causes lists the causes in the order of tables.
var Causes = []Cause{
	NoAction, MalformedCall, FalseClaim, WrongTool, WrongArgument, WrongOrder, SkippedStep,
	NotRetried, RetriedTooMuch, RepeatedEffect, BelievedAnswer, HarmfulEffect, WrongAnswer,
	NoEnd, HitLimit, FollowedFlaw, ByFramework, AgentFailed, ModelFailed, BadLuck, JudgeSaidNo,
	Unclear,
}

// Text returns the cause as readers see it.
func (c Cause) Text() string { return strings.ReplaceAll(string(c), "_", " ") }

// Text returns the stop as readers see it.
func (s Stop) Text() string { return strings.ReplaceAll(string(s), "_", " ") }

// The error categories, one for each outcome that is not full success: the seven of the original
// benchmark, five more, and other. They are classes of causes, except in the world pilot, which has
// the original's own rules.
const (
	CategoryToolCallFormat  = "tool_call_format" // no valid call was ever made
	CategoryTimeout         = "timeout"          // an agent used up its own time
	CategoryMaxTurns        = "max_turns"        // a limit on turns, calls, tokens or dollars was reached
	CategoryToolSelection   = "tool_selection"   // required tools were not called
	CategoryParameterConfig = "parameter_config" // wrong arguments; never in the pilot world
	CategorySequenceOrder   = "sequence_order"   // right tools, wrong order
	CategoryDependency      = "dependency"       // a tool was called before its dependencies
	CategoryUnwantedEffect  = "unwanted_effect"  // something changed that the task did not ask for
	CategoryAgentFailure    = "agent_failure"    // an agent crashed or reported failure
	CategoryFramework       = "framework"        // an agent's framework changed a call
	CategoryJudge           = "judge"            // only the model that judges says no
	CategoryOther           = "other"            // bad luck, a wrong reaction to it, or a wrong result
)

// ErrorCategories lists the error categories, in the order of tables.
var ErrorCategories = []string{
	CategoryToolCallFormat, CategoryTimeout, CategoryMaxTurns, CategoryToolSelection,
	CategoryParameterConfig, CategorySequenceOrder, CategoryDependency, CategoryUnwantedEffect,
	CategoryAgentFailure, CategoryFramework, CategoryJudge, CategoryOther,
}
