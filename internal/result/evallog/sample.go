package evallog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// An evalSample is Inspect's EvalSample with its EvalSampleSummary.
type evalSample struct {
	sample, summary doc
	fault           *evalError // nil for an outcome
}

// metadata is the attempt as [export.JSON] writes it, and the parts of its
// transcript that are not messages, if there is one.
type metadata struct {
	attempt    *assay.Attempt
	transcript *assay.Transcript
}

func (m metadata) MarshalJSON() ([]byte, error) {
	text, err := export.JSON(*m.attempt)
	if err != nil || m.transcript == nil {
		return text, err
	}
	rest, err := json.Marshal(struct {
		Calls []assay.CallRecord `json:"calls"`
		Plan  []string           `json:"plan"` // null if no plan was shown
		Loops []assay.LoopRecord `json:"loop_records"`
	}{callsOf(m.transcript), m.transcript.Plan, append([]assay.LoopRecord{}, m.transcript.Loops...)})
	return slices.Concat(bytes.TrimSuffix(text, []byte("}")), []byte(","), rest[1:]), err
}

// modelUsage is Inspect's ModelUsage, whose input excludes tokens read from and written to a
// cache.
type modelUsage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	Total      int `json:"total_tokens"`
	CacheWrite int `json:"input_tokens_cache_write,omitempty"`
	CacheRead  int `json:"input_tokens_cache_read,omitempty"`
	Reasoning  int `json:"reasoning_tokens,omitempty"`
	// USD is missing if some of the cost is unknown.
	USD      float64 `json:"total_cost,omitempty"`
	unpriced bool
}

func (u *modelUsage) add(v modelUsage) {
	u.Input += v.Input
	u.Output += v.Output
	u.Total += v.Total
	u.CacheWrite += v.CacheWrite
	u.CacheRead += v.CacheRead
	u.Reasoning += v.Reasoning
	u.USD = assay.RoundUSD(u.USD + v.USD)
	if u.unpriced = u.unpriced || v.unpriced; u.unpriced {
		u.USD = 0
	}
}

func newUsage(u assay.Spend) modelUsage {
	usd := u.CostUSD
	if u.AtLeast() {
		usd = 0
	}
	return modelUsage{
		Input:  max(0, u.InputTokens-u.CachedTokens-u.CacheWriteTokens),
		Output: u.OutputTokens, Total: u.Total(),
		CacheWrite: u.CacheWriteTokens, CacheRead: u.CachedTokens,
		Reasoning: u.ReasoningTokens, USD: usd, unpriced: u.AtLeast(),
	}
}

// usagesOf returns the usage of the agent's model, of the user's and of the judge's, by their names.
func usagesOf(a *assay.Attempt) map[string]modelUsage {
	usages := map[string]modelUsage{a.Model: newUsage(a.Spend)}
	add := func(model string, requests int, spent assay.Spend) {
		if requests > 0 {
			of := usages[model]
			of.add(newUsage(spent))
			usages[model] = of
		}
	}
	add(a.UserModel, a.UserRequests, a.OfUser())
	add(a.JudgedBy, a.JudgeRequests, a.OfJudge())
	return usages
}

// newEvalSample converts an attempt to an epoch of a sample. Earlier faults of
// the trial become its retries.
func newEvalSample(s *Sample, t *trial) (*evalSample, error) {
	a := &s.Attempt
	transcript := s.Transcript
	if transcript == nil {
		transcript = &assay.Transcript{}
	}
	messages, err := conversation(attemptName(a), transcript)
	if err != nil {
		return nil, err
	}
	scores, short := doc{}, doc{} // short leaves out long parts
	fault := ""
	if a.Settles() {
		outcome := a.Outcome
		outcome.RequiredTools = append([]string{}, outcome.RequiredTools...)
		outcome.ExecutedTools = append([]string{}, outcome.ExecutedTools...)
		answer := strings.Join(a.ExecutedTools, ", ")
		scores = doc{{scorer, scoreOf(a, answer, &outcome)}}
		short = doc{{scorer, scoreOf(a, clip(answer, longestAnswer), nil)}}
	} else {
		fault = faultText(a)
	}
	id, about := doc{{"id", t.item.id}, {"epoch", t.epoch}}, aboutOf(a)
	limit := limitOf(a)
	r := &evalSample{fault: newError(fault)}
	r.sample = slices.Concat(id, doc{
		{"input", input(s)},
		{"target", target(s)},
		{"messages", messages},
		{"output", latestOutput(a, transcript, messages)},
		{"scores", scores},
		{"metadata", metadata{a, s.Transcript}},
		{"store", doc{}},
		{"events", eventsOf(a, transcript, messages)},
		{"events_data", doc{{"messages", messages}, {"calls", []doc{}}}},
	}, about, doc{
		{"error", export.OrOmit(r.fault)},
		{"error_retries", append([]evalError{}, t.faults...)},
		{"limit", export.OrOmit(limit)},
		{"attachments", doc{}},
	})
	r.summary = slices.Concat(id, doc{
		{"input", clip(input(s), longestInput)},
		{"target", target(s)},
		{"metadata", metadata{attempt: a}},
		{"scores", short},
	}, about, doc{
		{"error", export.OrOmit(fault)},
		{"limit", export.OrOmit(limit.Type)},
		{"limit_reason", export.OrOmit(limit.Reason)},
		{"retries", len(t.faults)},
		{"completed", true},
		{"message_count", len(messages)},
	})
	return r, nil
}

// aboutOf returns the members that a sample and its summary share.
func aboutOf(a *assay.Attempt) doc {
	return doc{
		{"model_usage", usagesOf(a)},
		{"role_usage", doc{}},
		{"started_at", export.OrOmit(stamp(a.StartedAt))},
		{"completed_at", export.OrOmit(stamp(a.FinishedAt))},
		{"total_time", max(0, a.FinishedAt.Sub(a.StartedAt).Seconds())},
		{"working_time", float64(a.WorkingMS) / 1000},
		{"uuid", attemptName(a)},
		{"turn_count", a.Outcome.Turns},
	}
}

// input returns the prompt: the task as the model was given it, with its plan.
// Without a transcript, it returns the closest text that is known.
func input(s *Sample) string {
	if s.Transcript != nil {
		for _, m := range s.Transcript.Messages {
			if m.Role == assay.User {
				return m.Content
			}
		}
	}
	if s.Task != nil {
		return s.Task.Description
	}
	return string(s.Attempt.Task)
}

// target returns the tools that the task requires, in order.
func target(s *Sample) []string {
	required := s.Attempt.RequiredTools
	if len(required) == 0 && s.Task != nil { // for example after a fault
		required = s.Task.Required
	}
	return append([]string{}, required...)
}

// callsOf returns the transcript's calls without their outputs, which are long
// and also in the messages.
func callsOf(t *assay.Transcript) []assay.CallRecord {
	calls := append([]assay.CallRecord{}, t.Calls...)
	for i := range calls {
		calls[i].Output = ""
	}
	return calls
}

func scoreOf(a *assay.Attempt, answer string, outcome *assay.Outcome) doc {
	why := string(a.Level) + "; ended: " + string(a.Ended)
	if a.ErrorCategory != "" {
		why += "; error category: " + a.ErrorCategory
	}
	return doc{
		{"value", values[a.Level].letter},
		{"answer", export.OrOmit(answer)},
		{"explanation", why},
		{"metadata", export.OrOmit(outcome)},
		{"history", []doc{}},
	}
}

// A limit is Inspect's EvalSampleLimit.
type limit struct {
	Type   string      `json:"type"`
	Limit  float64     `json:"limit"`
	Reason assay.Ended `json:"reason"`
}

// limitOf returns the limit that ended the episode. It is empty if the episode ended otherwise.
// Only recent versions of Inspect have types for limits of turns and costs, and older ones refuse
// logs with them, so these are custom.
func limitOf(a *assay.Attempt) limit {
	switch a.Ended {
	case assay.TurnLimit:
		return limit{"custom", float64(a.Setting.Turns), a.Ended}
	case assay.CallLimit:
		if a.Calls > 0 {
			return limit{"custom", float64(a.Calls), a.Ended}
		}
	case assay.CostLimit:
		return limit{"custom", a.USD, a.Ended}
	case assay.TokenLimit:
		return limit{"token", float64(a.Tokens), a.Ended}
	}
	return limit{}
}

func faultText(a *assay.Attempt) string {
	if a.FaultDetail == "" {
		return string(a.FaultKind)
	}
	return string(a.FaultKind) + ": " + a.FaultDetail
}

// The maximum lengths of the input and answer in Inspect's summaries, in runes.
const (
	longestInput  = 5120
	longestAnswer = 1024
)

// clip shortens a text to n runes including three dots.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	return string(runes[:n-3]) + "..."
}
