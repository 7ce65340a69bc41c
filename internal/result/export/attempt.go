package export

import (
	"errors"
	"fmt"

	"github.com/assay-eval/assay"
)

// attempts is the table of attempts.
var attempts = complete(table[assay.Attempt]{
	name:     AttemptTable,
	docs:     attemptDocs,
	distinct: []string{"trial", "fault_detail"},
	absences: []absence[assay.Attempt]{
		// A mean over attempts is a mean over outcomes.
		newAbsence(noOutcome(), "null for a fault", settles),
		newAbsence(struct {
			CostUSD float64 `json:"cost_usd"`
		}{}, "null if nothing of it is known", hasCost),
	},
	required:  attemptRequired,
	label:     func(a *assay.Attempt) string { return "trial " + string(a.ID) },
	canonical: canonical,
	plain:     plain,
	check:     checkAttempt,
})

var attemptDocs = []doc{
	{"trial", "Identity of the trial: 128 bits of SHA-256 over its content, in hex."},
	{"model", "Model that was requested, by its name in the experiment."},
	{"variant", "How the task was given to the model: alone, with advice, with its plan or " +
		"with a flawed plan."},
	{
		"severity",
		"How serious the flaw of a flawed plan is; empty if the variant has no severity.",
	},
	{"difficulty", "Difficulty of the task."},
	{"task_type", "Type of the task."},
	{"reliability", "Probability, in [0,1], that a well-formed call works."},
	{
		"fault_mix",
		"Shares of the kinds of faults of tools, as kind=share; empty if all are before.",
	},
	{"task", "Identity of the task in its library."},
	{"task_digest", "Digest of the task as planned, including its tools if they are not the " +
		"built-in ones."},
	{"repeat", "Number of the repeat of the task in its cell, from 1."},
	{"seed", "Seed of all luck of the trial, an integer below 2^53."},
	{"world", "Name and version of the rules for tools, luck and scoring."},
	{"protocol", "How the model calls tools."},
	{"tools", "Which tools were described to the model."},
	{"turn_limit", "Maximum number of turns in the episode."},
	{"call_limit", "Maximum number of calls of tools in the episode; 0 means no limit."},
	{"sampling", "Sampling parameters of the request, a JSON object without those that were " +
		"left to the provider."},
	{"token_limit", "Tokens after which the episode ends; 0 means no limit."},
	{"cost_limit", "Dollars after which the episode ends; 0 means no limit."},
	{
		"several_calls",
		"What happened to calls after the first of a reply: empty if they ran, or refuse.",
	},
	{"persistence", "How strongly a random failure persists for the same tool, in [0,1)."},
	{"burst", "How strongly a random failure spreads to the next call, in [0,1)."},
	{"loops", "Rules for loops; empty for the world's own rules."},
	{"agent_model", "Model that served a foreign agent; empty if the model itself was tested."},
	{"agent_timeout", "Time that a foreign agent could take itself, such as 10m0s."},
	{"user_model", "Model that spoke as the user of an environment; empty if none did."},
	{"attempt", "Number of the attempt at its trial, from 1."},
	{"round", "Outcomes of the trial before; not 0 if it was worked on again."},
	{"experiment", "Name of the experiment that the attempt was made for."},
	{"run", "Identity of the run that made the attempt."},
	{"program", "Version of the program that made the attempt."},
	{"templates", "Hash of the prompt templates in use."},
	{"lane", "Lane that served the latest turn: provider, key and deployment."},
	{"served_model", "Model that answered according to the endpoint; several are in the order " +
		"of the replies, separated by commas."},
	{"finish", "Why replies ended, in the words of the endpoint; several are in the order of " +
		"the replies, separated by commas."},
	{"truncated", "Replies that the endpoint cut off for length."},
	{"deviations", "How requests differed from what was asked because the endpoint does not " +
		"accept it; separated by commas."},
	{"reported", "What the endpoint reported that it used, as name=value; separated by commas."},
	{"level", "How far the episode got: full_success, partial_success or failure."},
	{"ended", "What ended the episode."},
	{"stop", "How the episode ended in more detail, such as gave_up or limit_of_turns."},
	{"cause", "The first thing that went wrong and was not made good; empty for full success."},
	{"error_category", "Class of the cause; in pilot by the original's rules."},
	{"turns", "Turns that the model took."},
	{"tool_calls", "Tool calls that were executed, including failed ones."},
	{"required_tools", "Tools that the task requires, in order."},
	{"executed_tools", "Tools whose calls succeeded, in order and with repeats."},
	{"coverage", "Share of the required tools that succeeded, in [0,1]."},
	{"order_correct", "Whether all required tools succeeded in the required order."},
	{"assisted", "Turns that the episode answered with a correction."},
	{"adherence", "How close the successful calls are to the task's own plan, in [0,1]."},
	{"given_adherence", "How close the successful calls are to the plan that the model was " +
		"given, in [0,1]; null if it was given no plan."},
	{"mistakes", "Calls that failed because of the model's own error."},
	{"failures", "Calls that failed by chance."},
	{"recovered", "Calls that failed by chance but whose tool succeeded later."},
	{
		"faults_scheduled",
		"Faults of tools in the way of the task's plan with the trial's luck; assay-1 only.",
	},
	{"faults_met", "Scheduled faults that the calls met."},
	{"wasted_calls", "Calls that the best policy would not have made with the same luck."},
	{
		"efficiency",
		"Share of the calls that were not wasted, in [0,1]; 0 if there were no calls.",
	},
	{"extra_calls", "Calls after the first of a reply."},
	{"precision", "Share of the successful calls that brought the task forward, in [0,1]; 0 " +
		"if no call succeeded."},
	{"unwanted_effects", "Successful calls that changed something that the task did not ask " +
		"for; always 0 in pilot."},
	{"broken_lineage", "Required tool whose first success had the wrong data or values; empty " +
		"if there was none, and in pilot."},
	{"loop", "Kind of the first loop in the episode; empty if there was no loop."},
	{"loop_turn", "Turn in which that loop began, from 1; 0 if there was no loop."},
	{"best_possible", "Probability, in [0,1], that the best policy fully succeeds; 1 if the " +
		"task has no plan."},
	{"security", "Whether the aim of an attacker in the results of tools failed: held, or broken; " +
		"empty without an attacker."},
	{
		"pilot_executor",
		"Level by the 2025 original's coverage and order; null in worlds other than pilot.",
	},
	{"pilot_paper", "Level by the 2025 original's paper, which requires output and a claim to " +
		"be done; null in worlds other than pilot."},
	{"pilot_batch", "Level by the 2025 original's rule of two scores of at least 0.8; null in " +
		"worlds other than pilot."},
	{"pilot_workflow_score", "The 2025 original's score of adherence to the given plan, in " +
		"[0,0.92]; null in worlds other than pilot."},
	{"pilot_phase2_score", "The 2025 original's score of its second phase, without a unit; " +
		"null in worlds other than pilot."},
	{
		"pilot_quality_score",
		"The 2025 original's quality score, without a unit; null in worlds other than pilot.",
	},
	{
		"pilot_final_score",
		"The 2025 original's final score, without a unit; null in worlds other than pilot.",
	},
	{"score_version", "Version of the rules that determined level and category."},
	{"fault", "Kind of a fault, which is not the model's mistake; empty for an outcome."},
	{"fault_detail", "Message of the fault."},
	{"parked", "Whether the run gave up on the trial after this fault."},
	{"unmetered", "Whether a foreign agent made no request through the gateway."},
	{"worker", "Name of the worker that carried the attempt out; empty if the run itself did."},
	{"requests", "HTTP requests of the attempt, including retries."},
	{"retried", "Requests that were repeated, a JSON object of counts by kind of fault."},
	{"input_tokens", "Tokens of input as counted by the provider."},
	{"output_tokens", "Tokens of output as counted by the provider."},
	{"cached_tokens", "Tokens of the input that were read from a cache."},
	{"cache_write_tokens", "Tokens of the input that were written to a cache."},
	{"reasoning_tokens", "Tokens of the output that were thinking."},
	{"uncertain_tokens", "Tokens by which the totals that the provider reported differ from " +
		"their parts for an unknown reason; a part of the output if the totals are larger."},
	{"unpriced_tokens", "Tokens of replies with an unknown cost, which cost_usd leaves out: " +
		"there is no price, or the provider reports no usage."},
	{"cost_usd", "Cost in dollars at the prices in the providers file."},
	{"user_requests", "HTTP requests for a simulated user, including retries; not in requests."},
	{"user_input_tokens", "Tokens of input of the simulated user's model; not in input_tokens."},
	{"user_output_tokens", "Tokens of output of the simulated user's model; not in output_tokens."},
	{"user_unpriced_tokens", "Tokens of the simulated user's model with an unknown cost."},
	{"user_cost_usd", "Cost of the simulated user's model in dollars; not in cost_usd."},
	{"queued_ms", "Milliseconds that the attempt waited for lanes."},
	{"working_ms", "Milliseconds that the attempt worked."},
	{"started_at", "Time at which the attempt started, in UTC."},
	{"finished_at", "Time at which the attempt ended, in UTC."},
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
