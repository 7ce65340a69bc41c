package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// completion holds the fields of a reply that are used.
type completion struct {
	Model   string      `json:"model"`
	Choices []choice    `json:"choices"`
	Usage   replyTokens `json:"usage"`
}

type replyTokens struct {
	Input        int64 `json:"prompt_tokens"`
	Output       int64 `json:"completion_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	// CacheHit is DeepSeek's name for the cached tokens.
	CacheHit      int64 `json:"prompt_cache_hit_tokens"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// usage returns the tokens as counts. A part is never larger than the whole.
func (t *replyTokens) usage() assay.Usage {
	u := assay.Usage{InputTokens: count(t.Input), OutputTokens: count(t.Output)}
	u.CachedTokens = min(max(count(t.InputDetails.Cached), count(t.CacheHit)), u.InputTokens)
	u.ReasoningTokens = min(count(t.OutputDetails.Reasoning), u.OutputTokens)
	return u
}

type choice struct {
	FinishReason string       `json:"finish_reason"`
	Message      replyMessage `json:"message"`
}

type replyMessage struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
	// Gateways use one of these two names for a model's reasoning.
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        string     `json:"reasoning"`
	Calls            []wireCall `json:"tool_calls"`
}

// parseCompletion parses a body. It returns a fault if the body is not a
// completion.
func parseCompletion(body []byte) (*completion, *assay.Fault) {
	c := new(completion)
	err := json.Unmarshal(body, c)
	var mismatch *json.UnmarshalTypeError
	odd := errors.As(err, &mismatch)
	switch {
	case err != nil && !odd:
		return nil, wire.Malformed(fmt.Sprintf("the body of %d bytes is not valid JSON", len(body)))
	case body[wire.FirstByte(body)] != '{':
		return nil, wire.Malformed("the body is JSON, but not an object")
	case odd:
		return parseOddCompletion(body), nil
	}
	return c, nil
}

// parseOddCompletion parses a completion in which some field has another type
// than in OpenAI's API. Like the SDK, it accepts values that can be read as a
// text or a count and ignores others. It ignores a list if any of its entries is
// not an object.
func parseOddCompletion(body []byte) *completion {
	doc := oddObject(body)
	c := &completion{Model: oddText(doc["model"]), Usage: oddTokens(oddObject(doc["usage"]))}
	for _, fields := range oddObjects(doc["choices"]) {
		c.Choices = append(c.Choices, choice{
			FinishReason: oddText(fields["finish_reason"]),
			Message:      oddMessage(oddObject(fields["message"])),
		})
	}
	return c
}

func oddTokens(usage map[string]json.RawMessage) (t replyTokens) {
	t.Input = oddCount(usage["prompt_tokens"])
	t.Output = oddCount(usage["completion_tokens"])
	t.InputDetails.Cached = oddCount(oddObject(usage["prompt_tokens_details"])["cached_tokens"])
	t.CacheHit = oddCount(usage["prompt_cache_hit_tokens"])
	t.OutputDetails.Reasoning = oddCount(
		oddObject(usage["completion_tokens_details"])["reasoning_tokens"])
	return t
}

func oddMessage(fields map[string]json.RawMessage) replyMessage {
	m := replyMessage{
		Content: oddContent(fields["content"]),
		Refusal: oddText(fields["refusal"]),
	}
	// If a reasoning field is not a string, it means something else.
	_ = json.Unmarshal(fields["reasoning_content"], &m.ReasoningContent)
	_ = json.Unmarshal(fields["reasoning"], &m.Reasoning)
	for _, fields := range oddObjects(fields["tool_calls"]) {
		call := wireCall{ID: oddText(fields["id"])}
		function := oddObject(fields["function"])
		call.Function.Name = oddText(function["name"])
		call.Function.Arguments = oddText(function["arguments"])
		m.Calls = append(m.Calls, call)
	}
	return m
}

// oddContent returns the content. If a gateway sends parts, it joins their texts.
func oddContent(raw json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil || parts == nil {
		return oddText(raw)
	}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

// oddText returns the text of a string, "" for null, and the JSON of any other
// value.
func oddText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// oddCount returns the integer part of a number, which may be in a string, or 0.
func oddCount(raw json.RawMessage) int64 {
	f, _ := strconv.ParseFloat(oddText(raw), 64) // on error 0 or infinite
	if !(f > 0) {
		return 0
	}
	return int64(min(f, math.MaxInt32))
}

// oddObject returns an object's fields, or nil if raw is not an object.
func oddObject(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	return fields
}

// oddObjects returns a list's objects, or nil if raw is not a list of objects.
func oddObjects(raw json.RawMessage) []map[string]json.RawMessage {
	var all []map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// decode copies the first choice of a completion to resp. If it returns a fault,
// it has set only the model and the usage. turn is part of the IDs given to calls
// that have none.
func (p *Provider) decode(c *completion, turn int, resp *assay.Response) error {
	resp.ServedModel = p.Clean(c.Model)
	resp.Usage = c.Usage.usage()
	if len(c.Choices) == 0 {
		return wire.Malformed("the completion has no choices")
	}
	choice := &c.Choices[0]
	if choice.FinishReason == "content_filter" {
		return &assay.Fault{
			Kind: assay.ContentFilter, Status: 200,
			Detail: "the endpoint's filter cut the reply off",
		}
	}
	m := p.decodeMessage(&choice.Message, turn)
	// An empty message counts as a reply if the model used up its tokens before it
	// wrote anything.
	empty := strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0
	if empty && choice.FinishReason != "length" {
		return wire.Malformed("empty reply")
	}
	resp.Message = m
	return nil
}

func (p *Provider) decodeMessage(m *replyMessage, turn int) assay.Message {
	out := assay.Message{
		Role:      assay.Assistant,
		Content:   p.Clean(m.Content),
		Reasoning: p.Clean(m.ReasoningContent),
		Calls:     p.decodeCalls(m.Calls, turn),
	}
	if out.Reasoning == "" {
		out.Reasoning = p.Clean(m.Reasoning)
	}
	if strings.TrimSpace(out.Content) == "" && len(out.Calls) == 0 {
		switch {
		case out.Reasoning != "":
			out.Content = out.Reasoning
		case m.Refusal != "":
			out.Content = p.Clean(m.Refusal)
		}
	}
	return out
}

func (p *Provider) decodeCalls(calls []wireCall, turn int) []assay.ToolCall {
	if len(calls) == 0 {
		return nil
	}
	out := make([]assay.ToolCall, 0, len(calls))
	seen := make(map[string]bool, len(calls))
	for i := range calls {
		c := &calls[i]
		id := p.Clean(c.ID)
		if id == "" || seen[id] {
			id = fmt.Sprintf("call_%d_%d", turn, i)
		}
		seen[id] = true
		out = append(out, assay.ToolCall{
			ID:        id,
			Name:      p.Clean(c.Function.Name),
			Arguments: p.Clean(c.Function.Arguments),
		})
	}
	return out
}

func count(n int64) int { return int(min(max(n, 0), math.MaxInt32)) }
