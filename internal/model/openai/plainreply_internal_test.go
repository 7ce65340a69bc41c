package openai

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const ordinary = `{"id":"1","object":"chat.completion","created":1,"model":"m",
	"choices":[{"index":0,"finish_reason":"tool_calls","logprobs":null,"message":{
	"role":"assistant","content":"a \"b\" é \u00e9","refusal":null,"reasoning_content":"hm",
	"tool_calls":[{"id":"c","type":"function","extra_content":{"a": [1, 2]},
	"function":{"name":"f","arguments":"{\"x\":1}"}}]}}],
	"usage":{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010,
	"cached_tokens":5,"cache_creation_input_tokens":1,
	"prompt_cache_hit_tokens":5,"prompt_cache_miss_tokens":995,
	"prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":1},
	"completion_tokens_details":{"reasoning_tokens":3}},
	"service_tier":"default","system_fingerprint":"x"}`

// agrees checks that what parsePlain reads is what encoding/json reads.
func agrees(t rapid.TB, body string) (plain bool) {
	t.Helper()
	got, ok := parsePlain([]byte(body))
	if !ok {
		return false
	}
	want := new(completion)
	if err := json.Unmarshal([]byte(body), want); err != nil {
		t.Fatalf("parsePlain accepts %q: %v", body, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is read as\n%+v, want\n%+v", body, got, want)
	}
	return true
}

func TestPlainReplyIsReadLikeJSON(t *testing.T) {
	t.Parallel()
	if !agrees(t, ordinary) {
		t.Error("an ordinary reply is out of the ordinary")
	}
	for _, body := range []string{
		`{}`, ` { } `, `{"choices":[]}`, `{"choices":null,"usage":null,"model":null}`,
		`{"choices":[null]}`, `{"choices":[{}]}`, `{"choices":[{"message":null,"error":null}]}`,
		`{"choices":[{"message":{"tool_calls":[],"content":""}}]}`,
		`{"usage":{"prompt_tokens":0}}`, `{"usage":{"completion_tokens_details":null}}`,
		`{"usage":{"completion_tokens_details":{"reasoning_tokens":null}}}`,
		`{"usage":{"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0}}}`,
		`{"x":{"y":[1,{"z":"}]"}]},"model":"m"}`,
	} {
		if !agrees(t, body) {
			t.Errorf("%s is out of the ordinary", body)
		}
	}
	for _, body := range []string{
		``, `null`, `[]`, `{`, `{"model":"m"`, `{"model":"m"}x`, `{"model":"a","model":"b"}`,
		`{"Model":"m"}`, `{"model":1}`, `{"usage":{"prompt_tokens":01}}`,
		`{"usage":{"prompt_tokens":1.5}}`, `{"usage":{"prompt_tokens":-1}}`, `{"model":"m",}`,
		`{"choices":[,]}`, `{"choices":[{}{}]}`, `{"x":nul,"model":"m"}`, `{"x":,"model":"m"}`,
		`{"x":[1,],"model":"m"}`, `{"x":"\q"}`, `{"model":"\q"}`, `{"x" "y"}`, "{\"model\":\"\x01\"}",
	} {
		if agrees(t, body) {
			t.Errorf("%s is an ordinary reply", body)
		}
	}
	if c, ok := parsePlain([]byte("{\"model\":\"\xff\"}")); ok && c.Model != "\uFFFD" {
		t.Errorf("invalid UTF-8 is read as %q", c.Model)
	}
}

// TestPlainReplyProperty changes parts of a reply.
func TestPlainReplyProperty(t *testing.T) {
	t.Parallel()
	parts := []string{
		`"`, `\`, `{`, `}`, `[`, `]`, `,`, `:`, `null`, `1`, `-`, `1e3`, ` `, "\n", "\x00", "\xc3", "é",
		`"model":"x",`, `"Model":"x",`, `"content":"y",`, `"usage":{}`, `"tool_calls":null,`, `true`,
	}
	plain := 0
	rapid.Check(t, func(t *rapid.T) {
		body := ordinary
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			from := rapid.IntRange(0, len(body)).Draw(t, "from")
			to := min(len(body), from+rapid.IntRange(0, 4).Draw(t, "length"))
			body = body[:from] + rapid.SampledFrom(append(parts, "")).Draw(t, "part") + body[to:]
		}
		if agrees(t, body) {
			plain++
		}
	})
	if plain == 0 {
		t.Error("no reply was ordinary")
	}
}

func FuzzPlainReply(f *testing.F) {
	f.Add(ordinary)
	f.Add(strings.ReplaceAll(ordinary, "null", `"\ud800"`))
	f.Fuzz(func(t *testing.T, body string) { agrees(t, body) })
}

func BenchmarkParseCompletion(b *testing.B) {
	for b.Loop() {
		if _, err := parseCompletion([]byte(ordinary)); err != nil {
			b.Fatal(err)
		}
	}
}
