//go:build strangers

package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// sdkReply returns the response that the SDK decodes from a reply to [hi].
func sdkReply(t rapid.TB, body string) (*assay.Response, error) {
	t.Helper()
	var c sdk.ChatCompletion
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatalf("the SDK decodes %s: %v", body, err)
	}
	in, out := c.Usage.PromptTokensDetails, c.Usage.CompletionTokensDetails
	thought := out.JSON.ReasoningTokens.Raw()
	usage := wire.Tokens{
		Input:     sdkCount(c.Usage.PromptTokens, c.Usage.JSON.PromptTokens),
		Output:    sdkCount(c.Usage.CompletionTokens, c.Usage.JSON.CompletionTokens),
		Total:     sdkCount(c.Usage.TotalTokens, c.Usage.JSON.TotalTokens),
		Cached:    sdkCount(in.CachedTokens, in.JSON.CachedTokens),
		Reasoning: sdkCount(out.ReasoningTokens, out.JSON.ReasoningTokens),
		Details:   thought != "" && thought != "null",
	}.Usage()
	resp := &assay.Response{ServedModel: sdkText(c.Model, c.JSON.Model), Usage: usage}
	malformed := func(detail string) error {
		return &assay.Fault{Kind: assay.Malformed, Status: 200, Detail: detail}
	}
	if len(c.Choices) == 0 {
		return resp, malformed("the completion has no choices")
	}
	choice := c.Choices[0]
	resp.Finish = sdkText(choice.FinishReason, choice.JSON.FinishReason)
	reason := resp.Finish[strings.LastIndexByte(resp.Finish, ':')+1:]
	switch strings.ToLower(strings.TrimSpace(reason)) {
	case "", "stop", "length", "tool_calls":
	case "content_filter":
		return resp, &assay.Fault{
			Kind: assay.ContentFilter, Status: 200,
			Detail: "the endpoint's filter cut the reply off",
		}
	default:
		return resp, malformed("the reply ended for the unknown reason")
	}
	m := assay.Message{
		Role:    assay.Assistant,
		Content: sdkContent(choice.Message),
		Calls:   sdkCalls(choice.Message.ToolCalls),
	}
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var s string
		_ = json.Unmarshal([]byte(choice.Message.JSON.ExtraFields[name].Raw()), &s)
		if m.Reasoning = s; s != "" {
			break
		}
	}
	refusal := choice.Message.JSON.Refusal.Raw()
	if refusal != "" && refusal != "null" && strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 {
		m.Content = sdkText(choice.Message.Refusal, choice.Message.JSON.Refusal)
	}
	empty := strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0
	if empty && resp.Finish != "length" && resp.Usage.OutputTokens == 0 {
		return resp, malformed("empty reply")
	}
	resp.Message = m
	return resp, nil
}

// sdkText returns a text of the SDK. If it is a number, it returns the original spelling,
// which the SDK changes.
func sdkText(s string, f respjson.Field) string {
	var n json.Number
	if raw := f.Raw(); !strings.HasPrefix(raw, `"`) && json.Unmarshal([]byte(raw), &n) == nil {
		return n.String()
	}
	return s
}

// sdkCount returns a count of the SDK. It differs from the SDK for true, which the SDK
// counts as 1.
func sdkCount(n int64, f respjson.Field) wire.Count {
	if f.Raw() == "true" {
		return 0
	}
	return wire.Count(min(max(n, 0), math.MaxInt32))
}

func sdkContent(m sdk.ChatCompletionMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	raw := m.JSON.Content.Raw()
	if !strings.HasPrefix(raw, "[") || json.Unmarshal([]byte(raw), &parts) != nil {
		return sdkText(m.Content, m.JSON.Content)
	}
	var text string
	for _, part := range parts {
		text += part.Text
	}
	return text
}

func sdkCalls(calls []sdk.ChatCompletionMessageToolCallUnion) []assay.ToolCall {
	var out []assay.ToolCall
	for i, c := range calls {
		id := sdkText(c.ID, c.JSON.ID)
		if id == "" || slices.ContainsFunc(out, func(c assay.ToolCall) bool { return c.ID == id }) {
			id = fmt.Sprintf("call_1_%d", i)
		}
		out = append(out, assay.ToolCall{
			ID:        id,
			Name:      sdkText(c.Function.Name, c.Function.JSON.Name),
			Arguments: sdkText(c.Function.Arguments, c.Function.JSON.Arguments),
		})
	}
	return out
}

// sameAsSDK compares the results of Chat and the SDK for a body.
func sameAsSDK(t rapid.TB, body string) {
	t.Helper()
	client := (&wiretest.Canned{Body: body}).Client()
	p, err := openai.Protocol.New(wire.Config{Deployment: "m", Client: client})
	if err != nil {
		t.Fatal(err)
	}
	got, gotErr := p.Chat(context.Background(), new(wiretest.Hi()))
	want, wantErr := sdkReply(t, body)
	got.Message.State = nil // see TestStateGoesBack
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(assay.Response{}, "Lost")); d != "" {
		t.Errorf("%s\nresponse differs from the SDK's (-sdk +got):\n%s", body, d)
	}
	want1, got1 := assay.AsFault(wantErr), assay.AsFault(gotErr)
	if want1 != nil && got1 != nil && strings.HasPrefix(got1.Detail, want1.Detail) {
		got1.Detail = want1.Detail // without the quotation
	}
	if d := cmp.Diff(want1, got1); d != "" {
		t.Errorf("%s\nfault differs from the SDK's (-sdk +got):\n%s", body, d)
	}
}

type generator = *rapid.Generator[any]

// Most values in these documents have the type of OpenAI's API, but any value may have
// another type.
var (
	anyString = rapid.Map(rapid.String(), asAny)
	null      = rapid.Just[any](nil)
	scalars   = rapid.OneOf(
		anyString, rapid.Map(rapid.Int(), asAny), rapid.Map(rapid.Float64(), asAny),
		rapid.Map(rapid.Bool(), asAny),
		rapid.SampledFrom([]any{nil, "12", "1.5", "", " ", []any{}, map[string]any{}}))
	values = rapid.OneOf(
		scalars, rapid.Map(rapid.SliceOfN(scalars, 0, 3), asAny),
		rapid.Map(rapid.MapOfN(rapid.String(), scalars, 0, 3), asAny))
	strange = rapid.IntRange(0, 9)

	parts = list(object(map[string]generator{"type": rapid.Just[any]("text"), "text": anyString}))
	calls = list(object(map[string]generator{
		"id":   rapid.SampledFrom([]any{"a", "b", ""}),
		"type": rapid.Just[any]("function"),
		"function": object(map[string]generator{
			"name": rapid.Map(names, asAny),
			"arguments": rapid.OneOf(
				rapid.Map(objects, asAny),
				rapid.Map(objects, func(s string) any { return json.RawMessage(s) })),
		}),
	}))
	choices = list(object(map[string]generator{
		"index":         scalars,
		"finish_reason": rapid.SampledFrom([]any{"stop", "length", "tool_calls", "content_filter", nil}),
		"message": object(map[string]generator{
			"role":              rapid.Just[any]("assistant"),
			"content":           rapid.OneOf(anyString, null, parts),
			"refusal":           rapid.OneOf(anyString, null),
			"reasoning":         anyString,
			"reasoning_content": anyString,
			"tool_calls":        calls,
		}),
	}))
	replies = object(map[string]generator{
		"id":      scalars,
		"model":   anyString,
		"choices": choices,
		"usage": object(map[string]generator{
			"prompt_tokens":     rapid.Map(rapid.IntRange(-1, 1e12), asAny),
			"completion_tokens": rapid.Map(rapid.IntRange(-1, 100), asAny),
			"total_tokens":      rapid.Map(rapid.IntRange(-1, 200), asAny),
			"prompt_tokens_details": object(map[string]generator{
				"cached_tokens": rapid.Map(rapid.IntRange(-1, 1e3), asAny),
			}),
			"completion_tokens_details": object(map[string]generator{
				"reasoning_tokens": rapid.Map(rapid.IntRange(-1, 100), asAny),
			}),
		}),
	})
)

func asAny[T any](v T) any { return v }

// object generates objects with some of the fields.
func object(fields map[string]generator) generator {
	return rapid.Custom(func(t *rapid.T) any {
		doc := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			switch strange.Draw(t, name) {
			case 0:
			case 1:
				doc[name] = values.Draw(t, name)
			default:
				doc[name] = fields[name].Draw(t, name)
			}
		}
		return doc
	})
}

// list generates lists of up to three entries.
func list(entry generator) generator {
	return rapid.Custom(func(t *rapid.T) any {
		all := rapid.SliceOfN(entry, 0, 3).Draw(t, "list")
		if len(all) > 0 && strange.Draw(t, "strange") == 0 {
			all[len(all)-1] = values.Draw(t, "entry")
		}
		return all
	})
}

// TestDecodingMatchesSDK checks random completions.
func TestDecodingMatchesSDK(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		body, err := json.MarshalIndent(replies.Draw(t, "completion"), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		sameAsSDK(t, string(body))
	})
}

func FuzzCompletion(f *testing.F) {
	f.Add(hello)
	for _, body := range wiretest.Bodies(f, "../../../../../internal/model/protocol/openai/testdata/completions.txt") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		object := strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "{")
		if !json.Valid([]byte(body)) || !object || !isClear(body) {
			t.Skip("not a completion, or an ambiguous one")
		}
		sameAsSDK(t, body)
	})
}

// isClear reports whether a valid document is unambiguous: no name appears twice or in
// capitals, all text is Unicode, and it has no error.
func isClear(body string) bool {
	if strings.Contains(strings.ToLower(body), `rror"`) {
		return false
	}
	dec := json.NewDecoder(strings.NewReader(body))
	dec.UseNumber()
	return clearValue(dec)
}

func clearValue(dec *json.Decoder) bool {
	token, err := dec.Token()
	if err != nil {
		return false
	}
	clear := true
	switch token {
	case json.Delim('['):
		for dec.More() {
			clear = clearValue(dec) && clear
		}
		_, err = dec.Token()
	case json.Delim('{'):
		var seen []string
		for dec.More() {
			name, err := dec.Token()
			s, ok := name.(string)
			same := func(t string) bool { return strings.EqualFold(s, t) }
			unique := !slices.ContainsFunc(seen, same)
			clear = err == nil && ok && unique && isClearText(s) && isClearName(s) && clear
			seen = append(seen, s)
			clear = clearValue(dec) && clear
		}
		_, err = dec.Token()
	}
	s, ok := token.(string)
	return clear && err == nil && (!ok || isClearText(s))
}

func isClearText(s string) bool { return !strings.ContainsRune(s, '\uFFFD') }

func isClearName(s string) bool {
	for _, name := range []string{
		"model", "choices", "finish_reason", "message", "content", "refusal", "reasoning",
		"reasoning_content", "tool_calls", "id", "type", "function", "name", "arguments",
		"usage", "prompt_tokens", "completion_tokens", "prompt_tokens_details", "cached_tokens",
		"completion_tokens_details", "reasoning_tokens", "prompt_cache_hit_tokens",
		"reasoning_details", "extra_content",
	} {
		if s != name && strings.EqualFold(s, name) {
			return false
		}
	}
	return true
}
