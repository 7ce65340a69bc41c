package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/openai"
)

// sdkReply is what a body that answers [hi] means when the SDK decodes it.
func sdkReply(t rapid.TB, body string) (assay.Response, error) {
	t.Helper()
	var c sdk.ChatCompletion
	if err := json.Unmarshal([]byte(body), &c); err != nil {
		t.Fatalf("the SDK decodes %s: %v", body, err)
	}
	resp := assay.Response{
		ServedModel: sdkText(c.Model, c.JSON.Model),
		Usage: assay.Usage{
			InputTokens:  sdkCount(c.Usage.PromptTokens, c.Usage.JSON.PromptTokens),
			OutputTokens: sdkCount(c.Usage.CompletionTokens, c.Usage.JSON.CompletionTokens),
		},
	}
	malformed := func(detail string) error {
		return &assay.Fault{Kind: assay.Malformed, Status: 200, Detail: detail}
	}
	if len(c.Choices) == 0 {
		return resp, malformed("the completion has no choices")
	}
	choice := c.Choices[0]
	if choice.FinishReason == "content_filter" {
		return resp, &assay.Fault{Kind: assay.ContentFilter, Status: 200, Detail: "the endpoint's filter cut the reply off"}
	}
	m := assay.Message{Role: assay.Assistant, Content: sdkContent(choice.Message), Calls: sdkCalls(choice.Message.ToolCalls)}
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var s string
		_ = json.Unmarshal([]byte(choice.Message.JSON.ExtraFields[name].Raw()), &s)
		if m.Reasoning = s; s != "" {
			break
		}
	}
	if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 {
		switch refusal := sdkText(choice.Message.Refusal, choice.Message.JSON.Refusal); {
		case m.Reasoning != "":
			m.Content = m.Reasoning
		case refusal != "":
			m.Content = refusal
		}
	}
	if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 && choice.FinishReason != "length" {
		return resp, malformed("empty reply")
	}
	resp.Message = m
	return resp, nil
}

// sdkText is a text of the SDK's. A number in its place keeps its spelling,
// which the SDK changes.
func sdkText(s string, f respjson.Field) string {
	var n json.Number
	if raw := f.Raw(); !strings.HasPrefix(raw, `"`) && json.Unmarshal([]byte(raw), &n) == nil {
		return n.String()
	}
	return s
}

// sdkCount is a count of the SDK's, for which true is one.
func sdkCount(n int64, f respjson.Field) int {
	if f.Raw() == "true" {
		return 0
	}
	return int(min(max(n, 0), math.MaxInt32))
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

// sameAsSDK compares what Chat and the SDK make of a body.
func sameAsSDK(t rapid.TB, body string) {
	t.Helper()
	p, err := openai.New(openai.Config{Deployment: "m", Client: &http.Client{Transport: canned{200, headers(), body}}})
	if err != nil {
		t.Fatal(err)
	}
	got, gotErr := p.Chat(context.Background(), hi())
	want, wantErr := sdkReply(t, body)
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s\nresponse differs from the SDK's (-sdk +got):\n%s", body, d)
	}
	if d := cmp.Diff(assay.AsFault(wantErr), assay.AsFault(gotErr)); d != "" {
		t.Errorf("%s\nfault differs from the SDK's (-sdk +got):\n%s", body, d)
	}
}

// Most values in these documents have the type that OpenAI gives them; any may
// have another.
var (
	scalars = rapid.OneOf(
		rapid.Map(rapid.String(), asAny), rapid.Map(rapid.Int(), asAny), rapid.Map(rapid.Float64(), asAny),
		rapid.Map(rapid.Bool(), asAny), rapid.SampledFrom([]any{nil, "12", "1.5", "", " ", []any{}, map[string]any{}}))
	values  = rapid.OneOf(scalars, rapid.Map(rapid.SliceOfN(scalars, 0, 3), asAny), rapid.Map(rapid.MapOfN(rapid.String(), scalars, 0, 3), asAny))
	strange = rapid.IntRange(0, 9)
	replies = object(map[string]*rapid.Generator[any]{
		"id":    scalars,
		"model": rapid.Map(rapid.String(), asAny),
		"choices": list(object(map[string]*rapid.Generator[any]{
			"index":         scalars,
			"finish_reason": rapid.SampledFrom([]any{"stop", "length", "tool_calls", "content_filter", nil}),
			"message": object(map[string]*rapid.Generator[any]{
				"role": rapid.Just[any]("assistant"),
				"content": rapid.OneOf(rapid.Map(rapid.String(), asAny), rapid.Just[any](nil),
					list(object(map[string]*rapid.Generator[any]{"type": rapid.Just[any]("text"), "text": rapid.Map(rapid.String(), asAny)}))),
				"refusal":           rapid.OneOf(rapid.Map(rapid.String(), asAny), rapid.Just[any](nil)),
				"reasoning":         rapid.Map(rapid.String(), asAny),
				"reasoning_content": rapid.Map(rapid.String(), asAny),
				"tool_calls": list(object(map[string]*rapid.Generator[any]{
					"id":   rapid.SampledFrom([]any{"a", "b", ""}),
					"type": rapid.Just[any]("function"),
					"function": object(map[string]*rapid.Generator[any]{
						"name":      rapid.Map(names, asAny),
						"arguments": rapid.OneOf(rapid.Map(objects, asAny), rapid.Map(objects, func(s string) any { return json.RawMessage(s) })),
					}),
				})),
			}),
		})),
		"usage": object(map[string]*rapid.Generator[any]{
			"prompt_tokens": rapid.Map(rapid.IntRange(-1, 1e12), asAny), "completion_tokens": rapid.Map(rapid.IntRange(-1, 100), asAny),
		}),
	})
)

func asAny[T any](v T) any { return v }

// object is an object that has some of the fields.
func object(fields map[string]*rapid.Generator[any]) *rapid.Generator[any] {
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

func list(entry *rapid.Generator[any]) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		all := rapid.SliceOfN(entry, 0, 3).Draw(t, "list")
		if len(all) > 0 && strange.Draw(t, "strange") == 0 {
			all[len(all)-1] = values.Draw(t, "entry")
		}
		return all
	})
}

// What is read of a completion is what the SDK reads, whatever is in it.
func TestDecodingIsTheSDKs(t *testing.T) {
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
	for _, test := range oddCompletions {
		f.Add(test.body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if !json.Valid([]byte(body)) || !strings.HasPrefix(strings.TrimLeft(body, " \t\r\n"), "{") || !isClear(body) {
			t.Skip("no completion, or one that can be read in two ways")
		}
		sameAsSDK(t, body)
	})
}

// isClear reports whether a valid document can be read in one way alone: it has
// no name twice or in capitals, no text that is not Unicode, and no error.
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
			clear = err == nil && ok && !slices.ContainsFunc(seen, same) && isClearText(s) && isClearName(s) && clear
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
		"model", "choices", "finish_reason", "message", "content", "refusal", "reasoning", "reasoning_content",
		"tool_calls", "id", "type", "function", "name", "arguments", "usage", "prompt_tokens", "completion_tokens",
	} {
		if s != name && strings.EqualFold(s, name) {
			return false
		}
	}
	return true
}

// oddCompletions have values of other types than OpenAI's. Which of them count
// as replies is a decision: an endpoint that spells one so does it every time.
var oddCompletions = []struct {
	name, body string
	want       assay.Response
	fault      string
}{
	{"NumberAsContent", `{"choices":[{"message":{"content":1.50}}]}`, said("1.50"), ""},
	{"BooleanAsContent", `{"choices":[{"message":{"content":true}}]}`, said("true"), ""},
	{"ObjectAsContent", `{"choices":[{"message":{"content":{"a": 1}}}]}`, said(`{"a": 1}`), ""},
	{"OddParts", `{"choices":[{"message":{"content":[1, 2]}}]}`, said(`[1, 2]`), ""},
	{"PartsWithoutText", `{"choices":[{"message":{"content":[{"type":"image"},{"text":"a"},null]}}]}`, said("a"), ""},
	{"NumberAsRefusal", `{"choices":[{"message":{"refusal":1}}]}`, said("1"), ""},
	{
		"NumberAsReasoning", `{"choices":[{"message":{"content":"4","reasoning":5,"reasoning_content":"2+2"}}]}`,
		assay.Response{Message: assay.Message{Role: assay.Assistant, Content: "4", Reasoning: "2+2"}},
		"",
	},
	{"TextAsMessage", `{"choices":[{"message":"hello"}]}`, assay.Response{}, "empty reply"},
	{"TextAsMessageOutOfTokens", `{"choices":[{"message":"hello","finish_reason":"length"}]}`, said(""), ""},
	{"ObjectAsChoices", `{"model":"m","choices":{"0":{}}}`, assay.Response{ServedModel: "m"}, "the completion has no choices"},
	{"NumberAsChoice", `{"choices":[{"message":{"content":"a"}},5]}`, assay.Response{}, "the completion has no choices"},
	{"NullAsChoice", `{"choices":[null]}`, assay.Response{}, "empty reply"},
	{"TextAsUsage", `{"usage":"free","choices":[{"message":{"content":"a"}}]}`, said("a"), ""},
	{"OddCounts", `{"usage":{"prompt_tokens":"11","completion_tokens":2.9},"choices":[{"message":{"content":"a"}}]}`, cost(11, 2), ""},
	{"HugeCounts", `{"usage":{"prompt_tokens":1e99,"completion_tokens":-1e99},"choices":[{"message":{"content":"a"}}]}`, cost(math.MaxInt32, 0), ""},
	{"NoCounts", `{"usage":{"prompt_tokens":true,"completion_tokens":"NaN"},"choices":[{"message":{"content":"a"}}]}`, said("a"), ""},
	{
		"NumberAsModel", `{"model":4,"choices":[{"message":{"content":"a"}}]}`,
		assay.Response{ServedModel: "4", Message: assay.Message{Role: assay.Assistant, Content: "a"}},
		"",
	},
	{"ObjectAsCalls", `{"choices":[{"message":{"content":"a","tool_calls":{"id":"x"}}}]}`, said("a"), ""},
	{"NumberAsCall", `{"choices":[{"message":{"content":"a","tool_calls":[{"id":"x"},5]}}]}`, said("a"), ""},
	{"NullAsCall", `{"choices":[{"message":{"tool_calls":[null]}}]}`, called(assay.ToolCall{ID: "call_1_0"}), ""},
	{"TextAsFunction", `{"choices":[{"message":{"tool_calls":[{"id":"x","function":"read"}]}}]}`, called(assay.ToolCall{ID: "x"}), ""},
	{
		"NumbersInACall", `{"choices":[{"message":{"tool_calls":[{"id":7,"type":1,"function":{"name":8,"arguments":[ 9 ]}}]}}]}`,
		called(assay.ToolCall{ID: "7", Name: "8", Arguments: "[ 9 ]"}), "",
	},
}

func said(content string) assay.Response {
	return assay.Response{Message: assay.Message{Role: assay.Assistant, Content: content}}
}

func cost(input, output int) assay.Response {
	r := said("a")
	r.Usage = assay.Usage{InputTokens: input, OutputTokens: output}
	return r
}

func called(calls ...assay.ToolCall) assay.Response {
	return assay.Response{Message: assay.Message{Role: assay.Assistant, Calls: calls}}
}

func TestOddCompletions(t *testing.T) {
	t.Parallel()
	for _, test := range oddCompletions {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, p := record(t, test.body, openai.Config{})
			got, err := p.Chat(t.Context(), hi())
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("response differs (-want +got):\n%s", d)
			}
			var detail string
			if f := assay.AsFault(err); f != nil {
				detail = f.Detail
			}
			if detail != test.fault {
				t.Errorf("fault %q, want %q", detail, test.fault)
			}
			sameAsSDK(t, test.body)
		})
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	call := func(id, args string) assay.ToolCall {
		return assay.ToolCall{ID: id, Name: "read", Arguments: args}
	}
	tests := []struct {
		name   string
		choice string
		want   assay.Message
	}{
		{
			"ParallelCalls", `{"finish_reason":"tool_calls","message":{"content":null,"tool_calls":[
			{"id":"x","type":"function","function":{"name":"read","arguments":"{\"p\" : 1 }"}},
			{"id":"y","type":"function","function":{"name":"read","arguments":"not json"}}]}}`,
			assay.Message{Calls: []assay.ToolCall{call("x", `{"p" : 1 }`), call("y", "not json")}},
		},
		{
			"CallsWithoutID", `{"message":{"content":"","tool_calls":[
			{"function":{"name":"read","arguments":"{}"}},{"id":"","function":{"name":"read","arguments":""}}]}}`,
			assay.Message{Calls: []assay.ToolCall{call("call_1_0", "{}"), call("call_1_1", "")}},
		},
		{
			"CallsWithOneID", `{"message":{"tool_calls":[
			{"id":"x","function":{"name":"read","arguments":"{}"}},{"id":"x","function":{"name":"read","arguments":"{}"}}]}}`,
			assay.Message{Calls: []assay.ToolCall{call("x", "{}"), call("call_1_1", "{}")}},
		},
		{
			"ArgumentsAsObject", `{"message":{"tool_calls":[{"id":"x","function":{"name":"read","arguments":{"p":  1}}}]}}`,
			assay.Message{Calls: []assay.ToolCall{call("x", `{"p":  1}`)}},
		},
		{
			"Reasoning", `{"message":{"content":"4","reasoning_content":"2+2"}}`,
			assay.Message{Content: "4", Reasoning: "2+2"},
		},
		{
			"ReasoningOfOtherGateways", `{"message":{"content":"4","reasoning":"2+2"}}`,
			assay.Message{Content: "4", Reasoning: "2+2"},
		},
		{
			"ReasoningOnly", `{"message":{"content":"","reasoning_content":"the answer is 4"}}`,
			assay.Message{Content: "the answer is 4", Reasoning: "the answer is 4"},
		},
		{
			"ReasoningBesideCalls", `{"message":{"content":null,"reasoning_content":"hm","tool_calls":[{"id":"x","function":{"name":"read","arguments":"{}"}}]}}`,
			assay.Message{Reasoning: "hm", Calls: []assay.ToolCall{call("x", "{}")}},
		},
		{
			"ReasoningIsNoText", `{"message":{"content":"4","reasoning_content":{"a":1}}}`,
			assay.Message{Content: "4"},
		},
		{
			"TalkOfErrors", `{"error":null,"message":{"content":"say \"error\"","name":"error","error":"none"}}`,
			assay.Message{Content: `say "error"`},
		},
		{
			"OutOfTokens", `{"finish_reason":"length","message":{"content":null}}`,
			assay.Message{},
		},
		{
			"Refusal", `{"message":{"content":null,"refusal":"I will not"}}`,
			assay.Message{Content: "I will not"},
		},
		{
			"Parts", `{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`,
			assay.Message{Content: "ab"},
		},
		{
			"Verbatim", `{"message":{"content":"  <b>\u0000 \u00e4\ud83d\ude00\n"}}`,
			assay.Message{Content: "  <b>\x00 ä😀\n"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, p := record(t, `{"model":"m","choices":[`+test.choice+`]}`, openai.Config{})
			resp, err := p.Chat(t.Context(), hi())
			if err != nil {
				t.Fatal(err)
			}
			test.want.Role = assay.Assistant
			if d := cmp.Diff(test.want, resp.Message); d != "" {
				t.Errorf("message differs (-want +got):\n%s", d)
			}
		})
	}
}
