package evallog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// evalSample is Inspect's EvalSample.
type evalSample struct {
	ID     string   `json:"id"`
	Epoch  int      `json:"epoch"`
	Input  string   `json:"input"`
	Target []string `json:"target"`

	Messages []message        `json:"messages"`
	Output   modelOutput      `json:"output"`
	Scores   map[string]score `json:"scores"`
	Metadata metadata         `json:"metadata"`
	Store    object           `json:"store"`
	Events   []any            `json:"events"`
	Pool     eventsData       `json:"events_data"`

	about
	Error       *evalError        `json:"error,omitempty"`
	Retries     []evalError       `json:"error_retries"`
	Limit       *limit            `json:"limit,omitempty"`
	Attachments map[string]string `json:"attachments"`
}

// evalSummary is Inspect's EvalSampleSummary.
type evalSummary struct {
	ID       string           `json:"id"`
	Epoch    int              `json:"epoch"`
	Input    string           `json:"input"`
	Target   []string         `json:"target"`
	Metadata metadata         `json:"metadata"`
	Scores   map[string]score `json:"scores"`
	about
	Error       string `json:"error,omitempty"`
	Limit       string `json:"limit,omitempty"`
	LimitReason string `json:"limit_reason,omitempty"`
	Retries     int    `json:"retries"`
	Completed   bool   `json:"completed"`
	Messages    int    `json:"message_count"`
}

// about has the fields that a sample and its summary share.
type about struct {
	Usage     map[string]modelUsage `json:"model_usage"`
	RoleUsage object                `json:"role_usage"`
	Started   string                `json:"started_at,omitempty"`
	Completed string                `json:"completed_at,omitempty"`
	Total     float64               `json:"total_time"` // in seconds
	Working   float64               `json:"working_time"`
	UUID      string                `json:"uuid"`
	Turns     int                   `json:"turn_count"`
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

type score struct {
	Value       string         `json:"value"`
	Answer      string         `json:"answer,omitempty"`
	Explanation string         `json:"explanation"`
	Metadata    *assay.Outcome `json:"metadata,omitempty"`
	History     []object       `json:"history"`
}

type limit struct {
	Type   string      `json:"type"`
	Limit  float64     `json:"limit"`
	Reason assay.Ended `json:"reason"`
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

func newUsage(u assay.Usage, usd float64) modelUsage {
	if u.UnpricedTokens > 0 {
		usd = 0
	}
	return modelUsage{
		Input:  max(0, u.InputTokens-u.CachedTokens-u.CacheWriteTokens),
		Output: u.OutputTokens, Total: u.Total(),
		CacheWrite: u.CacheWriteTokens, CacheRead: u.CachedTokens,
		Reasoning: u.ReasoningTokens, USD: usd, unpriced: u.UnpricedTokens > 0,
	}
}

func usageOf(a *assay.Attempt) modelUsage { return newUsage(a.Usage(), a.CostUSD) }

// usagesOf returns the usage of the agent's model and of the user's, by their names.
func usagesOf(a *assay.Attempt) map[string]modelUsage {
	usages := map[string]modelUsage{a.Model: usageOf(a)}
	if a.UserRequests > 0 {
		of := usages[a.UserModel]
		of.add(newUsage(assay.Usage{
			InputTokens: a.UserInputTokens, OutputTokens: a.UserOutputTokens,
			UnpricedTokens: a.UserUnpricedTokens,
		}, a.UserCostUSD))
		usages[a.UserModel] = of
	}
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
	uuid := attemptName(a)
	messages, err := conversation(uuid, transcript)
	if err != nil {
		return nil, err
	}
	r := &evalSample{
		ID: t.item.id, Epoch: t.epoch, Input: input(s), Target: target(s),
		Messages: messages, Output: latestOutput(a, transcript, messages),
		Scores:   map[string]score{},
		Metadata: metadata{a, s.Transcript},
		Store:    object{}, Events: eventsOf(a, transcript, messages),
		Pool:        eventsData{messages, []object{}},
		Attachments: map[string]string{},
		about: about{
			Usage: usagesOf(a), RoleUsage: object{},
			Started: stamp(a.StartedAt), Completed: stamp(a.FinishedAt),
			Total:   max(0, a.FinishedAt.Sub(a.StartedAt).Seconds()),
			Working: float64(a.WorkingMS) / 1000,
			UUID:    uuid, Turns: a.Outcome.Turns,
		},
		Retries: append([]evalError{}, t.faults...),
		Limit:   limitOf(a),
	}
	if a.Settles() {
		r.Scores[scorer] = scoreOf(a)
	} else {
		r.Error = newError(faultText(a))
	}
	return r, nil
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

func scoreOf(a *assay.Attempt) score {
	why := string(a.Level) + "; ended: " + string(a.Ended)
	if a.ErrorCategory != "" {
		why += "; error category: " + a.ErrorCategory
	}
	outcome := a.Outcome
	outcome.RequiredTools = append([]string{}, outcome.RequiredTools...)
	outcome.ExecutedTools = append([]string{}, outcome.ExecutedTools...)
	return score{
		Value: values[a.Level].letter, Answer: strings.Join(a.ExecutedTools, ", "),
		Explanation: why,
		Metadata:    &outcome, History: []object{},
	}
}

// limitOf returns the limit that ended the episode, or nil if it ended
// otherwise. Only recent versions of Inspect have types for limits of turns and
// costs, and older ones refuse logs with them, so these are custom.
func limitOf(a *assay.Attempt) *limit {
	switch a.Ended {
	case assay.TurnLimit:
		return &limit{"custom", float64(a.Setting.Turns), a.Ended}
	case assay.CallLimit:
		if a.Calls > 0 {
			return &limit{"custom", float64(a.Calls), a.Ended}
		}
	case assay.CostLimit:
		return &limit{"custom", a.USD, a.Ended}
	case assay.TokenLimit:
		return &limit{"token", float64(a.Tokens), a.Ended}
	}
	return nil
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

// summary returns the summary of a sample, without long or redundant parts.
func (r *evalSample) summary() evalSummary {
	s := evalSummary{
		ID: r.ID, Epoch: r.Epoch, Input: clip(r.Input, longestInput), Target: r.Target,
		Metadata: metadata{attempt: r.Metadata.attempt}, Scores: map[string]score{},
		about:   r.about,
		Retries: len(r.Retries), Completed: true, Messages: len(r.Messages),
	}
	for name, v := range r.Scores {
		v.Metadata, v.Answer = nil, clip(v.Answer, longestAnswer)
		s.Scores[name] = v
	}
	if r.Error != nil {
		s.Error = r.Error.Message
	}
	if r.Limit != nil {
		s.Limit, s.LimitReason = r.Limit.Type, string(r.Limit.Reason)
	}
	return s
}

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
