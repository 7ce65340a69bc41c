//go:build strangers

package gemini_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/gemini"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

const hello = `{"candidates":[{"content":{"parts":[{"text":"hello"}],"role":"model"},
"finishReason":"STOP","index":0}],"modelVersion":"gemini-x","responseId":"r1"}`

func answer(body string) *wiretest.Canned { return &wiretest.Canned{Body: body} }

func sdk(t rapid.TB, c *wiretest.Canned) *genai.Client {
	t.Helper()
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: "sk-0123456789", Backend: genai.BackendGeminiAPI,
		HTTPClient: c.Client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// sdkRequest converts a request to the SDK's types. Its messages must not need any replacement
// before they are sent.
func sdkRequest(req assay.Request) ([]*genai.Content, *genai.GenerateContentConfig) {
	s := req.Sampling
	config := &genai.GenerateContentConfig{
		SystemInstruction: &genai.Content{Parts: []*genai.Part{{Text: req.Messages[0].Content}}},
		Temperature:       float(s.Temperature), TopP: float(s.TopP),
	}
	if s.MaxTokens != nil {
		config.MaxOutputTokens = int32(*s.MaxTokens)
	}
	if s.Seed != nil {
		config.Seed = new(int32(*s.Seed))
	}
	if s.Effort != "" {
		config.ThinkingConfig = &genai.ThinkingConfig{
			IncludeThoughts: true, ThinkingLevel: genai.ThinkingLevel(strings.ToUpper(s.Effort)),
		}
	}
	if s.ToolChoice != "" && len(req.Functions) > 0 {
		config.ToolConfig = &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{
			Mode: genai.FunctionCallingConfigMode(strings.ToUpper(s.ToolChoice)),
		}}
	}
	if len(req.Functions) > 0 {
		config.Tools = []*genai.Tool{{FunctionDeclarations: sdkFunctions(req.Functions)}}
	}
	var contents []*genai.Content
	callNames := map[string]string{}
	for _, m := range req.Messages[1:] {
		role, parts := sdkParts(m, callNames)
		if n := len(contents); n > 0 && contents[n-1].Role == role {
			contents[n-1].Parts = append(contents[n-1].Parts, parts...)
		} else {
			contents = append(contents, &genai.Content{Role: role, Parts: parts})
		}
	}
	return contents, config
}

func float(f *float64) *float32 {
	if f == nil {
		return nil
	}
	return new(float32(*f))
}

func sdkFunctions(functions []assay.Function) []*genai.FunctionDeclaration {
	var all []*genai.FunctionDeclaration
	for _, f := range functions {
		d := &genai.FunctionDeclaration{Name: f.Name, Description: f.Description}
		if f.Parameters != nil {
			d.ParametersJsonSchema = f.Parameters
		}
		all = append(all, d)
	}
	return all
}

func sdkParts(m assay.Message, callNames map[string]string) (role string, parts []*genai.Part) {
	switch m.Role {
	case assay.ToolRole:
		output := map[string]any{"output": m.Content}
		part := genai.NewPartFromFunctionResponse(callNames[m.CallID], output)
		part.FunctionResponse.ID = m.CallID
		return genai.RoleUser, []*genai.Part{part}
	case assay.Assistant:
		if m.Content != "" {
			parts = append(parts, genai.NewPartFromText(m.Content))
		}
		for _, c := range m.Calls {
			var args map[string]any
			if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
				panic(err)
			}
			part := genai.NewPartFromFunctionCall(c.Name, args)
			part.FunctionCall.ID = c.ID
			parts = append(parts, part)
			callNames[c.ID] = c.Name
		}
		return genai.RoleModel, parts
	}
	return genai.RoleUser, []*genai.Part{genai.NewPartFromText(m.Content)}
}

var (
	texts     = rapid.Map(rapid.String(), func(s string) string { return "." + s })
	functions = wiretest.Functions(texts)
	requests  = rapid.Custom(func(t *rapid.T) assay.Request {
		req := assay.Request{
			Model:     "small",
			Messages:  []assay.Message{{Role: assay.System, Content: texts.Draw(t, "system")}},
			Functions: rapid.SliceOfN(functions, 0, 3).Draw(t, "functions"),
			Sampling: assay.Sampling{
				Temperature: rapid.SampledFrom([]*float64{nil, new(0.5)}).Draw(t, "temperature"),
				TopP:        rapid.SampledFrom([]*float64{nil, new(0.5)}).Draw(t, "top_p"),
				Revision:    rapid.SampledFrom([]string{"", "v1"}).Draw(t, "revision"), // never sent
				MaxTokens:   rapid.Ptr(rapid.IntRange(1, 1<<30), true).Draw(t, "max_tokens"),
				Seed:        rapid.Ptr(rapid.Int64Range(-1<<31, 1<<31-1), true).Draw(t, "seed"),
				Effort:      rapid.SampledFrom([]string{"", "low", "HIGH"}).Draw(t, "effort"),
				ToolChoice:  rapid.SampledFrom([]string{"", "auto", "none"}).Draw(t, "tool_choice"),
			},
		}
		for turn := range rapid.IntRange(1, 5).Draw(t, "turns") {
			req.Messages = append(req.Messages, turns(turn).Draw(t, "turn")...)
		}
		return req
	})
)

// turns generates the user's message and the model's reply with its answered calls.
func turns(turn int) *rapid.Generator[[]assay.Message] {
	return rapid.Custom(func(t *rapid.T) []assay.Message {
		content := rapid.OneOf(texts, rapid.Just("")).Draw(t, "content")
		reply := assay.Message{Role: assay.Assistant, Content: content}
		all := []assay.Message{{Role: assay.User, Content: texts.Draw(t, "user")}, reply}
		for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
			c := assay.ToolCall{
				ID: fmt.Sprintf("id_%d_%d", turn, i), Name: wiretest.Names.Draw(t, "name"),
				Arguments: wiretest.Objects.Draw(t, "arguments"),
			}
			all[1].Calls = append(all[1].Calls, c)
			all = append(all, assay.Message{
				Role: assay.ToolRole, CallID: c.ID, Content: rapid.String().Draw(t, "answer"),
			})
		}
		if all[1].Content == "" && len(all[1].Calls) == 0 {
			all[1].Content = "x" // see TestRequestOnTheWire for an empty reply
		}
		return all
	})
}

func TestEncodingMatchesSDK(t *testing.T) {
	t.Parallel()
	oracle := answer(hello)
	client := sdk(t, oracle)
	wiretest.CheckEncoding(t, gemini.Protocol, hello, requests, func(t *rapid.T, req assay.Request) any {
		contents, config := sdkRequest(req)
		_, err := client.Models.GenerateContent(context.Background(), "small", contents, config)
		if err != nil {
			t.Fatal(err)
		}
		want := wiretest.Decoded(t, oracle.Sent).(map[string]any)
		delete(want["systemInstruction"].(map[string]any), "role") // it has no meaning there
		if config := want["generationConfig"].(map[string]any); len(config) == 0 {
			delete(want, "generationConfig")
		}
		return want
	})
}

// sdkReply returns the response that the SDK decodes from a reply to [hi].
func sdkReply(t *rapid.T, body []byte) (resp assay.Response, parts []*genai.Part) {
	client := sdk(t, answer(string(body)))
	r, err := client.Models.GenerateContent(context.Background(), "gemini-x", genai.Text("hi"), nil)
	if err != nil {
		t.Fatalf("the SDK decodes %s: %v", body, err)
	}
	resp.ServedModel = r.ModelVersion
	if u := r.UsageMetadata; u != nil {
		resp.Usage = wire.Tokens{
			Input:     wire.Count(u.PromptTokenCount + u.ToolUsePromptTokenCount),
			Cached:    wire.Count(u.CachedContentTokenCount),
			Output:    wire.Count(u.CandidatesTokenCount + u.ThoughtsTokenCount),
			Reasoning: wire.Count(u.ThoughtsTokenCount), Details: true,
			Total: wire.Count(u.TotalTokenCount),
		}.Usage()
	}
	resp.Message.Role = assay.Assistant
	if len(r.Candidates) == 0 {
		return resp, nil
	}
	resp.Finish = string(r.Candidates[0].FinishReason)
	if r.Candidates[0].Content == nil {
		return resp, nil
	}
	parts = r.Candidates[0].Content.Parts
	sdkMessage(parts, &resp.Message)
	return resp, parts
}

func sdkMessage(parts []*genai.Part, m *assay.Message) {
	for _, p := range parts {
		switch {
		case p.FunctionCall != nil:
			id := p.FunctionCall.ID
			same := func(c assay.ToolCall) bool { return c.ID == id }
			if id == "" || slices.ContainsFunc(m.Calls, same) {
				id = fmt.Sprintf("call_1_%d", len(m.Calls))
			}
			args, err := json.Marshal(p.FunctionCall.Args)
			if err != nil || p.FunctionCall.Args == nil {
				args = []byte("{}")
			}
			call := assay.ToolCall{ID: id, Name: p.FunctionCall.Name, Arguments: string(args)}
			m.Calls = append(m.Calls, call)
		case p.Thought:
			m.Reasoning += p.Text
		default:
			m.Content += p.Text
		}
	}
}

// The parts of random replies.
type fields = map[string]wiretest.Generator

var (
	oneOf, fieldsOf, list = wiretest.OneOf, wiretest.FieldsOf, wiretest.ListOf
	anyText, counts       = wiretest.AnyText, wiretest.Counts

	signatures = rapid.Map(rapid.SliceOfN(rapid.Byte(), 1, 9), wiretest.Any) // JSON has them in base64
	parts      = rapid.OneOf(
		fieldsOf("", fields{"text": anyText, "thought": oneOf(true, false)}),
		fieldsOf("", fields{"text": anyText, "thoughtSignature": signatures}),
		fieldsOf("", fields{
			"functionCall": fieldsOf("", fields{
				"id": oneOf("a", "b", ""), "name": rapid.Map(wiretest.Names, wiretest.Any),
				"args": rapid.Map(rapid.MapOf(rapid.String(), rapid.String()), wiretest.Any),
			}),
			"thoughtSignature": signatures,
		}))
	replies = fieldsOf("", fields{
		"modelVersion": anyText, "responseId": anyText,
		"candidates": list(fieldsOf("", fields{
			"finishReason": oneOf("STOP", "MAX_TOKENS"), "index": oneOf(0),
			"content": fieldsOf("", fields{"parts": list(parts), "role": oneOf("model")}),
		})),
		"usageMetadata": fieldsOf("", fields{
			"promptTokenCount": counts, "toolUsePromptTokenCount": counts,
			"cachedContentTokenCount": counts, "candidatesTokenCount": counts,
			"thoughtsTokenCount": counts, "totalTokenCount": counts,
		}),
	})
)

// sameArguments compares the arguments of calls as JSON.
var sameArguments = gocmp.FilterPath(
	func(p gocmp.Path) bool { return p.Last().String() == ".Arguments" },
	gocmp.Transformer("JSON", func(text string) (v any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
		return v
	}))

// TestDecodingMatchesSDK also checks that the SDK would send the same parts back.
func TestDecodingMatchesSDK(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body, err := json.MarshalIndent(replies.Draw(t, "reply"), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		endpoint := answer(string(body))
		p := endpoint.Provider(t, gemini.Protocol)
		req := wiretest.Hi()
		got, err := p.Chat(context.Background(), &req)
		want, parts := sdkReply(t, body)
		empty := strings.TrimSpace(want.Message.Content) == "" && len(want.Message.Calls) == 0
		if err != nil && empty {
			return // TestReplies checks which faults these are
		}
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		state := got.Message.State
		got.Message.State = nil
		if d := gocmp.Diff(&want, got, cmpopts.EquateEmpty(), sameArguments); d != "" {
			t.Errorf("%s\nresponse differs from the SDK's (-sdk +got):\n%s", body, d)
		}
		signed := func(p *genai.Part) bool { return p.ThoughtSignature != nil }
		if !slices.ContainsFunc(parts, signed) {
			return
		}
		var back []*genai.Part
		if err := json.Unmarshal(state.Data, &back); err != nil {
			t.Fatal(err)
		}
		if d := gocmp.Diff(parts, back); d != "" {
			t.Errorf("state differs from the SDK's parts (-sdk +got):\n%s", d)
		}
	})
}

// BenchmarkSDK measures the cost of [BenchmarkChat] with the SDK, without limits and secrets.
func BenchmarkSDK(b *testing.B) {
	client := sdk(b, answer(hello))
	req := wiretest.Conversation()
	b.ReportAllocs()
	for b.Loop() {
		contents, config := sdkRequest(req)
		r, err := client.Models.GenerateContent(b.Context(), "gemini-x", contents, config)
		if err != nil || r.Text() != "hello" {
			b.Fatal(r, err)
		}
	}
}
