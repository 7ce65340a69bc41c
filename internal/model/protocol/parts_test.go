package protocol_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
)

// TestAnswersAreTextsOrParts checks that the answer of a tool may be a text or a list of parts, as
// the frameworks of agents send it.
func TestAnswersAreTextsOrParts(t *testing.T) {
	t.Parallel()
	bodies := map[string]string{
		"chat": `{"model":"m","messages":[{"role":"user","content":"go"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
				"function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"c1","content":ANSWER}]}`,
		"responses": `{"model":"m","input":[{"role":"user","content":"go"},
			{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"c1","output":ANSWER}]}`,
		"messages": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"},
			{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":ANSWER}]}]}`,
	}
	part := map[string]string{"chat": "text", "responses": "input_text", "messages": "text"}
	dialects := protocol.Dialects("")
	for name, dialect := range map[string]gateway.Dialect{
		"chat": dialects[0], "responses": dialects[2], "messages": dialects[3],
	} {
		for _, answer := range []string{
			`"it is done"`, `[{"type":"` + part[name] + `","text":"it is done"}]`,
		} {
			p, refusal := dialect.Decode([]byte(strings.Replace(bodies[name], "ANSWER", answer, 1)))
			if refusal != nil {
				t.Errorf("%s: %s is refused: %+v", name, answer, refusal)
				continue
			}
			last := p.Messages[len(p.Messages)-1]
			if last.Content != "it is done" || last.CallID != "c1" {
				t.Errorf("%s: %s is read as %+v", name, answer, last)
			}
		}
	}
}

// TestSystemBetweenMessages checks that Messages may have the rules of a system between others.
func TestSystemBetweenMessages(t *testing.T) {
	t.Parallel()
	p, refusal := protocol.Dialects("")[3].Decode([]byte(`{"model":"m","max_tokens":9,
		"system":"Be kind.","messages":[{"role":"user","content":"go"},
			{"role":"system","content":[{"type":"text","text":"Be brief."}]}]}`))
	if refusal != nil {
		t.Fatalf("refused: %s", refusal.Message)
	}
	want := []assay.Message{
		{Role: assay.System, Content: "Be kind."},
		{Role: assay.User, Content: "go"},
		{Role: assay.System, Content: "Be brief."},
	}
	if diff := cmp.Diff(want, p.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestParametersInGeminisForm checks that the parameters of functions reach the model in both
// forms, because Google's ADK sends the older one.
func TestParametersInGeminisForm(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		`"parametersJsonSchema":{"properties":{"type":{"type":"string"}},"type":"object"}`,
		`"parameters":{"type":"OBJECT","properties":{"type":{"type":"STRING"}}}`,
	} {
		p, refusal := protocol.Dialects("")[4].Decode([]byte(`{"contents":[{"role":"user",
			"parts":[{"text":"go"}]}],"tools":[{"functionDeclarations":[{"name":"f",` + field + `}]}]}`))
		if refusal != nil {
			t.Fatalf("refused: %s", refusal.Message)
		}
		const want = `{"properties":{"type":{"type":"string"}},"type":"object"}`
		if got := string(p.Functions[0].Parameters); got != want {
			t.Errorf("%s: parameters %s, want %s", field, got, want)
		}
	}
}
