package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/shared"

	"github.com/assay-eval/assay"
)

// encode returns the request's body without the parameters in unsent, and the
// parameters that it does carry.
func (p *Provider) encode(req assay.Request, unsent paramSet) (sdk.ChatCompletionNewParams, paramSet) {
	params := sdk.ChatCompletionNewParams{
		Model:    p.cfg.Deployment,
		Messages: make([]sdk.ChatCompletionMessageParamUnion, len(req.Messages)),
	}
	for i, m := range req.Messages {
		params.Messages[i] = encodeMessage(m)
	}
	for _, f := range req.Functions {
		params.Tools = append(params.Tools, encodeFunction(f))
	}
	sent := encodeSampling(&params, req.Sampling, unsent)
	return params, sent
}

// encodeSampling sets what s sets and unsent does not hold back. The limit of
// tokens has two names; the one that is not held back is used.
func encodeSampling(params *sdk.ChatCompletionNewParams, s assay.Sampling, unsent paramSet) (sent paramSet) {
	if s.Temperature != nil && unsent&temperature == 0 {
		params.Temperature = param.NewOpt(*s.Temperature)
		sent |= temperature
	}
	if s.TopP != nil && unsent&topP == 0 {
		params.TopP = param.NewOpt(*s.TopP)
		sent |= topP
	}
	switch {
	case s.MaxTokens == nil:
	case unsent&maxTokens == 0:
		params.MaxTokens = param.NewOpt(int64(*s.MaxTokens))
		sent |= maxTokens
	case unsent&maxCompletionTokens == 0:
		params.MaxCompletionTokens = param.NewOpt(int64(*s.MaxTokens))
		sent |= maxCompletionTokens
	}
	return sent
}

func encodeMessage(m assay.Message) sdk.ChatCompletionMessageParamUnion {
	switch m.Role {
	case assay.System:
		return sdk.SystemMessage(m.Content)
	case assay.ToolRole:
		return sdk.ToolMessage(m.Content, m.CallID)
	case assay.Assistant:
		return sdk.ChatCompletionMessageParamUnion{OfAssistant: encodeAssistant(m)}
	}
	return sdk.UserMessage(m.Content)
}

// emptyText stands for a reply without text or call: endpoints refuse an
// assistant message that has neither.
const emptyText = "(empty reply)"

// encodeAssistant sends a model's reply back to it. A model writes what it
// likes as a call's name and arguments, and many endpoints refuse a
// conversation in which these are not well formed. That would turn the model's
// mistake into a fault of the request, so what cannot be sent is replaced; the
// answer to the call says what was wrong, and the transcript has the original.
func encodeAssistant(m assay.Message) *sdk.ChatCompletionAssistantMessageParam {
	a := &sdk.ChatCompletionAssistantMessageParam{}
	switch {
	case m.Content != "":
		a.Content.OfString = param.NewOpt(m.Content)
	case len(m.Calls) > 0:
		// Some endpoints miss the field if it is left out, others refuse "".
		a.Content.OfString = param.Null[string]()
	default:
		a.Content.OfString = param.NewOpt(emptyText)
	}
	for _, c := range m.Calls {
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: c.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name: sendableName(c.Name), Arguments: sendableArguments(c.Arguments),
				},
			},
		})
	}
	return a
}

var unsendable = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// sendableName keeps to OpenAI's rule for names of functions.
func sendableName(name string) string {
	name = unsendable.ReplaceAllString(name, "_")
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}

// sendableArguments returns a JSON object: the model's, or an empty one.
func sendableArguments(text string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &object) != nil || object == nil {
		return "{}"
	}
	return text
}

// encodeFunction keeps the schema's text as it is: through the SDK's map its
// keys would be sorted and its numbers respelled.
func encodeFunction(f assay.Function) sdk.ChatCompletionToolUnionParam {
	def := shared.FunctionDefinitionParam{Name: f.Name}
	if f.Description != "" {
		def.Description = param.NewOpt(f.Description)
	}
	if len(f.Parameters) > 0 {
		def.SetExtraFields(map[string]any{"parameters": f.Parameters})
	}
	return sdk.ChatCompletionFunctionTool(def)
}

// decode returns the first choice of a completion. turn numbers the calls that
// came without an ID.
func (p *Provider) decode(c *sdk.ChatCompletion, turn int) (assay.Response, error) {
	resp := assay.Response{
		ServedModel: p.clean(c.Model),
		Usage: assay.Usage{
			InputTokens:  count(c.Usage.PromptTokens),
			OutputTokens: count(c.Usage.CompletionTokens),
		},
	}
	if len(c.Choices) == 0 {
		return resp, malformed("a completion without choices")
	}
	choice := c.Choices[0]
	if choice.FinishReason == "content_filter" {
		return resp, &assay.Fault{Kind: assay.ContentFilter, Status: 200, Detail: "the endpoint's filter cut the reply off"}
	}
	m := p.decodeMessage(choice.Message, turn)
	if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 && choice.FinishReason != "length" {
		return resp, malformed("empty reply")
	}
	// A model that used up its tokens before it said anything has replied.
	resp.Message = m
	return resp, nil
}

// malformed is the fault of a response that came and is no completion.
func malformed(detail string) *assay.Fault {
	return &assay.Fault{Kind: assay.Malformed, Status: 200, Detail: detail}
}

func (p *Provider) decodeMessage(m sdk.ChatCompletionMessage, turn int) assay.Message {
	out := assay.Message{
		Role:    assay.Assistant,
		Content: p.clean(contentText(m)),
		Calls:   p.decodeCalls(m.ToolCalls, turn),
	}
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if out.Reasoning = p.clean(text(m.JSON.ExtraFields[name])); out.Reasoning != "" {
			break
		}
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

// contentText is the content, or the text in it where a gateway sends parts.
func contentText(m sdk.ChatCompletionMessage) string {
	if !strings.HasPrefix(strings.TrimSpace(m.JSON.Content.Raw()), "[") {
		return m.Content
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal([]byte(m.JSON.Content.Raw()), &parts) != nil {
		return m.Content
	}
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(part.Text)
	}
	return b.String()
}

// text is a field's string; empty where it is absent or something else.
func text(f respjson.Field) string {
	var s string
	if json.Unmarshal([]byte(f.Raw()), &s) != nil {
		return ""
	}
	return s
}

func (p *Provider) decodeCalls(calls []sdk.ChatCompletionMessageToolCallUnion, turn int) []assay.ToolCall {
	var out []assay.ToolCall
	seen := make(map[string]bool, len(calls))
	for i, c := range calls {
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
