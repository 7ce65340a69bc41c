//go:build strangers

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
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

const hello = `{"id":"c1","object":"chat.completion","created":1,"model":"small-2025","choices":[
	{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}],
	"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}`

// roundTripper is a function that implements [http.RoundTripper].
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// sdkRequest converts a request to the SDK's types. Its messages must not need any
// replacement before they are sent.
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
		call := &sdk.ChatCompletionMessageFunctionToolCallParam{ID: c.ID}
		call.Function.Name, call.Function.Arguments = c.Name, c.Arguments
		a.ToolCalls = append(a.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
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
	names     = rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`)
	byteTexts = rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	texts     = rapid.OneOf(rapid.String(), byteTexts, rapid.Just("<a href=\"x\">&\u2028"))
	fields    = rapid.MapOf(rapid.String(),
		rapid.OneOf(rapid.Map(rapid.Float64(), asAny), rapid.Map(rapid.String(), asAny)))
	objects = rapid.Map(fields, func(m map[string]any) string {
		b, err := json.MarshalIndent(m, " ", "\t")
		if err != nil {
			panic(err)
		}
		return string(b)
	})
	messages = wiretest.Messages(texts, texts,
		assay.System, assay.User, assay.Assistant, assay.ToolRole)
	functions = wiretest.Functions(texts)
)

// TestEncodingMatchesSDK checks random requests.
func TestEncodingMatchesSDK(t *testing.T) {
	t.Parallel()
	var sent []byte
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if r.ContentLength != int64(len(sent)) || r.GetBody == nil ||
			r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("length %d, header %v for %d bytes", r.ContentLength, r.Header, len(sent))
			return (&wiretest.Canned{Body: hello}).RoundTrip(r)
		}
		body, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		if again, err := io.ReadAll(body); err != nil || !bytes.Equal(again, sent) {
			t.Errorf("GetBody() = %s, %v; want %s", again, err, sent)
		}
		return (&wiretest.Canned{Body: hello}).RoundTrip(r)
	})
	p, err := openai.Protocol.New(wire.Config{Deployment: "small", Client: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	// All requests share these functions, so that some are in the cache.
	known := rapid.SliceOfN(functions, 5, 5).Example()
	some := rapid.SliceOfN(rapid.OneOf(functions, rapid.SampledFrom(known)), 0, 4)
	rapid.Check(t, func(t *rapid.T) {
		req := assay.Request{
			Model:     "small",
			Messages:  rapid.SliceOf(messages).Draw(t, "messages"),
			Functions: some.Draw(t, "functions"),
			Sampling: assay.Sampling{
				Temperature: rapid.Ptr(rapid.Float64(), true).Draw(t, "temperature"),
				TopP:        rapid.Ptr(rapid.Float64(), true).Draw(t, "top_p"),
				Revision:    rapid.SampledFrom([]string{"", "v1"}).Draw(t, "revision"), // never sent
				MaxTokens:   rapid.Ptr(rapid.Int(), true).Draw(t, "max_tokens"),
			},
		}
		if _, err := p.Chat(context.Background(), &req); err != nil {
			t.Fatal(err)
		}
		want, err := sdkRequest("small", req).MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(wiretest.Decoded(t, want), wiretest.Decoded(t, sent)); d != "" {
			t.Errorf("body differs from the SDK's (-sdk +got):\n%s", d)
		}
	})
}
