package responses_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
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
	"github.com/assay-eval/assay/internal/model/responses"
	"github.com/assay-eval/assay/internal/model/wire"
)

// sdkRequest converts a request to the SDK's types. Its messages must not need any replacement
// before they are sent.
func sdkRequest(req assay.Request) sdk.ResponseNewParams {
	params := sdk.ResponseNewParams{
		Model: "gpt-x", Store: param.NewOpt(false),
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
	names   = rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
	texts   = rapid.OneOf(rapid.String(), rapid.Just("<a href=\"x\">&\u2028"))
	numbers = rapid.MapOf(rapid.String(), rapid.Float64())
	objects = rapid.Map(numbers, func(m map[string]float64) string {
		b, err := json.MarshalIndent(m, " ", "\t")
		if err != nil {
			panic(err)
		}
		return string(b)
	})
	roles = rapid.SampledFrom([]assay.Role{
		assay.System, assay.User, assay.Assistant, assay.ToolRole,
	})
	messages = rapid.Custom(func(t *rapid.T) assay.Message {
		m := assay.Message{Role: roles.Draw(t, "role"), Content: texts.Draw(t, "content")}
		switch m.Role {
		case assay.ToolRole:
			m.CallID = texts.Draw(t, "call ID")
		case assay.Assistant:
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, assay.ToolCall{
					ID: texts.Draw(t, "ID"), Name: names.Draw(t, "name"),
					Arguments: objects.Draw(t, "arguments"),
				})
			}
			if m.Content == "" && len(m.Calls) == 0 {
				m.Content = "x" // see TestRequestOnTheWire for an empty reply
			}
		}
		return m
	})
	functions = rapid.Custom(func(t *rapid.T) assay.Function {
		f := assay.Function{Name: names.Draw(t, "name"), Description: texts.Draw(t, "description")}
		if rapid.Bool().Draw(t, "with parameters") {
			f.Parameters = json.RawMessage(objects.Draw(t, "parameters"))
		}
		return f
	})
	requests = rapid.Custom(func(t *rapid.T) assay.Request {
		return assay.Request{
			Model:     "small",
			Messages:  rapid.SliceOf(messages).Draw(t, "messages"),
			Functions: rapid.SliceOfN(functions, 0, 3).Draw(t, "functions"),
			Sampling: assay.Sampling{
				Temperature: rapid.Ptr(rapid.Float64(), true).Draw(t, "temperature"),
				TopP:        rapid.Ptr(rapid.Float64(), true).Draw(t, "top_p"),
				MaxTokens:   rapid.Ptr(rapid.Int(), true).Draw(t, "max_tokens"),
				Effort:      rapid.SampledFrom([]string{"", "low", "high"}).Draw(t, "effort"),
				ToolChoice:  rapid.SampledFrom([]string{"", "auto", "none"}).Draw(t, "tool_choice"),
			},
		}
	})
)

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

func (c *canned) provider(t rapid.TB) *responses.Provider {
	t.Helper()
	p, err := responses.New(wire.Config{Deployment: "gpt-x", Client: &http.Client{Transport: c}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

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
		if d := gocmp.Diff(decoded(t, want), decoded(t, endpoint.sent)); d != "" {
			t.Errorf("body differs from the SDK's (-sdk +got):\n%s", d)
		}
	})
}

// decoded returns a decoded document. Numbers keep their spelling.
func decoded(t *rapid.T, doc []byte) any {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		t.Fatalf("%s: %v", doc, err)
	}
	return v
}

// sdkReply returns the response that the SDK decodes from a reply to [hi].
func sdkReply(t *rapid.T, body []byte) assay.Response {
	var r sdk.Response
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("the SDK decodes %s: %v", body, err)
	}
	u := r.Usage
	resp := assay.Response{
		ServedModel: r.Model, Finish: cmp.Or(r.IncompleteDetails.Reason, string(r.Status)),
		Usage: assay.Usage{
			InputTokens: int(u.InputTokens), OutputTokens: int(u.OutputTokens),
			CachedTokens:     int(min(u.InputTokensDetails.CachedTokens, u.InputTokens)),
			CacheWriteTokens: int(min(u.InputTokensDetails.CacheWriteTokens, u.InputTokens)),
			ReasoningTokens:  int(min(u.OutputTokensDetails.ReasoningTokens, u.OutputTokens)),
		},
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
				Origin: "responses api.openai.com", Data: json.RawMessage(r.JSON.Output.Raw()),
			}
		}
	}
	m.Reasoning = strings.Join(thoughts, "\n\n")
	if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 {
		m.Content = refusal
	}
}

type generator = *rapid.Generator[any]

func asAny[T any](v T) any { return v }

var (
	anyText = rapid.Map(rapid.String(), asAny)
	counts  = rapid.Map(rapid.IntRange(0, 1e6), asAny)

	outputs = rapid.OneOf(
		fieldsOf("message", map[string]generator{
			"id": anyText, "role": oneOf("assistant"), "phase": oneOf("commentary", "", nil),
			"content": rapid.OneOf(
				list(fieldsOf("output_text", map[string]generator{"text": anyText})),
				list(fieldsOf("refusal", map[string]generator{"refusal": anyText}))),
		}),
		fieldsOf("function_call", map[string]generator{
			"call_id": oneOf("a", "b", ""), "name": rapid.Map(names, asAny),
			"arguments": rapid.Map(objects, asAny), "status": oneOf("completed"),
		}),
		fieldsOf("reasoning", map[string]generator{
			"summary":           textsOf("summary_text"),
			"content":           textsOf("reasoning_text"),
			"encrypted_content": rapid.OneOf(anyText, rapid.Just[any](nil)),
		}),
		fieldsOf("web_search_call", map[string]generator{"id": anyText}))
	replies = fieldsOf("response", map[string]generator{
		"model": anyText, "status": oneOf("completed", "incomplete", nil), "error": oneOf(nil),
		"incomplete_details": fieldsOf("", map[string]generator{
			"reason": oneOf("max_output_tokens"),
		}),
		"reasoning":    fieldsOf("", map[string]generator{"effort": oneOf("low", nil)}),
		"service_tier": oneOf("flex", nil),
		"output":       list(outputs),
		"usage": fieldsOf("", map[string]generator{
			"input_tokens": counts, "output_tokens": counts,
			"input_tokens_details": fieldsOf("", map[string]generator{
				"cached_tokens": counts, "cache_write_tokens": counts,
			}),
			"output_tokens_details": fieldsOf("", map[string]generator{"reasoning_tokens": counts}),
		}),
	})
)

func textsOf(kind string) generator {
	return list(fieldsOf(kind, map[string]generator{"text": anyText}))
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

func list(entry generator) generator {
	return rapid.Map(rapid.SliceOfN(entry, 0, 3), asAny)
}

func TestDecodingMatchesSDK(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body, err := json.MarshalIndent(replies.Draw(t, "response"), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		got, err := (&canned{body: string(body)}).provider(t).Chat(context.Background(), hi())
		want := sdkReply(t, body)
		empty := strings.TrimSpace(want.Message.Content) == "" && len(want.Message.Calls) == 0
		if err != nil && (empty || want.Finish == "incomplete") {
			return // TestUnfinishedReplies checks which faults these are
		}
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if d := gocmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s\nresponse differs from the SDK's (-sdk +got):\n%s", body, d)
		}
	})
}

func FuzzReply(f *testing.F) {
	f.Add(hello)
	f.Add(reply(`"completed"`, thought, call, odd))
	f.Add(`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`)
	f.Add(`{"status":"failed","error":{"code":"rate_limit_exceeded","message":"try again in 2s"}}`)
	f.Add(`{"output":[{"type":"message","content":"x"},{"type":"function_call","arguments":[]},7]}`)
	f.Add(`{"output":{"0":1},"usage":{"input_tokens":1e999}}`)
	f.Fuzz(func(t *testing.T, body string) {
		endpoint := &canned{body: body}
		p := endpoint.provider(t)
		req := hi()
		resp, err := p.Chat(t.Context(), req)
		var fault *assay.Fault
		switch {
		case err == nil:
		case !errors.As(err, &fault) || err != error(fault) || len(fault.Detail) > 300:
			t.Fatalf("Chat() = %v (%T), want a fault", err, err)
		default:
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
	})
}

func conversation() assay.Request {
	schema := `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	req := hi()
	for i := range 30 {
		req.Functions = append(req.Functions, assay.Function{
			Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("word ", 30),
			Parameters: json.RawMessage(schema),
		})
	}
	for i := range 9 {
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages,
			assay.Message{Role: assay.Assistant, Calls: []assay.ToolCall{
				{ID: id, Name: "tool_1", Arguments: `{"path":"x"}`},
			}},
			assay.Message{Role: assay.ToolRole, CallID: id, Content: strings.Repeat("word ", 20)})
	}
	return req
}

func BenchmarkChat(b *testing.B) {
	endpoint := &canned{body: hello}
	p := endpoint.provider(b)
	req := conversation()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Chat(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSDK is what [BenchmarkChat] would cost with the SDK, without limits and secrets.
func BenchmarkSDK(b *testing.B) {
	client := openai.NewClient(
		option.WithHTTPClient(&http.Client{Transport: &canned{body: hello}}),
		option.WithAPIKey("sk-0123456789"), option.WithMaxRetries(0))
	req := conversation()
	b.ReportAllocs()
	for b.Loop() {
		r, err := client.Responses.New(b.Context(), sdkRequest(req))
		if err != nil || r.OutputText() != "hello" {
			b.Fatal(r, err)
		}
	}
}
