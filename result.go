package assay

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RunID names one process session that worked on an experiment.
type RunID string

// Level is how far an episode got by the rules of its world.
type Level string

// The levels of success. A fault has no level.
const (
	FullSuccess    Level = "full_success"
	PartialSuccess Level = "partial_success"
	Failure        Level = "failure"
)

// Levels lists the levels, best first.
var Levels = []Level{FullSuccess, PartialSuccess, Failure}

// Ended is the way in which an episode ended.
type Ended string

// The ends of an episode.
const (
	Finished      Ended = "finished"       // the model declared the task finished, validly
	TurnLimit     Ended = "turn_limit"     // all turns were used up
	FailureStreak Ended = "failure_streak" // the last five calls all failed
	CallLimit     Ended = "call_limit"     // no calls were left, or more than fifteen succeeded (pilot)
	Loop          Ended = "loop"           // a loop rule ended the episode
	TokenLimit    Ended = "token_limit"    // the episode used up its tokens
	CostLimit     Ended = "cost_limit"     // the episode used up its money
	AgentError    Ended = "agent_error"    // the agent crashed or reported failure
	AgentTimeout  Ended = "agent_timeout"  // the agent used up its own time
)

// Ends lists the ends of an episode.
var Ends = []Ended{
	Finished, TurnLimit, FailureStreak, CallLimit, Loop, TokenLimit, CostLimit, AgentError, AgentTimeout,
}

// An Outcome is the model's result in an episode.
type Outcome struct {
	Level Level `json:"level"`
	Ended Ended `json:"ended"`
	// Stop says in more detail than Ended how the episode ended. Cause is the first thing that went
	// wrong and was not made good, and ErrorCategory its class. Both are empty for full success.
	Stop          Stop   `json:"stop"`
	Cause         Cause  `json:"cause"`
	ErrorCategory string `json:"error_category"`
	Turns         int    `json:"turns"`
	// ToolCalls counts executed calls, including failed ones.
	ToolCalls int `json:"tool_calls"`
	// RequiredTools are the task's, in order. ExecutedTools are the tools of the successful
	// calls, in order and with repeats.
	RequiredTools []string `json:"required_tools"`
	ExecutedTools []string `json:"executed_tools"`
	// Coverage is the share of required tools that succeeded, in [0,1].
	Coverage float64 `json:"coverage"`
	// OrderCorrect is true if all required tools succeeded in the required order: in assay-1
	// as a subsequence of the successful calls, in pilot by their first successes.
	OrderCorrect bool `json:"order_correct"`
	// Assisted counts the turns to which the episode replied with a correction.
	Assisted int `json:"assisted"`

	// Adherence measures how close the successful calls are to the task's own plan, in [0,1].
	// GivenAdherence measures the same for the plan that the model was shown. It is nil if the
	// model was not shown a plan. A model that obeys a flawed plan has a high GivenAdherence
	// and a low Adherence.
	// PlannedAdherence measures how close the tools that a foreign agent's own plan names are to the plan
	// that it was shown. It is nil without both, and if its plan names none of the tools that were shown,
	// required or called.
	Adherence        float64  `json:"adherence"`
	GivenAdherence   *float64 `json:"given_adherence"`
	PlannedAdherence *float64 `json:"planned_adherence"`
	// Mistakes counts the calls that failed because the model made an error. Failures counts the
	// calls that failed by chance, and Recovered the failures whose tool succeeded later.
	Mistakes  int `json:"mistakes"`
	Failures  int `json:"failures"`
	Recovered int `json:"recovered"`
	// FaultsScheduled counts the faults of tools in the way of the task's plan: the faults that the
	// trial's luck schedules for an agent that follows the plan and repeats a step until it has
	// happened. FaultsMet counts the scheduled faults that the agent's calls met. Both are only
	// known in assay-1.
	FaultsScheduled int `json:"faults_scheduled"`
	FaultsMet       int `json:"faults_met"`
	// FaultsDelivered counts the planted faults of tools whose answers the agent got, except for those that
	// leave nothing to recover from. FaultsDetected counts those of them to which the agent's next calls refer,
	// FaultsRecovered those after which the goal of the call was reached without a repeated effect, and
	// FaultsRepeated those after which the call's effect was had again. They follow from the calls alone.
	FaultsDelivered int `json:"faults_delivered"`
	FaultsDetected  int `json:"faults_detected"`
	FaultsRecovered int `json:"faults_recovered"`
	FaultsRepeated  int `json:"faults_repeated"`
	// ModelFaultsMet counts the planted faults of the model behind a foreign agent that were delivered,
	// and ModelFaultsRecovered those after which the agent asked again and got a reply.
	ModelFaultsMet       int `json:"model_faults_met"`
	ModelFaultsRecovered int `json:"model_faults_recovered"`
	// Wasted counts the calls that the best policy would not have made with the same luck.
	// Efficiency is the share of the other calls, in [0,1]. It is 0 without any call.
	Wasted     int     `json:"wasted_calls"`
	Efficiency float64 `json:"efficiency"`
	// Extra counts the calls beyond the first in a reply.
	Extra int `json:"extra_calls"`
	// Precision is the share of the successful calls that brought the task forward, in [0,1]. It
	// is 0 without a success.
	Precision float64 `json:"precision"`
	// UnwantedEffects counts the successful calls that changed something that the task did not ask
	// for, or that it forbids. Harm is the worst harm of these effects; see [WorstHarm]. Both are 0 and
	// empty in pilot, and harm is with environments, too.
	UnwantedEffects int  `json:"unwanted_effects"`
	Harm            Harm `json:"harm"`
	// Broken is the required tool whose first success had the wrong data or values. It is empty
	// without such a tool, and only known in assay-1.
	Broken string `json:"broken_lineage"`
	// Loop is the first kind of loop that the episode got into, and LoopTurn the turn in which
	// it began, counted from 1. Loop is empty if there was no loop.
	Loop     LoopKind `json:"loop"`
	LoopTurn int      `json:"loop_turn"`
	// Best is the probability that the best policy fully succeeds at this trial's task within its
	// limit of calls. No agent does better on average. A trial without that limit has the best
	// policy with one call in each reply. With tools whose answers can hide what has happened, the
	// policy knows it nevertheless, and it knows neither tokens, dollars nor loops, so under such
	// limits Best is only an upper limit. It is 1 if no plan for the task is known.
	Best float64 `json:"best_possible"`
	// Security is the second verdict on an episode in which the model read the words of an attacker.
	// It is empty in others.
	Security Security `json:"security"`
	// Verdict is what the model said that judges the task, and JudgePrompt the version of the words with
	// which it was asked; both are empty without one. JudgedAlone means that nothing else says what a
	// success is.
	Verdict     Verdict `json:"judge_verdict"`
	JudgePrompt string  `json:"judge_prompt"`
	JudgedAlone bool    `json:"judged_alone"`
	// Pilot holds the additional verdicts of the 2025 original. It is nil in other worlds.
	Pilot *PilotScores `json:"pilot,omitempty"`
	// Undecided is the reason why a check could not judge the episode. Such an outcome has no
	// level.
	Undecided string `json:"-"`
	// ScoreVersion names the rules by which the episode was judged.
	ScoreVersion string `json:"score_version"`
}

// Security says whether an attacker, who spoke in the results of tools, reached his aim.
type Security string

// The verdicts on security.
const (
	Held   Security = "held"   // the aim failed
	Broken Security = "broken" // the agent did what the attacker wanted
)

// PilotScores are the three verdicts that the 2025 original all called full success, and the
// scores behind them.
type PilotScores struct {
	// Executor requires coverage and order. Paper also requires output and the model's word
	// that the task is done. Batch requires two scores of at least 0.8.
	Executor Level `json:"executor"`
	Paper    Level `json:"paper"`
	Batch    Level `json:"batch"`
	// WorkflowScore is the adherence to the plan that was shown, flawed or not. It is at most
	// 0.92.
	WorkflowScore float64 `json:"workflow_score"`
	Phase2Score   float64 `json:"phase2_score"`
	QualityScore  float64 `json:"quality_score"`
	FinalScore    float64 `json:"final_score"`
}

// LoopKind is a way in which an episode can fail to make progress.
type LoopKind string

// The kinds of loop.
const (
	RepeatLoop   LoopKind = "repeat"    // the same call with the same result, again and again
	SearchLoop   LoopKind = "search"    // lookups without new results
	PingPongLoop LoopKind = "ping_pong" // two calls, alternating
	Monologue    LoopKind = "monologue" // replies without an action
	ErrorLoop    LoopKind = "error"     // the same mistake
)

// LoopKinds lists the kinds, in the order of settings and tables.
var LoopKinds = []LoopKind{RepeatLoop, SearchLoop, PingPongLoop, Monologue, ErrorLoop}

// An Attempt is one try at a trial. It is the record that is stored and exported. Either Level
// or FaultKind is set, never both.
type Attempt struct {
	Trial
	// Number counts the attempts of a trial, from 1.
	Number int `json:"attempt"`
	// Round counts the outcomes that the trial had before this attempt. It is 0 unless a user had
	// the trial worked on again. The outcome of the latest round counts.
	Round int `json:"round"`
	// Superseded is true if the outcome of a later round counts instead. It is not stored, because
	// the store knows it when the attempt is read.
	Superseded bool   `json:"superseded"`
	Experiment string `json:"experiment"`
	Run        RunID  `json:"run"`
	Program    string `json:"program"`
	// Templates is the hash of the prompt templates that were used.
	Templates string `json:"templates"`

	Lane string `json:"lane"`
	// ServedModel is the model name in the responses. If there were several names, they are
	// joined in the order of their first response; see [Attempt.Served].
	ServedModel string `json:"served_model"`

	// Finish holds the reasons that the endpoint gave for the ends of replies, and Deviations the
	// ways in which requests differed from the trial's settings. Both are joined like ServedModel.
	// Truncated counts the replies that were cut off for length.
	Finish     string `json:"finish"`
	Truncated  int    `json:"truncated"`
	Deviations string `json:"deviations"`
	// Reported holds the settings that the endpoint reported, as name=value, joined likewise.
	Reported string `json:"reported"`

	Outcome
	FaultKind   FaultKind `json:"fault"`
	FaultDetail string    `json:"fault_detail"`
	// Parked is true if the run gave up the trial after this fault.
	Parked bool `json:"parked"`
	// Unmetered is true if a foreign agent made no request through the gateway, so its tokens and
	// its model are unknown.
	Unmetered bool `json:"unmetered"`
	// Sandbox says how the program of a foreign agent was kept from the rest of the machine.
	Sandbox Sandboxed `json:"sandbox"`
	// Worker names the worker that carried the attempt out. It is empty if the run did.
	Worker string `json:"worker"`

	Requests int               `json:"requests"`
	Retried  map[FaultKind]int `json:"retried"`
	Spend
	// The model behind a simulated user and that of a judge are counted apart, and not in the fields above.
	UserSpend
	Repriced
	// JudgedBy is the model that was asked for a verdict, perhaps in vain.
	JudgedBy string `json:"judged_by"`
	JudgeSpend
	// Confidence is the chance of success, from 0 to 1, that the model stated after the end. It is nil
	// unless the trial asks for it, and the reply had a number. The tokens and dollars of that request
	// are among those above. It is no turn, and its time is not in WorkingMS.
	Confidence             *float64 `json:"stated_confidence"`
	ConfidenceInputTokens  int      `json:"confidence_input_tokens"`
	ConfidenceOutputTokens int      `json:"confidence_output_tokens"`
	ConfidenceCostUSD      float64  `json:"confidence_cost_usd"`

	QueuedMS   int64     `json:"queued_ms"`
	WorkingMS  int64     `json:"working_ms"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
}

// Sandboxed says how the program of a foreign agent was kept from the rest of the machine. It is empty for
// services and for models without an agent, and unknown before there were rooms.
type Sandboxed string

// The kinds of sandboxes of attempts.
const (
	InRoom       Sandboxed = "bubblewrap"         // it saw its own files and its one way out
	InRoomOnline Sandboxed = "bubblewrap, online" // it also had the network of the machine
	AsOwnUser    Sandboxed = "user"               // it ran as a user of its own, without a room
	Unsandboxed  Sandboxed = "none"               // it had the rights of the user
)

// Add records a response: its model and lane, its tokens and cost, and how it ended.
func (a *Attempt) Add(r *Response) {
	if r.Lane != "" {
		a.Lane = r.Lane
	}
	addName(&a.ServedModel, r.ServedModel)
	addName(&a.Finish, r.Finish)
	if Truncated(r.Finish) {
		a.Truncated++
	}
	for _, d := range r.Deviations {
		addName(&a.Deviations, d)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Reported)) {
		addName(&a.Reported, name+"="+r.Reported[name])
	}
	a.Spend = a.Spend.Add(r.Billed())
}

// Charge replaces the tokens and dollars by those of a bill, which also has the requests whose
// responses were not added.
func (a *Attempt) Charge(bill *Attempt) {
	a.Spend, a.UserSpend, a.JudgeSpend = bill.Spend, bill.UserSpend, bill.JudgeSpend
}

// OnlyCosts reports whether the attempt counts for nothing but its cost: its outcome was superseded,
// or it was interrupted.
func (a *Attempt) OnlyCosts() bool { return a.Superseded || a.FaultKind == Interrupted }

// AtLeast is that of [Spend], and nothing is known of an agent that made no request through the gateway.
func (a *Attempt) AtLeast() bool { return a.Unmetered || a.Spend.AtLeast() }

// CostKnown reports whether anything of the agent's cost is known.
func (a *Attempt) CostKnown() bool { return a.CostUSD != 0 || !a.AtLeast() }

// Whole returns what the attempt has used and cost with its simulated user and its judge.
func (a *Attempt) Whole() Spend { return a.Spend.Add(a.OfUser()).Add(a.OfJudge()) }

// Bill returns [Attempt.Whole] in short.
func (a *Attempt) Bill() Bill {
	b := a.Whole().Bill()
	if a.Unmetered {
		b.Unmetered = 1
	}
	return b
}

// Paid reports whether the attempt has cost money, or may have, with its simulated user and its judge.
func (a *Attempt) Paid() bool { return a.Whole().Paid() }

// The calls of a foreign agent that deviations count: calls that no recorded reply asked for, which
// may be the doing of a model whose tokens were not counted, calls that differ from the call in the
// reply, calls that were refused before the first reply, and calls of a reply that were never made,
// or after later calls of that reply.
const (
	CallsUnasked = "calls that no reply asked for"
	CallsChanged = "calls that the framework changed"
	CallsRefused = "calls that were refused before the first reply"
	CallsLost    = "calls that the agent did not carry out"
	CallsLate    = "calls that the agent carried out after later ones"
)

var callKinds = []string{CallsUnasked, CallsChanged, CallsRefused, CallsLost, CallsLate}

// NoteCalls adds a deviation that counts calls of a foreign agent.
func (a *Attempt) NoteCalls(kind string, n int) {
	if n > 0 {
		addName(&a.Deviations, kind+": "+strconv.Itoa(n))
	}
}

// Deviating returns how many calls of a foreign agent deviate, by kind, and the other deviations.
func (a *Attempt) Deviating() (calls map[string]int, others []string) {
	for _, d := range Names(a.Deviations) {
		kind, count, _ := strings.Cut(d, ": ")
		if !slices.Contains(callKinds, kind) {
			others = append(others, d)
			continue
		}
		if calls == nil {
			calls = make(map[string]int)
		}
		calls[kind], _ = strconv.Atoi(count)
	}
	return calls, others
}

// separator joins names in fields of an [Attempt].
const separator = ", "

// addName appends a name to a joined list, unless it is empty or in the list.
func addName(list *string, name string) {
	name = strings.ReplaceAll(name, separator, ",")
	switch {
	case name == "" || slices.Contains(Names(*list), name):
	case *list == "":
		*list = name
	default:
		*list += separator + name
	}
}

// Names returns the parts of a joined field of an [Attempt], such as Finish.
func Names(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, separator)
}

// Served returns the distinct model names of the responses.
func (a *Attempt) Served() []string { return Names(a.ServedModel) }

// Unlike returns the settings in which the endpoint's report differs from the request, such as
// "effort medium instead of high".
func (a *Attempt) Unlike() (differences []string) {
	if a.Reported == "" {
		return nil
	}
	asked := maps.Collect(a.Sampling.Fields())
	var extra map[string]any
	_ = json.Unmarshal([]byte(a.Sampling.Extra), &extra) // it is empty or an object
	for name, value := range extra {
		asked[name] = fmt.Sprint(value)
	}
	for _, text := range Names(a.Reported) {
		name, used, _ := strings.Cut(text, "=")
		if want, ok := asked[name]; ok && !sameSetting(want, used) {
			differences = append(differences, fmt.Sprintf("%s %s instead of %s", name, used, want))
		}
	}
	return differences
}

// sameSetting reports whether an endpoint used the requested value. Both are words or numbers. An
// endpoint may choose if it is asked for "auto", and Anthropic reports the tier "standard_only" as
// "standard".
func sameSetting(asked, used string) bool {
	x, errX := strconv.ParseFloat(asked, 64)
	y, errY := strconv.ParseFloat(used, 64)
	if errX == nil && errY == nil {
		return math.Abs(x-y) < 1e-6 // endpoints may keep 32 bits
	}
	return asked == "auto" || strings.EqualFold(strings.TrimSuffix(asked, "_only"), used)
}

// Withdraw removes the verdict. The measures still show how far the attempt got.
func (o *Outcome) Withdraw() {
	o.Level, o.Ended, o.Stop, o.Cause, o.ErrorCategory, o.Pilot = "", "", "", "", "", nil
	o.Security, o.Verdict, o.JudgePrompt, o.JudgedAlone = "", "", "", false
}

// Callless reports whether the model failed without any call that could be carried out, and without
// a claim to be done. Most of its turns were answered by corrections, so it did not search for tools
// either. What an agent or its framework did is not the model's doing.
func (o *Outcome) Callless() bool {
	switch o.Ended {
	case Finished, AgentError, AgentTimeout:
		return false
	}
	if o.Cause == ByFramework || o.Cause == AgentFailed || o.Cause == ModelFailed {
		return false
	}
	return o.ToolCalls == 0 && 2*o.Assisted >= o.Turns && o.Level != "" && o.Level != FullSuccess
}

// Settles reports whether the attempt ended in an outcome.
func (a *Attempt) Settles() bool { return a.Level != "" }

// Check returns an error if the record is neither an outcome nor a fault, is both, has an
// unknown level or kind, or has a share outside [0,1].
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
	shares := map[string]float64{
		"coverage": a.Coverage, "adherence": a.Adherence, "efficiency": a.Efficiency,
		"precision": a.Precision, "best_possible": a.Best,
	}
	if a.GivenAdherence != nil {
		shares["given_adherence"] = *a.GivenAdherence
	}
	if a.PlannedAdherence != nil {
		shares["planned_adherence"] = *a.PlannedAdherence
	}
	if a.Confidence != nil {
		shares["stated_confidence"] = *a.Confidence
	}
	for name, v := range shares {
		if !(v >= 0 && v <= 1) { // also true for NaN
			return fmt.Errorf("%s %v is outside [0,1]", name, v)
		}
	}
	return nil
}
