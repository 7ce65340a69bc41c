package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/openai"
)

// sdkRequest is a request in the SDK's own types. The texts of messages must
// be such that they can be sent as they are.
func sdkRequest(deployment string, req assay.Request) sdk.ChatCompletionNewParams {
	params := sdk.ChatCompletionNewParams{
		Model:    deployment,
		Messages: make([]sdk.ChatCompletionMessageParamUnion, len(req.Messages)),
	}
	for i, m := range req.Messages {
		params.Messages[i] = sdkMessage(m)
	}
	for _, f := range req.Functions {
		params.Tools = append(params.Tools, sdkFunction(f))
	}
	if t := req.Sampling.Temperature; t != nil {
		params.Temperature = param.NewOpt(*t)
	}
	if p := req.Sampling.TopP; p != nil {
		params.TopP = param.NewOpt(*p)
	}
	if n := req.Sampling.MaxTokens; n != nil {
		params.MaxTokens = param.NewOpt(int64(*n))
	}
	return params
}

func sdkMessage(m assay.Message) sdk.ChatCompletionMessageParamUnion {
	switch m.Role {
	case assay.System:
		return sdk.SystemMessage(m.Content)
	case assay.ToolRole:
		return sdk.ToolMessage(m.Content, m.CallID)
	case assay.User:
		return sdk.UserMessage(m.Content)
	}
	a := &sdk.ChatCompletionAssistantMessageParam{}
	a.Content.OfString = param.NewOpt(m.Content)
	if m.Content == "" {
		a.Content.OfString = param.Null[string]()
	}
	for _, c := range m.Calls {
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID:       c.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Name, Arguments: c.Arguments},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: a}
}

func sdkFunction(f assay.Function) sdk.ChatCompletionToolUnionParam {
	def := shared.FunctionDefinitionParam{Name: f.Name}
	if f.Description != "" {
		def.Description = param.NewOpt(f.Description)
	}
	if len(f.Parameters) > 0 {
		def.SetExtraFields(map[string]any{"parameters": f.Parameters})
	}
	return sdk.ChatCompletionFunctionTool(def)
}

var (
	names   = rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
	texts   = rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }), rapid.Just("<a href=\"x\">&\u2028"))
	objects = rapid.Map(rapid.MapOf(rapid.String(), rapid.OneOf(rapid.Map(rapid.Float64(), func(f float64) any { return f }), rapid.Map(rapid.String(), func(s string) any { return s }))),
		func(m map[string]any) string {
			b, err := json.MarshalIndent(m, " ", "\t")
			if err != nil {
				panic(err)
			}
			return string(b)
		})
	messages = rapid.Custom(func(t *rapid.T) assay.Message {
		m := assay.Message{
			Role:    rapid.SampledFrom([]assay.Role{assay.System, assay.User, assay.Assistant, assay.ToolRole}).Draw(t, "role"),
			Content: texts.Draw(t, "content"),
		}
		switch m.Role {
		case assay.ToolRole:
			m.CallID = texts.Draw(t, "call ID")
		case assay.Assistant:
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, assay.ToolCall{ID: texts.Draw(t, "ID"), Name: names.Draw(t, "name"), Arguments: objects.Draw(t, "arguments")})
			}
			if m.Content == "" && len(m.Calls) == 0 {
				m.Content = "x" // what is sent instead is ours, see TestRequestOnTheWire
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
)

// What is sent is what the SDK would send.
func TestEncodingIsTheSDKs(t *testing.T) {
	t.Parallel()
	var sent []byte
	p := newProvider(t, openai.Config{Deployment: "small", Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if r.ContentLength != int64(len(sent)) || r.Header.Get("Content-Type") != "application/json" || r.GetBody == nil {
			t.Errorf("length %d, header %v for %d bytes", r.ContentLength, r.Header, len(sent))
			return canned{200, headers(), hello}.RoundTrip(r)
		}
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		if again, err := io.ReadAll(body); err != nil || !bytes.Equal(again, sent) {
			t.Errorf("the body once more is %s, %v; want %s", again, err, sent)
		}
		return canned{200, headers(), hello}.RoundTrip(r)
	})}})
	// One list for all requests, so that functions are met again.
	known := rapid.SliceOfN(functions, 5, 5).Example()
	rapid.Check(t, func(t *rapid.T) {
		req := assay.Request{
			Model:     "small",
			Messages:  rapid.SliceOf(messages).Draw(t, "messages"),
			Functions: rapid.SliceOfN(rapid.OneOf(functions, rapid.SampledFrom(known)), 0, 4).Draw(t, "functions"),
			Sampling: assay.Sampling{
				Temperature: rapid.Ptr(rapid.Float64(), true).Draw(t, "temperature"),
				TopP:        rapid.Ptr(rapid.Float64(), true).Draw(t, "top_p"),
				MaxTokens:   rapid.Ptr(rapid.Int(), true).Draw(t, "max_tokens"),
			},
		}
		if _, err := p.Chat(context.Background(), req); err != nil {
			t.Fatal(err)
		}
		want, err := sdkRequest("small", req).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(decoded(t, want), decoded(t, sent)); d != "" {
			t.Errorf("body differs from the SDK's (-sdk +got):\n%s", d)
		}
	})
}

// decoded is a document with its numbers as they are written.
func decoded(t *rapid.T, doc []byte) any {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || dec.More() {
		t.Fatalf("%s: %v", doc, err)
	}
	return v
}

// A function that changes in place, as the memory of a list that is used again
// does, is sent as it is now.
func TestChangedFunctionIsSent(t *testing.T) {
	t.Parallel()
	rec, p := record(t, hello, openai.Config{})
	req := hi()
	req.Functions = []assay.Function{{Name: "a", Parameters: json.RawMessage(`{"x":1}`)}}
	for _, want := range []string{`{"x":1}`, `{"x":2}`} {
		copy(req.Functions[0].Parameters, want)
		if _, err := p.Chat(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(rec.rawBody, []byte(want)) {
			t.Errorf("sent %s, want the parameters %s", rec.rawBody, want)
		}
	}
}

// What cannot be encoded is our own fault, not the endpoint's.
func TestFunctionThatIsNoJSON(t *testing.T) {
	t.Parallel()
	_, p := record(t, hello, openai.Config{})
	req := hi()
	req.Functions = []assay.Function{{Name: "a", Parameters: json.RawMessage(`{"x":`)}}
	_, err := p.Chat(t.Context(), req)
	if f := assay.AsFault(err); f == nil || f.Kind != assay.Harness {
		t.Errorf("Chat() = %v, want a fault of kind harness", err)
	}
}
