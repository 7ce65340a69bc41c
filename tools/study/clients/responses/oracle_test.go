//go:build strangers

package responses_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/responses"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

const hello = `{"id":"resp_1","object":"response","status":"completed","error":null,
"incomplete_details":null,"model":"gpt-x-2026","output":[{"type":"message","id":"msg_1",
"role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello",
"annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":5}}`

func answer(body string) *wiretest.Canned { return &wiretest.Canned{Body: body} }

// sdkRequest converts a request to the SDK's types. Its messages must not need any replacement
// before they are sent.
func sdkRequest(req assay.Request) sdk.ResponseNewParams {
	params := sdk.ResponseNewParams{
		Model: "small", Store: param.NewOpt(false),
		Include: []sdk.ResponseIncludable{sdk.ResponseIncludableReasoningEncryptedContent},
	}
	input := sdk.ResponseInputParam{}
	for i, m := range req.Messages {
		if i == 0 && m.Role == assay.System {
			params.Instructions = param.NewOpt(m.Content)
			continue
		}
		input = append(input, sdkItems(m)...)
	}
	params.Input.OfInputItemList = input
	for _, f := range req.Functions {
		tool := &sdk.FunctionToolParam{Name: f.Name, Strict: param.NewOpt(false)}
		if f.Description != "" {
			tool.Description = param.NewOpt(f.Description)
		}
		tool.SetExtraFields(map[string]any{"parameters": f.Parameters})
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfFunction: tool})
	}
	s := req.Sampling
	if s.Temperature != nil {
		params.Temperature = param.NewOpt(*s.Temperature)
	}
	if s.TopP != nil {
		params.TopP = param.NewOpt(*s.TopP)
	}
	if s.MaxTokens != nil {
		params.MaxOutputTokens = param.NewOpt(int64(*s.MaxTokens))
	}
	params.Reasoning.Effort = shared.ReasoningEffort(s.Effort)
	if s.ToolChoice != "" && len(req.Functions) > 0 {
		params.ToolChoice.OfToolChoiceMode = param.NewOpt(sdk.ToolChoiceOptions(s.ToolChoice))
	}
	return params
}

func sdkItems(m assay.Message) sdk.ResponseInputParam {
	if m.Role == assay.ToolRole {
		item := sdk.ResponseInputItemParamOfFunctionCallOutput(m.Content)
		item.OfFunctionCallOutput.CallID = param.NewOpt(m.CallID)
		return sdk.ResponseInputParam{item}
	}
	var all sdk.ResponseInputParam
	if m.Content != "" || m.Role != assay.Assistant {
		role := sdk.EasyInputMessageRole(m.Role)
		all = append(all, sdk.ResponseInputItemParamOfMessage(m.Content, role))
	}
	for _, c := range m.Calls {
		all = append(all, sdk.ResponseInputItemParamOfFunctionCall(c.Arguments, c.ID, c.Name))
	}
	return all
}

var (
	texts    = rapid.OneOf(rapid.String(), rapid.Just("<a href=\"x\">&\u2028"))
	messages = wiretest.Messages(texts, rapid.StringN(1, -1, -1),
		assay.System, assay.User, assay.Assistant, assay.ToolRole)
	functions = wiretest.Functions(texts)
	requests  = rapid.Custom(func(t *rapid.T) assay.Request {
		return assay.Request{
			Model:     "small",
			Messages:  rapid.SliceOf(messages).Draw(t, "messages"),
			Functions: rapid.SliceOfN(functions, 0, 3).Draw(t, "functions"),
			Sampling: assay.Sampling{
				Temperature: rapid.Ptr(rapid.Float64(), true).Draw(t, "temperature"),
				TopP:        rapid.Ptr(rapid.Float64(), true).Draw(t, "top_p"),
				Revision:    rapid.SampledFrom([]string{"", "v1"}).Draw(t, "revision"), // never sent
				MaxTokens:   rapid.Ptr(rapid.Int(), true).Draw(t, "max_tokens"),
				Effort:      rapid.SampledFrom([]string{"", "low", "high"}).Draw(t, "effort"),
				ToolChoice:  rapid.SampledFrom([]string{"", "auto", "none"}).Draw(t, "tool_choice"),
			},
		}
	})
)

func TestEncodingMatchesSDK(t *testing.T) {
	t.Parallel()
	wiretest.CheckEncoding(t, responses.Protocol, hello, requests, func(t *rapid.T, req assay.Request) any {
		want, err := sdkRequest(req).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return wiretest.Decoded(t, want)
	})
}

// sdkReply returns the response that the SDK decodes from a reply to [hi].
func sdkReply(t *rapid.T, body []byte) *assay.Response {
	var r sdk.Response
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("the SDK decodes %s: %v", body, err)
	}
	u := r.Usage
	resp := &assay.Response{
		ServedModel: r.Model, Finish: cmp.Or(r.IncompleteDetails.Reason, string(r.Status)),
		Usage: wire.Tokens{
			Input: wire.Count(u.InputTokens), Output: wire.Count(u.OutputTokens), Total: wire.Count(u.TotalTokens),
			Cached:     wire.Count(u.InputTokensDetails.CachedTokens),
			CacheWrite: wire.Count(u.InputTokensDetails.CacheWriteTokens),
			Reasoning:  wire.Count(u.OutputTokensDetails.ReasoningTokens), Details: true,
		}.Usage(),
		Reported: map[string]string{},
		Message:  assay.Message{Role: assay.Assistant},
	}
	for name, value := range map[string]string{
		"effort": string(r.Reasoning.Effort), "service_tier": string(r.ServiceTier),
	} {
		if value != "" {
			resp.Reported[name] = value
		}
	}
	sdkMessage(&r, &resp.Message)
	return resp
}

func sdkMessage(r *sdk.Response, m *assay.Message) {
	m.Content = r.OutputText()
	var refusal string
	var thoughts []string
	add := func(all []string) {
		all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
		if len(all) > 0 {
			thoughts = append(thoughts, strings.Join(all, "\n\n"))
		}
	}
	for _, out := range r.Output {
		back := true
		switch it := out.AsAny().(type) {
		case sdk.ResponseOutputMessage:
			back = it.Phase != ""
			for _, part := range it.Content {
				refusal += part.Refusal
			}
		case sdk.ResponseFunctionToolCall:
			back = false
			id := it.CallID
			same := func(c assay.ToolCall) bool { return c.ID == id }
			if id == "" || slices.ContainsFunc(m.Calls, same) {
				id = fmt.Sprintf("call_1_%d", len(m.Calls))
			}
			call := assay.ToolCall{ID: id, Name: it.Name, Arguments: it.Arguments}
			m.Calls = append(m.Calls, call)
		case sdk.ResponseReasoningItem:
			var summary, content []string
			for _, part := range it.Summary {
				summary = append(summary, part.Text)
			}
			for _, part := range it.Content {
				content = append(content, part.Text)
			}
			add(summary)
			add(content)
		}
		if back {
			m.State = &assay.State{
				Origin: "responses api.openai.com KEY", Data: json.RawMessage(r.JSON.Output.Raw()),
			}
		}
	}
	m.Reasoning = strings.Join(thoughts, "\n\n")
	if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 {
		m.Content = refusal
	}
}

// The parts of random replies.
type fields = map[string]wiretest.Generator

var (
	oneOf, fieldsOf, list = wiretest.OneOf, wiretest.FieldsOf, wiretest.ListOf
	anyText, counts       = wiretest.AnyText, wiretest.Counts

	outputs = rapid.OneOf(
		fieldsOf("message", fields{
			"id": anyText, "role": oneOf("assistant"), "phase": oneOf("commentary", "", nil),
			"content": rapid.OneOf(
				list(fieldsOf("output_text", fields{"text": anyText})),
				list(fieldsOf("refusal", fields{"refusal": anyText}))),
		}),
		fieldsOf("function_call", fields{
			"call_id": oneOf("a", "b", ""), "name": rapid.Map(wiretest.Names, wiretest.Any),
			"arguments": rapid.Map(wiretest.Objects, wiretest.Any), "status": oneOf("completed"),
		}),
		fieldsOf("reasoning", fields{
			"summary":           textsOf("summary_text"),
			"content":           textsOf("reasoning_text"),
			"encrypted_content": rapid.OneOf(anyText, rapid.Just[any](nil)),
		}),
		fieldsOf("web_search_call", fields{"id": anyText}))
	replies = fieldsOf("response", fields{
		"model": anyText, "status": oneOf("completed", "incomplete", nil), "error": oneOf(nil),
		"incomplete_details": fieldsOf("", fields{
			"reason": oneOf("max_output_tokens"),
		}),
		"reasoning":    fieldsOf("", fields{"effort": oneOf("low", nil)}),
		"service_tier": oneOf("flex", nil),
		"output":       list(outputs),
		"usage": fieldsOf("", fields{
			"input_tokens": counts, "output_tokens": counts, "total_tokens": counts,
			"input_tokens_details": fieldsOf("", fields{
				"cached_tokens": counts, "cache_write_tokens": counts,
			}),
			"output_tokens_details": fieldsOf("", fields{"reasoning_tokens": counts}),
		}),
	})
)

func textsOf(kind string) wiretest.Generator {
	return list(fieldsOf(kind, fields{"text": anyText}))
}

func TestDecodingMatchesSDK(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body, err := json.MarshalIndent(replies.Draw(t, "response"), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		got, err := answer(string(body)).Provider(t, responses.Protocol).Chat(context.Background(), new(wiretest.Hi()))
		want := sdkReply(t, body)
		empty := strings.TrimSpace(want.Message.Content) == "" && len(want.Message.Calls) == 0
		if err != nil && (empty || want.Finish == "incomplete") {
			return // TestReplies checks which faults these are
		}
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if d := gocmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s\nresponse differs from the SDK's (-sdk +got):\n%s", body, d)
		}
	})
}

// BenchmarkSDK measures the cost of [BenchmarkChat] with the SDK, without limits and secrets.
func BenchmarkSDK(b *testing.B) {
	client := openai.NewClient(
		option.WithHTTPClient(answer(hello).Client()),
		option.WithAPIKey("sk-0123456789"), option.WithMaxRetries(0))
	req := wiretest.Conversation()
	b.ReportAllocs()
	for b.Loop() {
		r, err := client.Responses.New(b.Context(), sdkRequest(req))
		if err != nil || r.OutputText() != "hello" {
			b.Fatal(r, err)
		}
	}
}
