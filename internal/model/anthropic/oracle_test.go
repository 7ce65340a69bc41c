package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/anthropic"
	"github.com/assay-eval/assay/internal/model/wire"
)

// sdkRequest converts a request to the SDK's types. Its messages must not need any replacement
// before they are sent.
func sdkRequest(req assay.Request) sdk.MessageNewParams {
	cached := sdk.NewCacheControlEphemeralParam()
	params := sdk.MessageNewParams{Model: "claude-x", MaxTokens: 16384}
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
	names = rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
	texts = rapid.Map(rapid.OneOf(rapid.String(), rapid.Just("<a href=\"x\">&\u2028")),
		func(s string) string { return "." + s })
	objects = rapid.Map(rapid.MapOf(rapid.String(), rapid.Float64()),
		func(m map[string]float64) string { return string(marshal(m)) })
	roles    = rapid.SampledFrom([]assay.Role{assay.User, assay.Assistant, assay.ToolRole})
	messages = rapid.Custom(func(t *rapid.T) assay.Message {
		m := assay.Message{Role: roles.Draw(t, "role"), Content: texts.Draw(t, "content")}
		switch m.Role {
		case assay.ToolRole:
			m.CallID = names.Draw(t, "call ID")
		case assay.Assistant:
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, assay.ToolCall{
					ID: names.Draw(t, "ID"), Name: names.Draw(t, "name"),
					Arguments: objects.Draw(t, "arguments"),
				})
			}
			if len(m.Calls) > 0 && rapid.Bool().Draw(t, "calls only") {
				m.Content = ""
			}
		}
		return m
	})
	functions = rapid.Custom(func(t *rapid.T) assay.Function {
		return assay.Function{
			Name:        names.Draw(t, "name"),
			Description: rapid.OneOf(rapid.Just(""), texts).Draw(t, "description"),
			Parameters:  json.RawMessage(objects.Draw(t, "parameters")),
		}
	})
	requests = rapid.Custom(func(t *rapid.T) assay.Request {
		system := assay.Message{Role: assay.System, Content: texts.Draw(t, "system")}
		rest := rapid.SliceOfN(messages, 1, 6).Draw(t, "messages")
		return assay.Request{
			Model:     "claude",
			Messages:  append([]assay.Message{system}, rest...),
			Functions: rapid.SliceOfN(functions, 0, 3).Draw(t, "functions"),
			Sampling: assay.Sampling{
				Temperature: rapid.Ptr(rapid.Float64(), true).Draw(t, "temperature"),
				TopP:        rapid.Ptr(rapid.Float64(), true).Draw(t, "top_p"),
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

// canned is a transport that always returns the same body and keeps the latest request's.
type canned struct {
	body string
	sent []byte
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	c.sent, err = io.ReadAll(r.Body)
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(c.body)),
	}, err
}

func (c *canned) provider(t rapid.TB) *anthropic.Provider {
	t.Helper()
	p, err := anthropic.New(wire.Config{Deployment: "claude-x", Client: &http.Client{Transport: c}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEncodingMatchesSDK checks random requests.
func TestEncodingMatchesSDK(t *testing.T) {
	t.Parallel()
	endpoint := &canned{body: hello}
	p := endpoint.provider(t)
	rapid.Check(t, func(t *rapid.T) {
		req := requests.Draw(t, "request")
		if _, err := p.Chat(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		want, err := sdkRequest(req).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var got, from any
		for doc, v := range map[*[]byte]*any{&want: &from, &endpoint.sent: &got} {
			if err := json.Unmarshal(*doc, v); err != nil {
				t.Fatalf("%s: %v", *doc, err)
			}
		}
		plainResults(from)
		if d := cmp.Diff(from, got); d != "" {
			t.Errorf("body differs from the SDK's (-sdk +got):\n%s", d)
		}
	})
}

// plainResults replaces the lists of text blocks in tool results by the text. The API accepts both.
func plainResults(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["type"] == "tool_result" {
			blocks, _ := v["content"].([]any)
			for _, b := range blocks {
				v["content"] = b.(map[string]any)["text"]
			}
			return
		}
		for _, inner := range v {
			plainResults(inner)
		}
	case []any:
		for _, inner := range v {
			plainResults(inner)
		}
	}
}

// sdkReply returns the response that the SDK decodes from a reply to [hi].
func sdkReply(t *rapid.T, body []byte) assay.Response {
	var r sdk.Message
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("the SDK decodes %s: %v", body, err)
	}
	u := r.Usage
	input := u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens
	resp := assay.Response{
		ServedModel: string(r.Model), Finish: string(r.StopReason),
		Usage: assay.Usage{
			InputTokens:      int(input),
			OutputTokens:     int(u.OutputTokens),
			CachedTokens:     int(u.CacheReadInputTokens),
			CacheWriteTokens: int(u.CacheCreationInputTokens),
			ReasoningTokens:  int(min(u.OutputTokensDetails.ThinkingTokens, u.OutputTokens)),
		},
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

type generator = *rapid.Generator[any]

func asAny[T any](v T) any { return v }

var (
	anyText = rapid.Map(rapid.String(), asAny)
	counts  = rapid.Map(rapid.IntRange(0, 1e6), asAny)

	blocks = rapid.OneOf(
		fieldsOf("text", map[string]generator{"text": anyText}),
		fieldsOf("thinking", map[string]generator{"thinking": anyText, "signature": anyText}),
		fieldsOf("redacted_thinking", map[string]generator{"data": anyText}),
		rapid.Custom(func(t *rapid.T) any {
			return map[string]any{
				"type": "tool_use", "id": names.Draw(t, "ID"), "name": names.Draw(t, "name"),
				"input": json.RawMessage(objects.Draw(t, "input")),
			}
		}))
	replies = fieldsOf("message", map[string]generator{
		"model":       anyText,
		"stop_reason": oneOf("end_turn", "max_tokens", "tool_use", "refusal", nil),
		"content":     rapid.Map(rapid.SliceOfNDistinct(blocks, 0, 4, blockID), asAny),
		"usage": fieldsOf("", map[string]generator{
			"input_tokens": counts, "output_tokens": counts, "service_tier": oneOf("standard", nil),
			"cache_read_input_tokens": counts, "cache_creation_input_tokens": counts,
			"output_tokens_details": fieldsOf("", map[string]generator{"thinking_tokens": counts}),
		}),
	})
)

// blockID returns the ID of a call, and a text of their own for other blocks.
func blockID(b any) any {
	if id, ok := b.(map[string]any)["id"]; ok {
		return id
	}
	return fmt.Sprintf("%p", b)
}

func oneOf(values ...any) generator { return rapid.SampledFrom(values) }

// fieldsOf generates objects of a type with some of the fields.
func fieldsOf(kind string, fields map[string]generator) generator {
	return rapid.Custom(func(t *rapid.T) any {
		doc := map[string]any{}
		if kind != "" {
			doc["type"] = kind
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if rapid.IntRange(0, 9).Draw(t, name) > 0 {
				doc[name] = fields[name].Draw(t, name)
			}
		}
		return doc
	})
}

// TestDecodingMatchesSDK checks random replies. Calls with equal IDs are left to TestOddReplies.
func TestDecodingMatchesSDK(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body := marshal(replies.Draw(t, "reply"))
		got, err := (&canned{body: string(body)}).provider(t).Chat(context.Background(), hi())
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

// BenchmarkChat and BenchmarkSDK compare the CPU of a request with 30 tools and 18 messages.
func BenchmarkChat(b *testing.B) {
	p := (&canned{body: hello}).provider(b)
	req := long()
	for b.Loop() {
		if _, err := p.Chat(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSDK(b *testing.B) {
	client := sdk.NewClient(option.WithAPIKey("x"), option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: &canned{body: hello}}))
	req := long()
	for b.Loop() {
		if _, err := client.Messages.New(b.Context(), sdkRequest(req)); err != nil {
			b.Fatal(err)
		}
	}
}

func long() assay.Request {
	req := hi()
	schema := `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	for range 30 {
		req.Functions = append(req.Functions, assay.Function{
			Name: "read", Description: strings.Repeat("word ", 30),
			Parameters: json.RawMessage(schema),
		})
	}
	text := strings.Repeat("result ", 60)
	for range 8 {
		req.Messages = append(req.Messages,
			assay.Message{Role: assay.Assistant, Content: "next", Calls: []assay.ToolCall{
				{ID: "toolu_1", Name: "read", Arguments: `{"path":"/a"}`},
			}},
			assay.Message{Role: assay.ToolRole, CallID: "toolu_1", Content: text})
	}
	return req
}

func FuzzReply(f *testing.F) {
	f.Add(hello)
	f.Add(`{"content":[{"type":"thinking","thinking":"a","signature":"b"},` +
		`{"type":"tool_use","id":"","name":"x y","input":"{}"}],"stop_reason":"tool_use"}`)
	f.Add(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	f.Add(`{"content":[{"type":"text"},7,null,{"type":"odd"}],"stop_reason":"max_tokens"}`)
	f.Add(`{"content":{"0":1},"usage":{"input_tokens":1e999}}`)
	f.Add("data: {\"type\":\"message_start\",\"message\":{}}\n\n" +
		"data: {\"type\":\"content_block_start\"}\n\n" +
		"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n")
	f.Fuzz(func(t *testing.T, body string) {
		endpoint := &canned{body: body}
		p := endpoint.provider(t)
		req := hi()
		resp, err := p.Chat(t.Context(), req)
		if err != nil {
			if f := assay.AsFault(err); f != err || len(f.Detail) > 300 {
				t.Fatalf("Chat() = %v (%T), want a fault", err, err)
			}
			return
		}
		for _, c := range resp.Message.Calls {
			if c.ID == "" {
				t.Error("a call without an ID")
			}
		}
		// Whatever came can be sent back.
		req.Messages = append(req.Messages, resp.Message)
		endpoint.body = hello
		if _, err := p.Chat(t.Context(), req); err != nil || !json.Valid(endpoint.sent) {
			t.Errorf("sent %s, %v", endpoint.sent, err)
		}
		if bytes.Contains(endpoint.sent, []byte(`"content":[]`)) {
			t.Errorf("sent a message without content: %s", endpoint.sent)
		}
	})
}
