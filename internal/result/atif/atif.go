// Package atif writes attempts as trajectories in the Agent Trajectory Interchange Format, which Harbor
// defines and which other tools for training and inspection read:
// https://www.harborframework.com/docs/trajectory-format.
//
// It defines how our records map to that format. It does not select attempts, open files or know the
// store. A trajectory is one line of JSON:
//
//   - steps are the messages of the conversation, and the results of calls are in the step that made
//     them; a step of the agent is one reply of its model
//   - extra.calls of a step are the calls that the tools got, with the luck and the fault of each
//   - extra.correction marks a message in which Assay corrects the form of a reply
//   - extra.assay is the attempt as JSON lines have it, and extra.reward its level: 1, 0.5 or 0; a fault
//     has none, and nothing should be learned from it
package atif

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// Version is the version of the format.
const Version = "ATIF-v1.8"

// agentName is the name of the loop in which a model without an agent works.
const agentName = "assay-loop"

// A Sample is an attempt with its transcript, which is nil if it was not kept.
type Sample struct {
	Attempt    assay.Attempt
	Transcript *assay.Transcript
}

type (
	trajectory struct {
		SchemaVersion string       `json:"schema_version"`
		SessionID     string       `json:"session_id"`
		TrajectoryID  string       `json:"trajectory_id"`
		Agent         agent        `json:"agent"`
		Steps         []step       `json:"steps"`
		FinalMetrics  finalMetrics `json:"final_metrics"`
		Extra         rootExtra    `json:"extra"`
	}
	agent struct {
		Name    string            `json:"name"`
		Version string            `json:"version"`
		Model   string            `json:"model_name"`
		Extra   map[string]string `json:"extra,omitempty"`
	}
	step struct {
		ID          int          `json:"step_id"`
		Timestamp   *time.Time   `json:"timestamp,omitempty"`
		Source      string       `json:"source"` // system, user or agent
		Model       string       `json:"model_name,omitempty"`
		Message     string       `json:"message"`
		Reasoning   string       `json:"reasoning_content,omitempty"`
		Calls       []toolCall   `json:"tool_calls,omitempty"`
		Observation *observation `json:"observation,omitempty"`
		Metrics     *metrics     `json:"metrics,omitempty"`
		Inferences  int          `json:"llm_call_count,omitempty"`
		Extra       *stepExtra   `json:"extra,omitempty"`
	}
	toolCall struct {
		ID        string          `json:"tool_call_id"`
		Name      string          `json:"function_name"`
		Arguments json.RawMessage `json:"arguments"`
		Extra     *callExtra      `json:"extra,omitempty"`
	}
	// callExtra has arguments that are no object.
	callExtra struct {
		Written string `json:"written_arguments"`
	}
	observation struct {
		Results []result `json:"results"`
	}
	result struct {
		CallID  string `json:"source_call_id,omitempty"`
		Content string `json:"content"`
	}
	metrics struct {
		Prompt     int           `json:"prompt_tokens"`
		Completion int           `json:"completion_tokens"`
		Cached     int           `json:"cached_tokens,omitempty"`
		Extra      *metricsExtra `json:"extra,omitempty"`
	}
	metricsExtra struct {
		Reasoning  int `json:"reasoning_tokens,omitempty"`
		CacheWrite int `json:"cache_write_tokens,omitempty"`
		Requests   int `json:"requests,omitempty"`
	}
	finalMetrics struct {
		Prompt     int      `json:"total_prompt_tokens"`
		Completion int      `json:"total_completion_tokens"`
		Cached     int      `json:"total_cached_tokens"`
		Cost       *float64 `json:"total_cost_usd,omitempty"` // unless it is unknown
		Steps      int      `json:"total_steps"`
	}
	rootExtra struct {
		Assay  json.RawMessage `json:"assay"`
		Reward *float64        `json:"reward,omitempty"`
	}
	stepExtra struct {
		Correction bool               `json:"correction,omitempty"`
		Finish     string             `json:"finish,omitempty"`
		Calls      []assay.CallRecord `json:"calls,omitempty"`
	}
)

// Write writes a line for each sample with a transcript, and returns the number of lines. It stops at the first
// error of samples or of w.
func Write(w io.Writer, samples iter.Seq2[Sample, error]) (lines int, err error) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for s, err := range samples {
		if err != nil {
			return lines, err
		}
		if s.Transcript == nil || len(s.Transcript.Messages) == 0 {
			continue
		}
		t, err := trajectoryOf(&s.Attempt, s.Transcript)
		if err != nil {
			return lines, fmt.Errorf("attempt %d at trial %s: %w", s.Attempt.Number, s.Attempt.ID, err)
		}
		if err := e.Encode(t); err != nil {
			return lines, err
		}
		lines++
	}
	return lines, nil
}

func trajectoryOf(a *assay.Attempt, t *assay.Transcript) (*trajectory, error) {
	record, err := export.JSON(*a)
	if err != nil {
		return nil, err
	}
	out := &trajectory{
		SchemaVersion: Version, SessionID: string(a.Run), TrajectoryID: fmt.Sprintf("%s-%d", a.ID, a.Number),
		Agent: agent{Name: agentName, Version: a.Program, Model: a.Model},
		Extra: rootExtra{Assay: record, Reward: rewardOf(a)},
	}
	if a.AgentModel != "" {
		out.Agent.Name, out.Agent.Model = a.Model, a.AgentModel
		if a.Sandbox != "" {
			out.Agent.Extra = map[string]string{"sandbox": string(a.Sandbox)}
		}
	}
	steps, err := stepsOf(t)
	if err != nil {
		return nil, err
	}
	if began := a.StartedAt.UTC(); !began.IsZero() {
		steps[0].Timestamp = &began
	}
	u := a.Usage()
	out.Steps = steps
	out.FinalMetrics = finalMetrics{u.InputTokens, u.OutputTokens, u.CachedTokens, nil, len(steps)}
	if u.UnpricedTokens == 0 {
		out.FinalMetrics.Cost = &a.CostUSD
	}
	return out, nil
}

// rewardOf returns the reward of an attempt, which is nil for a fault.
func rewardOf(a *assay.Attempt) *float64 {
	switch a.Level {
	case assay.FullSuccess:
		return new(1.0)
	case assay.PartialSuccess:
		return new(0.5)
	case assay.Failure:
		return new(0.0)
	}
	return nil
}

// stepsOf returns the messages of a conversation as steps.
func stepsOf(t *assay.Transcript) (steps []step, err error) {
	turns := 0
	latest := -1 // the latest step of the agent
	for i, m := range t.Messages {
		s := step{ID: len(steps) + 1, Message: valid(m.Content)}
		switch m.Role {
		case assay.System:
			s.Source = "system"
		case assay.User:
			s.Source = "user"
			if turns > 0 && turns <= len(t.Turns) && t.Turns[turns-1].Assisted {
				s.Extra = &stepExtra{Correction: true}
			}
		case assay.Assistant:
			s.Source, latest = "agent", len(steps)
			s.Reasoning = valid(m.Reasoning)
			if turns < len(t.Turns) {
				s.measure(&t.Turns[turns])
			}
			turns++
			for _, c := range m.Calls {
				s.Calls = append(s.Calls, newToolCall(c))
			}
			s.note(t, turns)
		case assay.ToolRole:
			if latest < 0 {
				return nil, fmt.Errorf("message %d answers a call that nobody has made", i+1)
			}
			steps[latest].answer(m.CallID, valid(m.Content))
			continue
		default:
			return nil, fmt.Errorf("message %d: unknown role %q", i+1, m.Role)
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// measure notes what a reply has used.
func (s *step) measure(r *assay.TurnRecord) {
	s.Model, s.Inferences = r.ServedModel, 1
	s.Metrics = &metrics{Prompt: r.InputTokens, Completion: r.OutputTokens, Cached: r.CachedTokens}
	extra := metricsExtra{r.ReasoningTokens, r.CacheWriteTokens, r.Requests}
	if extra != (metricsExtra{}) {
		s.Metrics.Extra = &extra
	}
	if r.Finish != "" {
		s.Extra = &stepExtra{Finish: r.Finish}
	}
}

// note adds the calls of a turn, which is counted from 1.
func (s *step) note(t *assay.Transcript, turn int) {
	for _, c := range t.Calls {
		if c.Turn != turn {
			continue
		}
		if s.Extra == nil {
			s.Extra = new(stepExtra)
		}
		s.Extra.Calls = append(s.Extra.Calls, c)
	}
}

// answer adds the answer to a call. A result may only name a call of its own step.
func (s *step) answer(call, content string) {
	if s.Observation == nil {
		s.Observation = new(observation)
	}
	r := result{Content: content}
	for _, c := range s.Calls {
		if c.ID == call {
			r.CallID = call
		}
	}
	s.Observation.Results = append(s.Observation.Results, r)
}

// newToolCall returns a call with arguments that are an object.
func newToolCall(c assay.ToolCall) toolCall {
	out := toolCall{ID: c.ID, Name: valid(c.Name), Arguments: json.RawMessage("{}")}
	var object map[string]json.RawMessage
	switch text := valid(c.Arguments); {
	case text == "":
	case json.Unmarshal([]byte(text), &object) == nil && object != nil:
		out.Arguments = json.RawMessage(text)
	default:
		out.Extra = &callExtra{text}
	}
	return out
}

func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
