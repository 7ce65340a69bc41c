package publish

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// A Sample is an attempt with its transcript, which is nil if it was not kept, and its task, which is nil if
// it is unknown or nobody may know it.
type Sample struct {
	Attempt    assay.Attempt
	Transcript *assay.Transcript
	Task       *assay.Task
}

// WriteSamples writes a line for each outcome of samples, an InstanceLevelEvaluationLog, and returns their
// number. The score is that of full success: 1 or 0.
func (r *Results) WriteSamples(w io.Writer, samples iter.Seq2[Sample, error]) (int, error) {
	sum := sha256.New()
	w = io.MultiWriter(w, sum)
	names := make(map[assay.Cell]string)
	for i := range r.rows {
		names[cellOf(r.rows[i].Cell)] = r.evaluation(&r.rows[i])
	}
	r.samples = detail{}
	for s, err := range samples {
		if err != nil {
			return r.samples.rows, err
		}
		if !s.Attempt.Settles() || s.Attempt.OnlyCosts() {
			continue
		}
		line, err := r.line(names[cellOf(s.Attempt.Cell)], &s)
		if err == nil {
			_, err = w.Write(line)
		}
		if err != nil {
			return r.samples.rows, fmt.Errorf("attempt %d at trial %s: %w", s.Attempt.Number, s.Attempt.ID, err)
		}
		r.samples.rows++
	}
	r.samples.sum = hex.EncodeToString(sum.Sum(nil))
	return r.samples.rows, nil
}

// cellOf returns the cell of a row, which has all types of tasks.
func cellOf(c assay.Cell) assay.Cell {
	c.TaskType = ""
	return c
}

func (r *Results) line(evaluation string, s *Sample) ([]byte, error) {
	a := &s.Attempt
	full := a.Level == assay.FullSuccess
	score := 0
	if full {
		score = 1
	}
	id := fmt.Sprintf("%s/%d", a.Task, a.Repeat)
	if a.Replay > 0 {
		id += fmt.Sprintf("/%d", a.Replay)
	}
	required := a.RequiredTools
	if required == nil {
		required = []string{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(doc{
		{"schema_version", SchemaVersion},
		{"evaluation_id", r.evaluationID()},
		{"model_id", r.model.id()},
		{"evaluation_name", evaluation},
		{"evaluation_result_id", evaluation + "." + metrics[0].id},
		{"sample_id", id},
		{"interaction_type", "agentic"},
		{"input", doc{{"raw", s.prompt()}, {"reference", required}}},
		{"messages", messagesOf(s.Transcript)},
		{"answer_attribution", []doc{}},
		{"evaluation", doc{
			{"score", score},
			{"is_correct", full},
			{"num_turns", export.OrOmit(a.Outcome.Turns)},
			{"tool_calls_count", a.ToolCalls},
		}},
		{"token_usage", export.OrOmit(usageOf(a))},
		{"performance", doc{{"latency_ms", a.WorkingMS}}},
		{"metadata", metadataOf(s)},
	})
	return unbroken(b.Bytes()), err
}

// unbroken escapes the character that Python's splitlines and YAML take for the end of a line, and JSON does
// not.
func unbroken(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\u0085"), []byte(`\u0085`)) }

// prompt returns what the model was asked first. Without a transcript, it is the closest text that is known.
func (s *Sample) prompt() string {
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

// messagesOf returns a conversation, which is empty if it was not kept.
func messagesOf(t *assay.Transcript) []doc {
	out := []doc{}
	if t == nil {
		return out
	}
	for i, m := range t.Messages {
		var calls []doc
		for _, c := range m.Calls {
			calls = append(calls, doc{{"id", c.ID}, {"name", c.Name}, {"arguments", argumentsOf(c.Arguments)}})
		}
		var answers any
		if m.CallID != "" {
			answers = []string{m.CallID}
		}
		out = append(out, doc{
			{"turn_idx", i},
			{"role", m.Role},
			{"content", m.Content},
			{"reasoning_trace", export.OrOmit(m.Reasoning)},
			{"tool_calls", export.OrOmit(calls)},
			{"tool_call_id", export.OrOmit(answers)},
		})
	}
	return out
}

// argumentsOf returns the arguments of a call as texts: strings as they are, and other values as JSON. What
// is no object has the name written_arguments.
func argumentsOf(written string) map[string]string {
	out := make(map[string]string)
	var object map[string]json.RawMessage
	switch {
	case written == "":
		return out
	case json.Unmarshal([]byte(written), &object) != nil || object == nil:
		out["written_arguments"] = written
		return out
	}
	for name, value := range object {
		var text string
		if json.Unmarshal(value, &text) != nil || string(value) == "null" {
			text = string(value)
		}
		out[name] = text
	}
	return out
}

// usageOf returns the tokens of an attempt, or nil if nobody counted them.
func usageOf(a *assay.Attempt) any {
	if a.Unmetered {
		return nil
	}
	return doc{
		{"input_tokens", a.InputTokens},
		{"output_tokens", a.OutputTokens},
		{"total_tokens", a.Total()},
		{"input_tokens_cache_write", export.OrOmit(a.CacheWriteTokens)},
		{"input_tokens_cache_read", export.OrOmit(a.CachedTokens)},
		{"reasoning_tokens", export.OrOmit(a.ReasoningTokens)},
	}
}

// metadataOf returns what else readers may select samples by. The attempt has more, in other exports.
func metadataOf(s *Sample) map[string]string {
	a := &s.Attempt
	kept := ""
	if s.Transcript == nil {
		kept = "not kept"
	}
	usd := ""
	if !a.AtLeast() {
		usd = strconv.FormatFloat(a.CostUSD, 'f', -1, 64)
	}
	return details(map[string]string{
		"trial": string(a.ID), "attempt": strconv.Itoa(a.Number), "seed": strconv.FormatUint(a.Seed, 10),
		"task_type": a.TaskType, "level": string(a.Level), "ended": string(a.Ended), "cause": string(a.Cause),
		"error_category": a.ErrorCategory, "coverage": strconv.FormatFloat(a.Coverage, 'g', -1, 64),
		"faults_met": strconv.Itoa(a.FaultsMet), "executed_tools": strings.Join(a.ExecutedTools, ", "),
		"usd": usd, "served_model": a.ServedModel, "transcript": kept,
	})
}
