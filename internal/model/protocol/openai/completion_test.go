package openai_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// oddCompletions have values of other types than in OpenAI's API. It is a decision which of
// them count as replies, because an endpoint that sends one sends it every time.
var oddCompletions = []struct {
	name, body string
	want       assay.Response
	fault      string
}{
	{"NumberAsContent", `{"choices":[{"message":{"content":1.50}}]}`, replied("1.50"), ""},
	{"BooleanAsContent", `{"choices":[{"message":{"content":true}}]}`, replied("true"), ""},
	{"ObjectAsContent", `{"choices":[{"message":{"content":{"a": 1}}}]}`, replied(`{"a": 1}`), ""},
	{"OddParts", `{"choices":[{"message":{"content":[1, 2]}}]}`, replied(`[1, 2]`), ""},
	{
		"PartsWithoutText",
		`{"choices":[{"message":{"content":[{"type":"image"},{"text":"a"},null]}}]}`, replied("a"),
		"",
	},
	{"NumberAsRefusal", `{"choices":[{"message":{"refusal":1}}]}`, replied("1"), ""},
	{
		"NumberAsReasoning",
		`{"choices":[{"message":{"content":"4","reasoning":5,"reasoning_content":"2+2"}}]}`,
		assay.Response{
			Message: assay.Message{Role: assay.Assistant, Content: "4", Reasoning: "2+2"},
		},
		"",
	},
	{"TextAsMessage", `{"choices":[{"message":"hello"}]}`, assay.Response{}, "empty reply"},
	{
		"TextAsMessageOutOfTokens", `{"choices":[{"message":"hello","finish_reason":"length"}]}`,
		assay.Response{Message: assay.Message{Role: assay.Assistant}, Finish: "length"},
		"",
	},
	{
		"ObjectAsChoices", `{"model":"m","choices":{"0":{}}}`,
		assay.Response{ServedModel: "m"},
		`the completion has no choices: {"model":"m","choices":{"0":{}}}`,
	},
	{
		"NumberAsChoice", `{"choices":[{"message":{"content":"a"}},5]}`,
		assay.Response{},
		`the completion has no choices: {"choices":[{"message":{"content":"a"}},5]}`,
	},
	{"NullAsChoice", `{"choices":[null]}`, assay.Response{}, "empty reply"},
	{
		"ReasoningOnly", `{"choices":[{"message":{"reasoning_content":"the answer is 4"}}]}`,
		assay.Response{},
		"empty reply",
	},
	{"TextAsUsage", `{"usage":"free","choices":[{"message":{"content":"a"}}]}`, replied("a"), ""},
	{
		"OddCounts",
		`{"usage":{"prompt_tokens":"11","completion_tokens":2.9},"choices":[{"message":{"content":"a"}}]}`,
		replyWithUsage(11, 2), "",
	},
	{
		"HugeCounts",
		`{"usage":{"prompt_tokens":1e99,"completion_tokens":-1e99},"choices":[{"message":{"content":"a"}}]}`,
		replyWithUsage(math.MaxInt32, 0), "",
	},
	{
		"NoCounts",
		`{"usage":{"prompt_tokens":true,"completion_tokens":"NaN"},"choices":[{"message":{"content":"a"}}]}`,
		replied("a"), "",
	},
	{
		"NumberAsModel", `{"model":4,"choices":[{"message":{"content":"a"}}]}`,
		assay.Response{
			ServedModel: "4", Message: assay.Message{Role: assay.Assistant, Content: "a"},
		},
		"",
	},
	{
		"ObjectAsCalls", `{"choices":[{"message":{"content":"a","tool_calls":{"id":"x"}}}]}`,
		replied("a"), "",
	},
	{
		"NumberAsCall", `{"choices":[{"message":{"content":"a","tool_calls":[{"id":"x"},5]}}]}`,
		replied("a"), "",
	},
	{
		"NullAsCall", `{"choices":[{"message":{"tool_calls":[null]}}]}`,
		replyWithCalls(assay.ToolCall{ID: "call_1_0"}), "",
	},
	{
		"TextAsFunction", `{"choices":[{"message":{"tool_calls":[{"id":"x","function":"read"}]}}]}`,
		replyWithCalls(assay.ToolCall{ID: "x"}), "",
	},
	{
		"NumbersInACall",
		`{"choices":[{"message":{"tool_calls":[{"id":7,"type":1,"function":{"name":8,"arguments":[ 9 ]}}]}}]}`,
		replyWithCalls(assay.ToolCall{ID: "7", Name: "8", Arguments: "[ 9 ]"}), "",
	},
}

func replied(content string) assay.Response {
	return assay.Response{Message: assay.Message{Role: assay.Assistant, Content: content}}
}

func replyWithUsage(input, output int) assay.Response {
	r := replied("a")
	r.Usage = assay.Usage{InputTokens: input, OutputTokens: output}
	return r
}

func replyWithCalls(calls ...assay.ToolCall) assay.Response {
	return assay.Response{Message: assay.Message{Role: assay.Assistant, Calls: calls}}
}

func TestOddCompletions(t *testing.T) {
	t.Parallel()
	for _, test := range oddCompletions {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, p := record(t, test.body, wire.Config{})
			got, err := p.Chat(t.Context(), new(hi()))
			if d := cmp.Diff(&test.want, got); d != "" {
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
			"ArgumentsAsObject",
			`{"message":{"tool_calls":[{"id":"x","function":{"name":"read","arguments":{"p":  1}}}]}}`,
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
			"ReasoningIsNotText", `{"message":{"content":"4","reasoning_content":{"a":1}}}`,
			assay.Message{Content: "4"},
		},
		{
			"TalkOfErrors",
			`{"error":null,"message":{"content":"say \"error\"","name":"error","error":"none"}}`,
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
			"Parts",
			`{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}`,
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
			_, p := record(t, `{"model":"m","choices":[`+test.choice+`]}`, wire.Config{})
			resp, err := p.Chat(t.Context(), new(hi()))
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
