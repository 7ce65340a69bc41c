//go:build strangers

package anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/anthropic"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

const hello = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x-20260101",
	"content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,
	"usage":{"input_tokens":11,"output_tokens":3}}`

func answer(body string) *wiretest.Canned { return &wiretest.Canned{Body: body} }

// sdkRequest converts a request to the SDK's types. Its messages must not need any replacement
// before they are sent.
func sdkRequest(req assay.Request) sdk.MessageNewParams {
	cached := sdk.NewCacheControlEphemeralParam()
	params := sdk.MessageNewParams{Model: "small", MaxTokens: 16384}
	for _, m := range req.Messages {
		if m.Role == assay.System && len(params.Messages) == 0 {
			params.System = append(params.System, sdk.TextBlockParam{Text: m.Content})
			continue
		}
		role, content := sdkContent(m)
		if n := len(params.Messages); n > 0 && params.Messages[n-1].Role == role {
			params.Messages[n-1].Content = append(params.Messages[n-1].Content, content...)
			continue
		}
		params.Messages = append(params.Messages, sdk.MessageParam{Role: role, Content: content})
	}
	if n := len(params.System); n > 0 {
		params.System[n-1].CacheControl = cached
	}
	if n := len(params.Messages); n > 0 {
		content := params.Messages[n-1].Content
		*content[len(content)-1].GetCacheControl() = cached
	}
	for i, f := range req.Functions {
		tool := sdk.ToolParam{Name: f.Name}
		if f.Description != "" {
			tool.Description = param.NewOpt(f.Description)
		}
		if f.Parameters == nil {
			f.Parameters = json.RawMessage(`{"type":"object"}`) // the field is required
		}
		tool.InputSchema = param.Override[sdk.ToolInputSchemaParam](f.Parameters)
		if i == len(req.Functions)-1 {
			tool.CacheControl = cached
		}
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: &tool})
	}
	sdkSampling(&params, req)
	return params
}

func sdkContent(m assay.Message) (sdk.MessageParamRole, []sdk.ContentBlockParamUnion) {
	switch m.Role {
	case assay.ToolRole:
		block := sdk.NewToolResultBlock(m.CallID, m.Content, false)
		block.OfToolResult.IsError = param.Opt[bool]{}
		return sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion{block}
	case assay.Assistant:
		var content []sdk.ContentBlockParamUnion
		if m.Content != "" {
			content = append(content, sdk.NewTextBlock(m.Content))
		}
		for _, c := range m.Calls {
			call := sdk.NewToolUseBlock(c.ID, json.RawMessage(c.Arguments), c.Name)
			content = append(content, call)
		}
		return sdk.MessageParamRoleAssistant, content
	}
	return sdk.MessageParamRoleUser, []sdk.ContentBlockParamUnion{sdk.NewTextBlock(m.Content)}
}

func sdkSampling(params *sdk.MessageNewParams, req assay.Request) {
	s := req.Sampling
	thinks := s.Effort != "" && s.Thinking == nil || s.Thinking != nil && *s.Thinking > 0
	if s.Temperature != nil && !thinks {
		params.Temperature = param.NewOpt(*s.Temperature)
	}
	if s.TopP != nil && !thinks {
		params.TopP = param.NewOpt(*s.TopP)
	}
	params.OutputConfig.Effort = sdk.OutputConfigEffort(s.Effort)
	switch {
	case s.Thinking != nil && *s.Thinking > 0:
		params.Thinking = sdk.ThinkingConfigParamOfEnabled(int64(*s.Thinking))
		params.MaxTokens += int64(*s.Thinking)
	case s.Thinking != nil:
		params.Thinking.OfDisabled = new(sdk.NewThinkingConfigDisabledParam())
	case s.Effort != "":
		params.Thinking.OfAdaptive = new(sdk.ThinkingConfigAdaptiveParam)
	}
	if s.MaxTokens != nil {
		params.MaxTokens = int64(*s.MaxTokens)
	}
	if len(req.Functions) == 0 {
		return
	}
	switch s.ToolChoice {
	case "auto":
		params.ToolChoice.OfAuto = new(sdk.ToolChoiceAutoParam)
	case "required":
		params.ToolChoice.OfAny = new(sdk.ToolChoiceAnyParam)
	case "none":
		params.ToolChoice.OfNone = new(sdk.NewToolChoiceNoneParam())
	}
}

var (
	texts = rapid.Map(rapid.OneOf(rapid.String(), rapid.Just("<a href=\"x\">&\u2028")),
		func(s string) string { return "." + s })
	messages = wiretest.Messages(texts, wiretest.Names,
		assay.User, assay.Assistant, assay.ToolRole)
	functions = wiretest.Functions(texts)
	requests  = rapid.Custom(func(t *rapid.T) assay.Request {
		system := assay.Message{Role: assay.System, Content: texts.Draw(t, "system")}
		rest := rapid.SliceOfN(messages, 1, 6).Draw(t, "messages")
		return assay.Request{
			Model:     "claude",
			Messages:  append([]assay.Message{system}, rest...),
			Functions: rapid.SliceOfN(functions, 0, 3).Draw(t, "functions"),
			Sampling: assay.Sampling{
				Temperature: rapid.Ptr(rapid.Float64(), true).Draw(t, "temperature"),
				TopP:        rapid.Ptr(rapid.Float64(), true).Draw(t, "top_p"),
				Revision:    rapid.SampledFrom([]string{"", "v1"}).Draw(t, "revision"), // never sent
				MaxTokens:   rapid.Ptr(rapid.IntRange(1, 1e6), true).Draw(t, "max_tokens"),
				Effort:      rapid.SampledFrom([]string{"", "low", "xhigh"}).Draw(t, "effort"),
				Thinking:    rapid.Ptr(rapid.SampledFrom([]int{0, 2048}), true).Draw(t, "thinking"),
				ToolChoice: rapid.SampledFrom([]string{"", "auto", "required", "none"}).
					Draw(t, "tool_choice"),
			},
		}
	})
)

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// TestEncodingMatchesSDK checks random requests.
func TestEncodingMatchesSDK(t *testing.T) {
	t.Parallel()
	wiretest.CheckEncoding(t, anthropic.Protocol, hello, requests, func(t *rapid.T, req assay.Request) any {
		want, err := sdkRequest(req).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return plainResults(wiretest.Decoded(t, want))
	})
}

// plainResults replaces the lists of text blocks in tool results by the text, and returns v. The
// API accepts both.
func plainResults(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] == "tool_result" {
			blocks, _ := v["content"].([]any)
			for _, b := range blocks {
				v["content"] = b.(map[string]any)["text"]
			}
			return v
		}
		for _, inner := range v {
			plainResults(inner)
		}
	case []any:
		for _, inner := range v {
			plainResults(inner)
		}
	}
	return v
}

// sdkReply returns the response that the SDK decodes from a reply to [hi].
func sdkReply(t *rapid.T, body []byte) *assay.Response {
	var r sdk.Message
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("the SDK decodes %s: %v", body, err)
	}
	u := r.Usage
	input := u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens
	resp := &assay.Response{
		ServedModel: string(r.Model), Finish: string(r.StopReason),
		Usage: wire.Tokens{
			Input:      wire.Count(input),
			Output:     wire.Count(u.OutputTokens),
			Cached:     wire.Count(u.CacheReadInputTokens),
			CacheWrite: wire.Count(u.CacheCreationInputTokens),
			Reasoning:  wire.Count(u.OutputTokensDetails.ThinkingTokens),
		}.Usage(),
		Message: assay.Message{Role: assay.Assistant},
	}
	if u.ServiceTier != "" {
		resp.Reported = map[string]string{"service_tier": string(u.ServiceTier)}
	}
	m := &resp.Message
	var thoughts []string
	for _, block := range r.Content {
		switch block.Type {
		case "text":
			m.Content += block.Text
		case "tool_use":
			m.Calls = append(m.Calls, assay.ToolCall{
				ID: block.ID, Name: block.Name, Arguments: string(block.Input),
			})
		default:
			if block.Thinking != "" {
				thoughts = append(thoughts, block.Thinking)
			}
			m.State = &assay.State{
				Origin: "anthropic api.anthropic.com", Data: json.RawMessage(r.JSON.Content.Raw()),
			}
		}
	}
	m.Reasoning = strings.Join(thoughts, "\n\n")
	return resp
}

// The parts of random replies.
type fields = map[string]wiretest.Generator

var (
	oneOf, fieldsOf = wiretest.OneOf, wiretest.FieldsOf
	anyText, counts = wiretest.AnyText, wiretest.Counts

	blocks = rapid.OneOf(
		fieldsOf("text", fields{"text": anyText}),
		fieldsOf("thinking", fields{"thinking": anyText, "signature": anyText}),
		fieldsOf("redacted_thinking", fields{"data": anyText}),
		rapid.Custom(func(t *rapid.T) any {
			return map[string]any{
				"type": "tool_use", "id": wiretest.Names.Draw(t, "ID"),
				"name":  wiretest.Names.Draw(t, "name"),
				"input": json.RawMessage(wiretest.Objects.Draw(t, "input")),
			}
		}))
	replies = fieldsOf("message", fields{
		"model":       anyText,
		"stop_reason": oneOf("end_turn", "max_tokens", "tool_use", "refusal", nil),
		"content":     rapid.Map(rapid.SliceOfNDistinct(blocks, 0, 4, blockID), wiretest.Any),
		"usage": fieldsOf("", fields{
			"input_tokens": counts, "output_tokens": counts, "service_tier": oneOf("standard", nil),
			"cache_read_input_tokens": counts, "cache_creation_input_tokens": counts,
			"output_tokens_details": fieldsOf("", fields{"thinking_tokens": counts}),
		}),
	})
)

// blockID returns the ID of a call, and a different text for each other block.
func blockID(b any) any {
	if id, ok := b.(map[string]any)["id"]; ok {
		return id
	}
	return fmt.Sprintf("%p", b)
}

// TestDecodingMatchesSDK checks random replies. Calls with equal IDs are left to TestReplies.
func TestDecodingMatchesSDK(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := marshal(replies.Draw(t, "reply"))
		got, err := answer(string(body)).Provider(t, anthropic.Protocol).Chat(context.Background(), new(wiretest.Hi()))
		want := sdkReply(t, body)
		if err != nil {
			if strings.TrimSpace(want.Message.Content) != "" || len(want.Message.Calls) > 0 {
				t.Errorf("%s: %v", body, err)
			}
			return
		}
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s\nresponse differs from the SDK's (-sdk +got):\n%s", body, d)
		}
	})
}

// BenchmarkSDK measures the cost of [BenchmarkChat] with the SDK, without limits and secrets.
func BenchmarkSDK(b *testing.B) {
	client := sdk.NewClient(option.WithAPIKey("x"), option.WithMaxRetries(0),
		option.WithHTTPClient(answer(hello).Client()))
	req := wiretest.Conversation()
	for b.Loop() {
		if _, err := client.Messages.New(b.Context(), sdkRequest(req)); err != nil {
			b.Fatal(err)
		}
	}
}
