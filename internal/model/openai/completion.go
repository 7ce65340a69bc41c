package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// A completion is what is read of a reply.
type completion struct {
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   struct {
		Input  int64 `json:"prompt_tokens"`
		Output int64 `json:"completion_tokens"`
	} `json:"usage"`
}

type choice struct {
	FinishReason string       `json:"finish_reason"`
	Message      replyMessage `json:"message"`
}

type replyMessage struct {
	Content string `json:"content"`
	Refusal string `json:"refusal"`
	// Gateways have one name or the other for what a model thought.
	ReasoningContent string     `json:"reasoning_content"`
	Reasoning        string     `json:"reasoning"`
	Calls            []wireCall `json:"tool_calls"`
}

// parseCompletion reads a body; the fault says why it is no completion.
func parseCompletion(body []byte) (*completion, *assay.Fault) {
	c := new(completion)
	err := json.Unmarshal(body, c)
	var mismatch *json.UnmarshalTypeError
	odd := errors.As(err, &mismatch)
	switch {
	case err != nil && !odd:
		return nil, malformed(fmt.Sprintf("a body of %d bytes that is no JSON document", len(body)))
	case body[firstByte(body)] != '{':
		return nil, malformed("a JSON document that is no object")
	case odd:
		return parseOddCompletion(body), nil
	}
	return c, nil
}

// parseOddCompletion reads a completion in which something has not the type
// that OpenAI gives it. Like the SDK it takes what can stand for a text or a
// count, and does without what cannot; a list with an entry that is no object
// is none.
func parseOddCompletion(body []byte) *completion {
	doc := oddObject(body)
	usage := oddObject(doc["usage"])
	c := &completion{Model: oddText(doc["model"])}
	c.Usage.Input, c.Usage.Output = oddCount(usage["prompt_tokens"]), oddCount(usage["completion_tokens"])
	for _, fields := range oddObjects(doc["choices"]) {
		c.Choices = append(c.Choices, choice{
			FinishReason: oddText(fields["finish_reason"]),
			Message:      oddMessage(oddObject(fields["message"])),
		})
	}
	return c
}

func oddMessage(fields map[string]json.RawMessage) replyMessage {
	m := replyMessage{Content: oddContent(fields["content"]), Refusal: oddText(fields["refusal"])}
	// Reasoning that is no text is some other thing of the same name.
	_ = json.Unmarshal(fields["reasoning_content"], &m.ReasoningContent)
	_ = json.Unmarshal(fields["reasoning"], &m.Reasoning)
	for _, fields := range oddObjects(fields["tool_calls"]) {
		call, function := wireCall{ID: oddText(fields["id"])}, oddObject(fields["function"])
		call.Function.Name, call.Function.Arguments = oddText(function["name"]), oddText(function["arguments"])
		m.Calls = append(m.Calls, call)
	}
	return m
}

// oddContent joins the texts where a gateway sends parts.
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

// oddText is a string's text, empty for null, and any other value as it is
// written.
func oddText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// oddCount is the whole part of a number or of a string that is one, or 0.
func oddCount(raw json.RawMessage) int64 {
	f, _ := strconv.ParseFloat(oddText(raw), 64) // 0 or, out of range, infinite
	if !(f > 0) {
		return 0
	}
	return int64(min(f, math.MaxInt32))
}

// oddObject is nil for what is no object.
func oddObject(raw json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	return fields
}

// oddObjects is nil for what is no list of objects.
func oddObjects(raw json.RawMessage) []map[string]json.RawMessage {
	var all []map[string]json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	return all
}

// decode puts the first choice of a completion into resp, and with a fault the
// model and the usage alone. turn numbers the calls that came without an ID.
func (p *Provider) decode(c *completion, turn int, resp *assay.Response) error {
	resp.ServedModel = p.clean(c.Model)
	resp.Usage = assay.Usage{InputTokens: count(c.Usage.Input), OutputTokens: count(c.Usage.Output)}
	if len(c.Choices) == 0 {
		return malformed("a completion without choices")
	}
	choice := &c.Choices[0]
	if choice.FinishReason == "content_filter" {
		return &assay.Fault{Kind: assay.ContentFilter, Status: 200, Detail: "the endpoint's filter cut the reply off"}
	}
	m := p.decodeMessage(&choice.Message, turn)
	if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 && choice.FinishReason != "length" {
		return malformed("empty reply")
	}
	// A model that used up its tokens before it said anything has replied.
	resp.Message = m
	return nil
}

// malformed is the fault of a response that came and is no completion.
func malformed(detail string) *assay.Fault {
	return &assay.Fault{Kind: assay.Malformed, Status: 200, Detail: detail}
}

func (p *Provider) decodeMessage(m *replyMessage, turn int) assay.Message {
	out := assay.Message{
		Role:      assay.Assistant,
		Content:   p.clean(m.Content),
		Reasoning: p.clean(m.ReasoningContent),
		Calls:     p.decodeCalls(m.Calls, turn),
	}
	if out.Reasoning == "" {
		out.Reasoning = p.clean(m.Reasoning)
	}
	if strings.TrimSpace(out.Content) == "" && len(out.Calls) == 0 {
		switch {
		case out.Reasoning != "":
			out.Content = out.Reasoning
		case m.Refusal != "":
			out.Content = p.clean(m.Refusal)
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
		id := p.clean(c.ID)
		if id == "" || seen[id] {
			id = fmt.Sprintf("call_%d_%d", turn, i)
		}
		seen[id] = true
		out = append(out, assay.ToolCall{
			ID:        id,
			Name:      p.clean(c.Function.Name),
			Arguments: p.clean(c.Function.Arguments),
		})
	}
	return out
}

// clean makes text of an endpoint safe to keep: no secret in any spelling that
// decoding brought to light, and valid UTF-8.
func (p *Provider) clean(s string) string {
	return strings.ToValidUTF8(p.scrub.text(s), "\uFFFD")
}

func count(n int64) int { return int(min(max(n, 0), math.MaxInt32)) }
