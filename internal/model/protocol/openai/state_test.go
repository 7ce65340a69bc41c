package openai_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// oneCall is the call of the replies in these tests.
const oneCall = `"tool_calls":[{"id":"x","type":"function",` +
	`"function":{"name":"read","arguments":"{}"}}]`

// TestStateGoesBack checks which parts of a reply the next request has. It has to be the same JSON,
// including the spelling of numbers and the order of names.
func TestStateGoesBack(t *testing.T) {
	t.Parallel()
	const signed = `"tool_calls":[{"id":"x","type":"function","function":{"name":"read",` +
		`"arguments":"{}"},"extra_content":{"google":{"thought_signature":"a+b/=="}}},` +
		`{"id":"y","type":"function","function":{"name":"read","arguments":"{}"}}]`
	const text, empty = `"reasoning_content":"hm",`, `"reasoning_content":"",`
	const details = `"reasoning_details":[{"z":1.50,"a":null,"text":"I <look>"},` +
		`{"type":"reasoning.encrypted","data":"00"}]`
	for _, test := range []struct{ name, message, back, reasoning string }{
		{"Content", text + oneCall, text + oneCall, "hm"},
		{"EmptyContent", empty + oneCall, empty + oneCall, ""},
		{"Plain", `"reasoning":"hm",` + oneCall, `"reasoning":"hm",` + oneCall, "hm"},
		{"Null", `"reasoning_content":null,"reasoning":null,` + oneCall, oneCall, ""},
		{"Details", `"reasoning":"x",` + details + `,` + oneCall, details + `,` + oneCall, "x"},
		{"DetailsOnly", details + `,` + oneCall, details + `,` + oneCall, "I <look>"},
		{"Signature", signed, signed, ""},
		{"WithoutCall", `"reasoning_content":"hm","reasoning":"hm"`, "", "hm"},
		{"DetailsWithoutCall", details, details, "I <look>"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			reply := `{"choices":[{"message":{"content":"c",` + test.message + `}}]}`
			rec, p := record(t, reply, wire.Config{})
			resp, err := p.Chat(t.Context(), new(wiretest.Hi()))
			if err != nil {
				t.Fatal(err)
			}
			if resp.Message.Reasoning != test.reasoning || resp.Message.Content != "c" {
				t.Errorf("message = %+v, want the reasoning %q", resp.Message, test.reasoning)
			}
			req := wiretest.Hi()
			req.Messages = append(req.Messages, resp.Message)
			if _, err := p.Chat(t.Context(), &req); err != nil {
				t.Fatal(err)
			}
			want := `{"role":"assistant","content":"c"`
			if test.back != "" {
				want += "," + test.back
			}
			want += "}"
			_, got, _ := strings.Cut(string(rec.rawBody), `"content":"hi"},`)
			if !strings.HasPrefix(got, want) {
				t.Errorf("sent back %s, want %s", got, want)
			}
		})
	}
}

// TestThinkingPartsGoBack checks that a content with thinking, as Mistral's models have it, goes
// back as it came, and that only its texts are the answer.
func TestThinkingPartsGoBack(t *testing.T) {
	t.Parallel()
	const thought = `{"type":"thinking","thinking":[{"type":"text","text":"hm "},` +
		`{"type":"reference","reference_ids":[1.50]},{"type":"text","text":"<so>"}],"closed":true}`
	const texts = `{"type":"text","text":"I "},{"text":"look","type":"text"}`
	for _, test := range []struct{ name, parts, content, reasoning string }{
		{"ThoughtAndText", "[" + thought + "," + texts + "]", "I look", "hm <so>"},
		{"ThoughtOnly", "[" + thought + "]", "", "hm <so>"},
		{"TwoThoughts", "[" + thought + "," + texts + "," + thought + "]", "I look", "hm <so>hm <so>"},
		{"PlainThought", `[{"type":"thinking","thinking":"hm"},` + texts + "]", "I look", "hm"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, calls := range []string{"", "," + oneCall} {
				if test.content+calls == "" {
					continue // an empty reply
				}
				reply := `{"choices":[{"message":{"content":` + test.parts + calls + `}}]}`
				rec, p := record(t, reply, wire.Config{})
				resp, err := p.Chat(t.Context(), new(wiretest.Hi()))
				if err != nil {
					t.Fatal(err)
				}
				m := resp.Message
				if m.Reasoning != test.reasoning || m.Content != test.content {
					t.Errorf("message = %+v, want the content %q", m, test.content)
				}
				req := wiretest.Hi()
				req.Messages = append(req.Messages, m)
				if _, err := p.Chat(t.Context(), &req); err != nil {
					t.Fatal(err)
				}
				want := `{"role":"assistant","content":` + test.parts + calls + "}"
				if got := string(rec.rawBody); !strings.Contains(got, want) {
					t.Errorf("sent back %s, want %s", got, want)
				}
			}
		})
	}
}

// TestRefusedStateIsLeftOut checks that an endpoint that does not take back its own state gets the
// conversation without it.
func TestRefusedStateIsLeftOut(t *testing.T) {
	t.Parallel()
	const refusal = `{"error":{"message":"'messages.1' : for 'role:assistant' the following must ` +
		`be satisfied[('messages.1' : property 'reasoning_content' is unsupported)]"}}`
	var sent []string
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent = append(sent, string(body))
		if strings.Contains(string(body), "reasoning_content") {
			writeJSON(w, 400, refusal)
			return
		}
		writeJSON(w, 200, `{"choices":[{"message":{"reasoning_content":"hm",`+oneCall+`}}]}`)
	}), wire.Config{})
	req := wiretest.Hi()
	for range 3 {
		resp, err := p.Chat(t.Context(), &req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, resp.Message,
			assay.Message{Role: assay.ToolRole, CallID: "x"})
	}
	got := make([]bool, len(sent))
	for i, body := range sent {
		got[i] = strings.Contains(body, "reasoning_content")
	}
	if d := cmp.Diff([]bool{false, true, false, false}, got); d != "" {
		t.Errorf("requests with reasoning differ (-want +got):\n%s", d)
	}
}
