package export

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// attempts is the table of attempts.
var attempts = table[assay.Attempt]{
	name:    AttemptTable,
	columns: attemptColumns,
	absences: []absence[assay.Attempt]{
		newAbsence(noOutcome(), settles),
		newAbsence(struct {
			CostUSD float64 `json:"cost_usd"`
		}{}, hasCost),
	},
	required:  attemptRequired,
	label:     func(a *assay.Attempt) string { return "trial " + string(a.ID) },
	canonical: canonical,
	plain:     plain,
	check:     checkAttempt,
}

// attemptColumns are in the order of the JSON fields.
var attemptColumns = slices.Concat(trialColumns, outcomeColumns, effortColumns)

// trialColumns are the trial and the circumstances of the attempt.
var trialColumns = []column[assay.Attempt]{
	distinct(text("trial", "Identity of the trial: 128 bits of SHA-256 over its content, in hex.",
		func(a *assay.Attempt) *assay.TrialID { return &a.ID })),
	text("model", "Model that was requested, by its name in the experiment.",
		func(a *assay.Attempt) *string { return &a.Model }),
	text("variant",
		"How the task was given to the model: alone, with advice, with its plan or with a flawed "+
			"plan.",
		func(a *assay.Attempt) *string { return &a.Variant }),
	text("severity",
		"How serious the flaw of a flawed plan is; empty if the variant has no severity.",
		func(a *assay.Attempt) *string { return &a.Severity }),
	text("difficulty", "Difficulty of the task.",
		func(a *assay.Attempt) *string { return &a.Difficulty }),
	text("task_type", "Type of the task.", func(a *assay.Attempt) *string { return &a.TaskType }),
	real("reliability", "Probability, in [0,1], that a well-formed call works.",
		func(a *assay.Attempt) *float64 { return &a.Reliability }),
	text("fault_mix",
		"Shares of the kinds of faults of tools, as kind=share; empty if all are before.",
		func(a *assay.Attempt) *string { return &a.Faults }),
	text("task", "Identity of the task in its library.",
		func(a *assay.Attempt) *assay.TaskID { return &a.Task }),
	text("task_digest",
		"Digest of the task as planned, including its tools if they are not the built-in ones.",
		func(a *assay.Attempt) *string { return &a.TaskDigest }),
	whole("repeat", "Number of the repeat of the task in its cell, from 1.",
		func(a *assay.Attempt) *int { return &a.Repeat }),
	seed("seed", "Seed of all luck of the trial, an integer below 2^53.",
		func(a *assay.Attempt) *uint64 { return &a.Seed }),
	text("world", "Name and version of the rules for tools, luck and scoring.",
		func(a *assay.Attempt) *string { return &a.World }),
	text("protocol", "How the model calls tools.",
		func(a *assay.Attempt) *string { return &a.Protocol }),
	text("tools", "Which tools were described to the model.",
		func(a *assay.Attempt) *string { return &a.Tools }),
	whole("turn_limit", "Maximum number of turns in the episode.",
		func(a *assay.Attempt) *int { return &a.Setting.Turns }),
	whole("call_limit",
		"Maximum number of calls of tools in the episode; 0 means no limit.",
		func(a *assay.Attempt) *int { return &a.Setting.Calls }),
	object("sampling",
		"Sampling parameters of the request, a JSON object without those that were left to the "+
			"provider.",
		func(a *assay.Attempt) *assay.Sampling { return &a.Sampling }),
	whole("token_limit", "Tokens after which the episode ends; 0 means no limit.",
		func(a *assay.Attempt) *int { return &a.Setting.Tokens }),
	real("cost_limit", "Dollars after which the episode ends; 0 means no limit.",
		func(a *assay.Attempt) *float64 { return &a.Setting.USD }),
	text("several_calls",
		"What happened to calls after the first of a reply: empty if they ran, or refuse.",
		func(a *assay.Attempt) *string { return &a.SeveralCalls }),
	real("persistence", "How strongly a random failure persists for the same tool, in [0,1).",
		func(a *assay.Attempt) *float64 { return &a.Persistence }),
	real("burst", "How strongly a random failure spreads to the next call, in [0,1).",
		func(a *assay.Attempt) *float64 { return &a.Burst }),
	text("loops", "Rules for loops; empty for the world's own rules.",
		func(a *assay.Attempt) *string { return &a.Loops }),
	text("agent_model", "Model that served a foreign agent; empty if the model itself was tested.",
		func(a *assay.Attempt) *string { return &a.AgentModel }),
	text("agent_timeout", "Time that a foreign agent could take itself, such as 10m0s.",
		func(a *assay.Attempt) *string { return &a.AgentTimeout }),
	whole("attempt", "Number of the attempt at its trial, from 1.",
		func(a *assay.Attempt) *int { return &a.Number }),
	whole("round", "Outcomes of the trial before; not 0 if it was worked on again.",
		func(a *assay.Attempt) *int { return &a.Round }),
	text("experiment", "Name of the experiment that the attempt was made for.",
		func(a *assay.Attempt) *string { return &a.Experiment }),
	text("run", "Identity of the run that made the attempt.",
		func(a *assay.Attempt) *assay.RunID { return &a.Run }),
	text("program", "Version of the program that made the attempt.",
		func(a *assay.Attempt) *string { return &a.Program }),
	text("templates", "Hash of the prompt templates in use.",
		func(a *assay.Attempt) *string { return &a.Templates }),
	text("lane", "Lane that served the latest turn: provider, key and deployment.",
		func(a *assay.Attempt) *string { return &a.Lane }),
	text("served_model",
		"Model that answered according to the endpoint; several are in the order of the replies, "+
			"separated by commas.",
		func(a *assay.Attempt) *string { return &a.ServedModel }),
	text("finish",
		"Why replies ended, in the words of the endpoint; several are in the order of the replies, "+
			"separated by commas.",
		func(a *assay.Attempt) *string { return &a.Finish }),
	whole("truncated", "Replies that the endpoint cut off for length.",
		func(a *assay.Attempt) *int { return &a.Truncated }),
	text("deviations",
		"How requests differed from what was asked because the endpoint does not accept it; "+
			"separated by commas.",
		func(a *assay.Attempt) *string { return &a.Deviations }),
	text("reported",
		"What the endpoint reported that it used, as name=value; separated by commas.",
		func(a *assay.Attempt) *string { return &a.Reported }),
}

// outcomeColumns are the fields of the outcome. They are null if there is none, so that a mean
// over attempts is a mean over outcomes.
var outcomeColumns = ofOutcomes(
	text("level",
		"How far the episode got: full_success, partial_success or failure.",
		func(a *assay.Attempt) *assay.Level { return &a.Level }),
	text("ended", "How the episode ended.",
		func(a *assay.Attempt) *assay.Ended { return &a.Ended }),
	text("error_category",
		"The single reason why the level is not full success; empty for full success.",
		func(a *assay.Attempt) *string { return &a.ErrorCategory }),
	whole("turns", "Turns that the model took.",
		func(a *assay.Attempt) *int { return &a.Outcome.Turns }),
	whole("tool_calls", "Tool calls that were executed, including failed ones.",
		func(a *assay.Attempt) *int { return &a.ToolCalls }),
	list("required_tools", "Tools that the task requires, in order.",
		func(a *assay.Attempt) *[]string { return &a.RequiredTools }),
	list("executed_tools", "Tools whose calls succeeded, in order and with repeats.",
		func(a *assay.Attempt) *[]string { return &a.ExecutedTools }),
	real("coverage", "Share of the required tools that succeeded, in [0,1].",
		func(a *assay.Attempt) *float64 { return &a.Coverage }),
	flag("order_correct", "Whether all required tools succeeded in the required order.",
		func(a *assay.Attempt) *bool { return &a.OrderCorrect }),
	whole("assisted", "Turns that the episode answered with a correction.",
		func(a *assay.Attempt) *int { return &a.Assisted }),
	real("adherence", "How close the successful calls are to the task's own plan, in [0,1].",
		func(a *assay.Attempt) *float64 { return &a.Adherence }),
	optional(real("given_adherence",
		"How close the successful calls are to the plan that the model was given, in [0,1]; null "+
			"if it was given no plan.",
		func(a *assay.Attempt) *float64 { return a.GivenAdherence }), givenAdherence),
	whole("mistakes", "Calls that failed because of the model's own error.",
		func(a *assay.Attempt) *int { return &a.Mistakes }),
	whole("failures", "Calls that failed by chance.",
		func(a *assay.Attempt) *int { return &a.Failures }),
	whole("recovered", "Calls that failed by chance but whose tool succeeded later.",
		func(a *assay.Attempt) *int { return &a.Recovered }),
	whole("faults_scheduled",
		"Faults of tools in the way of the task's plan with the trial's luck; assay-1 only.",
		func(a *assay.Attempt) *int { return &a.FaultsScheduled }),
	whole("faults_met", "Scheduled faults that the calls met.",
		func(a *assay.Attempt) *int { return &a.FaultsMet }),
	whole("wasted_calls", "Calls that the best policy would not have made with the same luck.",
		func(a *assay.Attempt) *int { return &a.Wasted }),
	real("efficiency",
		"Share of the calls that were not wasted, in [0,1]; 0 if there were no calls.",
		func(a *assay.Attempt) *float64 { return &a.Efficiency }),
	whole("extra_calls", "Calls after the first of a reply.",
		func(a *assay.Attempt) *int { return &a.Extra }),
	real("precision",
		"Share of the successful calls that brought the task forward, in [0,1]; 0 if no call "+
			"succeeded.",
		func(a *assay.Attempt) *float64 { return &a.Precision }),
	whole("unwanted_effects",
		"Successful calls that changed something that the task did not ask for; always 0 in pilot.",
		func(a *assay.Attempt) *int { return &a.UnwantedEffects }),
	text("broken_lineage",
		"Required tool whose first success had the wrong data or values; empty if there was none, "+
			"and in pilot.",
		func(a *assay.Attempt) *string { return &a.Broken }),
	text("loop", "Kind of the first loop in the episode; empty if there was no loop.",
		func(a *assay.Attempt) *assay.LoopKind { return &a.Loop }),
	whole("loop_turn", "Turn in which that loop began, from 1; 0 if there was no loop.",
		func(a *assay.Attempt) *int { return &a.LoopTurn }),
	real("best_possible",
		"Probability, in [0,1], that the best policy fully succeeds; 1 if the task has no plan.",
		func(a *assay.Attempt) *float64 { return &a.Best }),
	optional(text("pilot_executor",
		"Level by the 2025 original's coverage and order; null in worlds other than pilot.",
		func(a *assay.Attempt) *assay.Level { return &a.Pilot.Executor }), pilot),
	optional(text("pilot_paper",
		"Level by the 2025 original's paper, which requires output and a claim to be done; null "+
			"in worlds other than pilot.",
		func(a *assay.Attempt) *assay.Level { return &a.Pilot.Paper }), pilot),
	optional(text("pilot_batch",
		"Level by the 2025 original's rule of two scores of at least 0.8; null in worlds other "+
			"than pilot.",
		func(a *assay.Attempt) *assay.Level { return &a.Pilot.Batch }), pilot),
	optional(real("pilot_workflow_score",
		"The 2025 original's score of adherence to the given plan, in [0,0.92]; null in worlds "+
			"other than pilot.",
		func(a *assay.Attempt) *float64 { return &a.Pilot.WorkflowScore }), pilot),
	optional(real("pilot_phase2_score",
		"The 2025 original's score of its second phase, without a unit; null in worlds other "+
			"than pilot.",
		func(a *assay.Attempt) *float64 { return &a.Pilot.Phase2Score }), pilot),
	optional(real("pilot_quality_score",
		"The 2025 original's quality score, without a unit; null in worlds other than pilot.",
		func(a *assay.Attempt) *float64 { return &a.Pilot.QualityScore }), pilot),
	optional(real("pilot_final_score",
		"The 2025 original's final score, without a unit; null in worlds other than pilot.",
		func(a *assay.Attempt) *float64 { return &a.Pilot.FinalScore }), pilot),
	text("score_version", "Version of the rules that determined level and category.",
		func(a *assay.Attempt) *string { return &a.ScoreVersion }),
)

func ofOutcomes(columns ...column[assay.Attempt]) []column[assay.Attempt] {
	for i, c := range columns {
		columns[i] = having("null for a fault", settles, c)
	}
	return columns
}

// effortColumns are the fault, and what the attempt took.
var effortColumns = []column[assay.Attempt]{
	text("fault", "Kind of a fault, which is not the model's mistake; empty for an outcome.",
		func(a *assay.Attempt) *assay.FaultKind { return &a.FaultKind }),
	distinct(text("fault_detail", "Message of the fault.",
		func(a *assay.Attempt) *string { return &a.FaultDetail })),
	flag("parked", "Whether the run gave up on the trial after this fault.",
		func(a *assay.Attempt) *bool { return &a.Parked }),
	flag("unmetered", "Whether a foreign agent made no request through the gateway.",
		func(a *assay.Attempt) *bool { return &a.Unmetered }),
	text("worker", "Name of the worker that carried the attempt out; empty if the run itself did.",
		func(a *assay.Attempt) *string { return &a.Worker }),
	whole("requests", "HTTP requests of the attempt, including retries.",
		func(a *assay.Attempt) *int { return &a.Requests }),
	object("retried", "Requests that were repeated, a JSON object of counts by kind of fault.",
		func(a *assay.Attempt) *map[assay.FaultKind]int { return &a.Retried }),
	whole("input_tokens", "Tokens of input as counted by the provider.",
		func(a *assay.Attempt) *int { return &a.InputTokens }),
	whole("output_tokens", "Tokens of output as counted by the provider.",
		func(a *assay.Attempt) *int { return &a.OutputTokens }),
	whole("cached_tokens", "Tokens of the input that were read from a cache.",
		func(a *assay.Attempt) *int { return &a.CachedTokens }),
	whole("cache_write_tokens", "Tokens of the input that were written to a cache.",
		func(a *assay.Attempt) *int { return &a.CacheWriteTokens }),
	whole("reasoning_tokens", "Tokens of the output that were thinking.",
		func(a *assay.Attempt) *int { return &a.ReasoningTokens }),
	whole("uncertain_tokens", "Tokens by which the totals that the provider reported differ from "+
		"their parts for an unknown reason; a part of the output if the totals are larger.",
		func(a *assay.Attempt) *int { return &a.UncertainTokens }),
	whole("unpriced_tokens", "Tokens of replies with an unknown cost, which cost_usd leaves out: "+
		"there is no price, or the provider reports no usage.",
		func(a *assay.Attempt) *int { return &a.UnpricedTokens }),
	having("null if nothing of it is known", hasCost,
		real("cost_usd", "Cost in dollars at the prices in the providers file.",
			func(a *assay.Attempt) *float64 { return &a.CostUSD })),
	whole("queued_ms", "Milliseconds that the attempt waited for lanes.",
		func(a *assay.Attempt) *int64 { return &a.QueuedMS }),
	whole("working_ms", "Milliseconds that the attempt worked.",
		func(a *assay.Attempt) *int64 { return &a.WorkingMS }),
	moment("started_at", "Time at which the attempt started, in UTC.",
		func(a *assay.Attempt) *time.Time { return &a.StartedAt }),
	moment("finished_at", "Time at which the attempt ended, in UTC.",
		func(a *assay.Attempt) *time.Time { return &a.FinishedAt }),
}

// attemptRequired lists the fields that every file must have. The other fields
// were added later or may be missing, and are empty then.
var attemptRequired = []string{
	"trial", "attempt", "experiment", "run", "model", "variant", "severity", "difficulty",
	"task_type", "task", "reliability", "repeat", "seed", "world", "lane", "served_model",
	"level", "ended", "fault", "error_category", "turns", "tool_calls", "required_tools",
	"executed_tools", "coverage", "order_correct", "input_tokens", "output_tokens", "cost_usd",
	"queued_ms", "working_ms", "started_at", "finished_at",
}

func givenAdherence(a *assay.Attempt) **float64  { return &a.GivenAdherence }
func pilot(a *assay.Attempt) **assay.PilotScores { return &a.Pilot }

func settles(a *assay.Attempt) bool { return a.Settles() }
func hasCost(a *assay.Attempt) bool {
	return a.CostUSD != 0 || a.UnpricedTokens == 0 && !a.Unmetered
}

// noOutcome returns the outcome of a fault.
func noOutcome() assay.Outcome {
	return assay.Outcome{RequiredTools: []string{}, ExecutedTools: []string{}}
}

// canonical returns a with times in UTC, without nil lists and maps, and without an outcome if it
// is a fault.
func canonical(a assay.Attempt) assay.Attempt {
	a.StartedAt, a.FinishedAt = a.StartedAt.UTC().Round(0), a.FinishedAt.UTC().Round(0)
	if !a.Settles() {
		a.Outcome = noOutcome()
	}
	if a.RequiredTools == nil {
		a.RequiredTools = []string{}
	}
	if a.ExecutedTools == nil {
		a.ExecutedTools = []string{}
	}
	if a.Retried == nil {
		a.Retried = map[assay.FaultKind]int{}
	}
	return a
}

// plain replaces empty lists and maps by nil, which undoes canonical.
func plain(a assay.Attempt) assay.Attempt {
	if len(a.RequiredTools) == 0 {
		a.RequiredTools = nil
	}
	if len(a.ExecutedTools) == 0 {
		a.ExecutedTools = nil
	}
	if len(a.Retried) == 0 {
		a.Retried = nil
	}
	a.StartedAt, a.FinishedAt = a.StartedAt.UTC(), a.FinishedAt.UTC()
	return a
}

// checkAttempt refuses attempts that would be counted wrongly.
func checkAttempt(a *assay.Attempt) error {
	switch {
	case a.ID == "":
		return errors.New("trial is empty")
	case a.Number < 1:
		return fmt.Errorf("attempt is %d, want at least 1", a.Number)
	}
	return a.Check()
}
