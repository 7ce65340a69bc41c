package assay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// RunID names one process session that worked on an experiment.
type RunID string

// Level is how far an episode got, by its world's rules.
type Level string

// The levels of success. A fault has none.
const (
	FullSuccess    Level = "full_success"
	PartialSuccess Level = "partial_success"
	Failure        Level = "failure"
)

// Levels lists the levels, best first.
var Levels = []Level{FullSuccess, PartialSuccess, Failure}

// Ended is how an episode came to its end.
type Ended string

// The ends of an episode.
const (
	Finished      Ended = "finished"       // the model said so, as its world accepts it
	TurnLimit     Ended = "turn_limit"     // no turn was left
	FailureStreak Ended = "failure_streak" // the last five calls all failed
	CallLimit     Ended = "call_limit"     // more than fifteen calls succeeded
	Loop          Ended = "loop"           // no progress, and a rule ends an episode for that
	TokenLimit    Ended = "token_limit"    // the episode had used up its tokens
	CostLimit     Ended = "cost_limit"     // the episode had used up its money
)

// An Outcome is what the model earned in an episode.
type Outcome struct {
	Level Level `json:"level"`
	Ended Ended `json:"ended"`
	// ErrorCategory is the one reason why the level is not full success;
	// empty for full success.
	ErrorCategory string `json:"error_category"`
	Turns         int    `json:"turns"`
	// ToolCalls counts executed calls, failed ones included.
	ToolCalls int `json:"tool_calls"`
	// RequiredTools are the task's, in order; ExecutedTools are the
	// successful calls in order, repeats kept.
	RequiredTools []string `json:"required_tools"`
	ExecutedTools []string `json:"executed_tools"`
	// Coverage is the share of required tools that succeeded, in [0,1].
	Coverage float64 `json:"coverage"`
	// OrderCorrect says that all required tools succeeded in the required
	// order: in assay-1 as a subsequence of the successful calls, in pilot by
	// their first successes.
	OrderCorrect bool `json:"order_correct"`
	// Assisted counts the turns that the episode answered with a correction.
	Assisted int `json:"assisted"`

	// Adherence tells how near the successful calls come to the task's own
	// plan, in [0,1], and GivenAdherence to the plan that the model was shown;
	// nil where it was shown none. Where the plan was flawed, obeying it is
	// seen in the second and costs in the first.
	Adherence      float64  `json:"adherence"`
	GivenAdherence *float64 `json:"given_adherence"`
	// Mistakes counts calls that failed by the model's own error, Failures
	// those that failed by chance, and Recovered those of them whose tool
	// succeeded later.
	Mistakes  int `json:"mistakes"`
	Failures  int `json:"failures"`
	Recovered int `json:"recovered"`
	// Wasted counts the calls that the best policy would not have made with
	// the same luck, and Efficiency is the share of the others, in [0,1]; 0
	// without any call.
	Wasted     int     `json:"wasted_calls"`
	Efficiency float64 `json:"efficiency"`
	// Extra counts calls beyond the first of a reply.
	Extra int `json:"extra_calls"`
	// Loop is the first kind of loop that the episode got into, empty for
	// none, and LoopTurn the turn in which that began, from 1.
	Loop     LoopKind `json:"loop"`
	LoopTurn int      `json:"loop_turn"`
	// Best is the probability with which the best policy, one call a reply,
	// fully succeeds at this trial's task within its turns. It is the ceiling
	// that a rate of full success is compared with.
	Best float64 `json:"best_possible"`
	// Pilot holds the further verdicts of the 2025 original; nil in other
	// worlds.
	Pilot *PilotScores `json:"pilot,omitempty"`
	// ScoreVersion names the rules that gave level and category.
	ScoreVersion string `json:"score_version"`
}

// The error categories, one for each outcome that is not full success.
const (
	CategoryToolCallFormat  = "tool_call_format" // no valid call was ever made
	CategoryTimeout         = "timeout"          // a time limit ended the episode: a fault here, so no outcome has it
	CategoryMaxTurns        = "max_turns"        // the turns were used up
	CategoryToolSelection   = "tool_selection"   // a required tool was left out, and others were called
	CategoryParameterConfig = "parameter_config" // wrong arguments; no call in the pilot world can earn it
	CategorySequenceOrder   = "sequence_order"   // right tools, wrong order
	CategoryDependency      = "dependency"       // a tool was called before what it needs had succeeded
	CategoryOther           = "other"            // right decisions, bad luck
)

// ErrorCategories lists the error categories, in the order of tables.
var ErrorCategories = []string{
	CategoryToolCallFormat, CategoryTimeout, CategoryMaxTurns, CategoryToolSelection,
	CategoryParameterConfig, CategorySequenceOrder, CategoryDependency, CategoryOther,
}

// PilotScores are the three verdicts that the 2025 original gave under the one
// name of full success, and the scores behind them.
type PilotScores struct {
	// Executor asks for coverage and order, Paper also for output and a claim
	// to be done, and Batch for two scores of at least 0.8.
	Executor Level `json:"executor"`
	Paper    Level `json:"paper"`
	Batch    Level `json:"batch"`
	// WorkflowScore is adherence to the plan that was shown, flawed or not;
	// at most 0.92.
	WorkflowScore float64 `json:"workflow_score"`
	Phase2Score   float64 `json:"phase2_score"`
	QualityScore  float64 `json:"quality_score"`
	FinalScore    float64 `json:"final_score"`
}

// LoopKind is a way in which an episode made no progress.
type LoopKind string

// The kinds of loop.
const (
	RepeatLoop   LoopKind = "repeat"    // the same call with the same result
	SearchLoop   LoopKind = "search"    // lookups that show nothing new
	PingPongLoop LoopKind = "ping_pong" // two calls in turn
	Monologue    LoopKind = "monologue" // replies without an action
	ErrorLoop    LoopKind = "error"     // the same mistake
)

// LoopKinds lists the kinds, in the order of settings and tables.
var LoopKinds = []LoopKind{RepeatLoop, SearchLoop, PingPongLoop, Monologue, ErrorLoop}

// An Attempt is one try at a trial: the record that is stored and exported.
// Either Level or FaultKind is set, never both.
type Attempt struct {
	Trial
	// Number counts the attempts of a trial, from 1.
	Number     int    `json:"attempt"`
	Experiment string `json:"experiment"`
	Run        RunID  `json:"run"`
	Program    string `json:"program"`
	// Templates is the hash of the prompt templates that were in force.
	Templates string `json:"templates"`

	Lane string `json:"lane"`
	// ServedModel is the name that the responses bore. Where they bore several,
	// these stand in the order in which they came; see [Attempt.Served].
	ServedModel string `json:"served_model"`

	Outcome
	FaultKind   FaultKind `json:"fault"`
	FaultDetail string    `json:"fault_detail"`
	// Parked says that with this fault the run gave the trial up.
	Parked bool `json:"parked"`

	Requests     int               `json:"requests"`
	Retried      map[FaultKind]int `json:"retried"`
	InputTokens  int               `json:"input_tokens"`
	OutputTokens int               `json:"output_tokens"`
	CostUSD      float64           `json:"cost_usd"`
	QueuedMS     int64             `json:"queued_ms"`
	WorkingMS    int64             `json:"working_ms"`
	StartedAt    time.Time         `json:"started_at"`
	FinishedAt   time.Time         `json:"finished_at"`
}

// servedBetween parts the names of [Attempt.ServedModel].
const servedBetween = ", "

// AddServed takes note of the name that a response bore, if it bore one.
func (a *Attempt) AddServed(name string) {
	switch {
	case name == "" || slices.Contains(a.Served(), name):
	case a.ServedModel == "":
		a.ServedModel = name
	default:
		a.ServedModel += servedBetween + name
	}
}

// Served returns the names that responses bore, each once.
func (a *Attempt) Served() []string {
	if a.ServedModel == "" {
		return nil
	}
	return strings.Split(a.ServedModel, servedBetween)
}

// Settles reports whether the attempt ended in an outcome.
func (a *Attempt) Settles() bool { return a.Level != "" }

// Check says what makes the record count as something that it is not: it has
// to be an outcome or a fault, of a known level or kind.
func (a *Attempt) Check() error {
	switch {
	case a.Level == "" && a.FaultKind == "":
		return errors.New("neither level nor fault is set")
	case a.Level != "" && a.FaultKind != "":
		return fmt.Errorf("level %s and fault %s are both set", a.Level, a.FaultKind)
	case a.Level != "" && !slices.Contains(Levels, a.Level):
		return fmt.Errorf("unknown level %q", a.Level)
	case a.FaultKind != "" && !slices.Contains(FaultKinds, a.FaultKind):
		return fmt.Errorf("unknown fault %q", a.FaultKind)
	}
	shares := map[string]float64{"coverage": a.Coverage, "adherence": a.Adherence, "efficiency": a.Efficiency, "best_possible": a.Best}
	if a.GivenAdherence != nil {
		shares["given_adherence"] = *a.GivenAdherence
	}
	for name, v := range shares {
		if !(v >= 0 && v <= 1) { // so that NaN is refused too
			return fmt.Errorf("%s %v is outside [0,1]", name, v)
		}
	}
	return nil
}

// A Transcript is everything that happened in an attempt. It is stored for
// faults too, as far as the episode got.
type Transcript struct {
	Messages []Message    `json:"messages"`
	Calls    []CallRecord `json:"calls"`
	// Turns holds one entry for each reply of the model.
	Turns []TurnRecord `json:"turns"`
	// Plan holds the tools of the plan that the model was shown, in order; nil
	// without one.
	Plan []string `json:"plan,omitempty"`
	// Loops are the loops that the episode got into, the first of each kind,
	// in the order in which they were noticed.
	Loops []LoopRecord `json:"loops,omitempty"`
	// Ended is empty where a fault cut the episode off.
	Ended Ended `json:"ended"`
}

// A TurnRecord tells what one reply cost.
type TurnRecord struct {
	Lane        string `json:"lane"`
	ServedModel string `json:"served_model"`
	Usage
	QueuedMS  int64 `json:"queued_ms"`
	WorkingMS int64 `json:"working_ms"`
	Requests  int   `json:"requests"`
	// Lookups counts searches for tools and requests for a tool's details.
	Lookups int `json:"lookups"`
	// Assisted says that the episode answered the reply with a correction.
	Assisted bool `json:"assisted"`
}

// A LoopRecord is one loop: its kind, the turn in which it began and the turn
// in which it was noticed, both from 1.
type LoopRecord struct {
	Kind    LoopKind `json:"kind"`
	Began   int      `json:"began"`
	Noticed int      `json:"noticed"`
}

// A CallRecord is one executed call of a tool of the library.
type CallRecord struct {
	Turn      int    `json:"turn"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments,omitempty"`
	OK        bool   `json:"ok"`
	// Code and Error are set where OK is false.
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
	// Mistake says that the call failed by the model's own error, whatever the
	// luck; it spent none, and Chance and Luck are 0.
	Mistake bool `json:"mistake,omitempty"`
	// Output is the JSON that the tool returned.
	Output string `json:"output,omitempty"`
	// Chance is the probability of success that the world's rules gave the
	// call, and Luck the uniform draw in [0,1) that decided: OK = Luck < Chance.
	Chance float64 `json:"chance"`
	Luck   float64 `json:"luck"`
}
