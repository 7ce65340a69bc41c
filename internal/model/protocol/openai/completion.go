package openai

import (
	"cmp"
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
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   usage    `json:"usage"`
	Tier    string   `json:"service_tier"`
}

func (t *usage) total() assay.Usage {
	tokens := wire.Tokens{
		Input:      max(count(t.Input), count(t.CacheHit)+count(t.CacheMiss)),
		Output:     count(t.Output),
		Total:      count(t.Total),
		Cached:     max(count(t.InputDetails.Cached), count(t.Cached), count(t.CacheHit)),
		CacheWrite: max(count(t.InputDetails.CacheWrite), count(t.CacheWrite)),
	}
	if n := t.OutputDetails.Reasoning; n != nil {
		tokens.Reasoning, tokens.Details = count(*n), true
	}
	return tokens.Usage()
}

type choice struct {
	FinishReason string          `json:"finish_reason"`
	Message      replyMessage    `json:"message"`
	Error        json.RawMessage `json:"error"`
}

type replyMessage struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
	thoughts
	// parts is the content as it came if it has parts with thinking, and thinking is their text.
	parts    json.RawMessage
	thinking string
	Calls    []call `json:"tool_calls"`
	// Call is the older form of a single call.
	Call *functionCall `json:"function_call"`
}

// parseCompletion parses a body. The error says that it is not valid JSON.
func parseCompletion(body []byte) (*completion, error) {
	c := new(completion)
	err := wire.Unmarshal(body, c)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return parseOddCompletion(body), nil
	}
	return c, err
}

// parseOddCompletion parses a completion in which some field has another type
// than in OpenAI's API. Like the SDK, it accepts values that can be read as a
// text or a count and ignores others. It ignores a list if any of its entries is
// not an object.
func parseOddCompletion(body []byte) *completion {
	doc := oddObject(body)
	c := &completion{
		Model: oddText(doc["model"]), Usage: oddTokens(oddObject(doc["usage"])),
		Tier: oddText(doc["service_tier"]),
	}
	for _, fields := range oddObjects(doc["choices"]) {
		c.Choices = append(c.Choices, choice{
			FinishReason: oddText(fields["finish_reason"]),
			Message:      oddMessage(oddObject(fields["message"])),
			Error:        fields["error"],
		})
	}
	return c
}

func oddTokens(counts map[string]json.RawMessage) (t usage) {
	t.Input = oddCount(counts["prompt_tokens"])
	t.Output = oddCount(counts["completion_tokens"])
	t.Total = oddCount(counts["total_tokens"])
	in := oddObject(counts["prompt_tokens_details"])
	t.InputDetails.Cached = oddCount(in["cached_tokens"])
	t.InputDetails.CacheWrite = oddCount(in["cache_write_tokens"])
	t.Cached = oddCount(counts["cached_tokens"])
	t.CacheWrite = oddCount(counts["cache_creation_input_tokens"])
	t.CacheHit = oddCount(counts["prompt_cache_hit_tokens"])
	t.CacheMiss = oddCount(counts["prompt_cache_miss_tokens"])
	out := oddObject(counts["completion_tokens_details"])
	if raw := out["reasoning_tokens"]; raw != nil && string(raw) != "null" {
		t.OutputDetails.Reasoning = new(oddCount(raw))
	}
	return t
}

func oddMessage(fields map[string]json.RawMessage) replyMessage {
	m := replyMessage{
		Refusal: oddText(fields["refusal"]),
	}
	if m.Content, m.thinking = oddContent(fields["content"]); m.thinking != "" {
		m.parts = fields["content"]
	}
	m.thoughts = thoughts{
		fields["reasoning_content"], fields["reasoning"], fields["reasoning_details"],
	}
	for _, fields := range oddObjects(fields["tool_calls"]) {
		own := call{ID: oddText(fields["id"]), Extra: fields["extra_content"]}
		own.Function = *oddFunction(oddObject(fields["function"]))
		m.Calls = append(m.Calls, own)
	}
	if call := oddObject(fields["function_call"]); call != nil {
		m.Call = oddFunction(call)
	}
	return m
}

func oddFunction(fields map[string]json.RawMessage) *functionCall {
	return &functionCall{oddText(fields["name"]), oddText(fields["arguments"])}
}

// oddContent returns the content. If a gateway sends parts, it joins their texts. Mistral has parts
// with thinking, which has parts of its own.
func oddContent(raw json.RawMessage) (text, thinking string) {
	var parts []struct {
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(raw, &parts) != nil || parts == nil {
		return oddText(raw), ""
	}
	for _, part := range parts {
		text += part.Text
		if part.Thinking != nil {
			thought, _ := oddContent(part.Thinking)
			thinking += thought
		}
	}
	return text, thinking
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
	_ = wire.Unmarshal(raw, &fields)
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
// it has set only the model, the usage and the finish reason. turn is part of the IDs given to
// calls that have none.
func (p *Provider) decode(reply *wire.Reply, c *completion, turn int, resp *assay.Response) error {
	if len(c.Choices) == 0 {
		return p.Unreadable("the completion has no choices", reply)
	}
	choice := &c.Choices[0]
	resp.Finish = p.Clean(choice.FinishReason)
	if f := p.ErrorFault(reply, choice.Error); f != nil {
		return f
	}
	m := p.decodeMessage(&choice.Message, turn)
	if f := p.FinishFault(resp.Finish, &m, resp.Usage); f != nil {
		return f
	}
	resp.Message = m
	if c.Tier != "" {
		resp.Reported = map[string]string{"service_tier": p.Clean(c.Tier)}
	}
	return nil
}

func (p *Provider) decodeMessage(m *replyMessage, turn int) assay.Message {
	if len(m.Calls) == 0 && m.Call != nil && m.Call.Name != "" {
		m.Calls = []call{{Function: *m.Call}}
	}
	out := assay.Message{
		Role:      assay.Assistant,
		Content:   p.Clean(m.Content),
		Reasoning: p.Clean(cmp.Or(m.thinking, m.text())),
		Calls:     p.decodeCalls(m.Calls, turn),
		State:     p.newState(m),
	}
	if strings.TrimSpace(out.Content) == "" && len(out.Calls) == 0 {
		out.Content = p.Clean(m.Refusal)
	}
	return out
}

func (p *Provider) decodeCalls(calls []call, turn int) []assay.ToolCall {
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
