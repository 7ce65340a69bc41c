package assay

import (
	"errors"
	"fmt"
	"slices"
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
	Finished      Ended = "finished"       // the model said so and all required tools had succeeded
	TurnLimit     Ended = "turn_limit"     // no turn was left
	FailureStreak Ended = "failure_streak" // the last five calls all failed
	CallLimit     Ended = "call_limit"     // more than fifteen calls succeeded
	Loop          Ended = "loop"           // the last five successful calls were of one tool
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
	// OrderCorrect says that all required tools succeeded and their first
	// successes came in the required order.
	OrderCorrect bool `json:"order_correct"`
	// Assisted counts the turns that the episode answered with a correction.
	Assisted int `json:"assisted"`
	// ScoreVersion names the rules that gave level and category.
	ScoreVersion string `json:"score_version"`
}

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

	Lane        string `json:"lane"`
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
	case !(a.Coverage >= 0 && a.Coverage <= 1): // so that NaN is refused too
		return fmt.Errorf("coverage %v is outside [0,1]", a.Coverage)
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

// A CallRecord is one executed call of a tool of the library.
type CallRecord struct {
	Turn      int    `json:"turn"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments,omitempty"`
	OK        bool   `json:"ok"`
	// Code and Error are set where OK is false.
	Code  string `json:"code,omitempty"`
	Error string `json:"error,omitempty"`
	// Output is the JSON that the tool returned.
	Output string `json:"output,omitempty"`
	// Chance is the probability of success that the world's rules gave the
	// call, and Luck the uniform draw in [0,1) that decided: OK = Luck < Chance.
	Chance float64 `json:"chance"`
	Luck   float64 `json:"luck"`
}
