package responses_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/responses"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// TestMain keeps the tests away from the machine's proxy.
func TestMain(m *testing.M) {
	if err := os.Setenv("NO_PROXY", "*"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// serve starts an endpoint and returns a provider for it.
func serve(
	t testing.TB, replies ...string,
) (*wiretest.Endpoint, *wire.Provider) {
	t.Helper()
	e := &wiretest.Endpoint{Replies: replies, Status: status}
	p, err := responses.Protocol.New(e.Serve(t, "/v1", "gpt-x"))
	if err != nil {
		t.Fatal(err)
	}
	return e, p
}

// status returns the status of a reply.
func status(reply string) int {
	if strings.HasPrefix(reply, `{"error":{`) {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

const hello = `{"id":"resp_1","object":"response","status":"completed","error":null,
"incomplete_details":null,"model":"gpt-x-2026","output":[{"type":"message","id":"msg_1",
"role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello",
"annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":5}}`

const (
	thought = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"},` +
		`{"type":"summary_text","text":"so"}],"encrypted_content":"gAAA+/<1>"}`
	call = `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"x\": 1}",` +
		`"call_id":"c1","name":"read"}`
	odd = `{"id":"fc_2","type":"function_call","arguments":{"x":2},"call_id":"c1","name":"re ad"}`
)

func reply(status string, items ...string) string {
	return `{"status":` + status + `,"model":"gpt-x","output":[` + strings.Join(items, ",") + `]}`
}

// next asks for another turn after reply, and returns the items that are sent for that reply.
func next(t *testing.T, reply string, adapt func(*assay.Message)) []any {
	t.Helper()
	e, p := serve(t, reply, hello)
	req := wiretest.Hi()
	resp := wiretest.Chat(t, p, req)
	req.Messages = append(req.Messages, resp.Message)
	adapt(&req.Messages[1])
	for _, c := range resp.Message.Calls {
		m := assay.Message{Role: assay.ToolRole, CallID: c.ID, Content: "1"}
		req.Messages = append(req.Messages, m)
	}
	wiretest.Chat(t, p, req)
	input := e.Last()["input"].([]any)
	return input[1 : len(input)-len(resp.Message.Calls)]
}

func items(t *testing.T, all ...string) []any {
	t.Helper()
	return wiretest.Object(t, `{"x":[`+strings.Join(all, ",")+`]}`)["x"].([]any)
}

func TestReplyGoesBackAsItCame(t *testing.T) {
	t.Parallel()
	same := func(*assay.Message) {}
	plain := `{"type":"function_call","call_id":"c1","name":"read","arguments":"{\"x\": 1}"}`
	sayWell := `{"type":"message","id":"msg_1","role":"assistant","phase":"commentary",` +
		`"content":[{"type":"output_text","text":"well","annotations":[]}]}`
	tests := []struct {
		name, reply string
		adapt       func(*assay.Message)
		want        []any
	}{
		{"Reasoning", reply(`"completed"`, thought, call), same, items(t, thought, call)},
		{"Phase", reply(`"completed"`, sayWell, call), same, items(t, sayWell, call)},
		{"NoState", reply(`"completed"`, call), same, items(t, plain)},
		{
			"OddCall", reply(`"completed"`, thought, call, odd), same, items(t, thought, call,
				`{"type":"function_call","call_id":"call_1_1","name":"re_ad",`+
					`"arguments":"{\"x\":2}"}`),
		},
		{
			"OtherEndpoint", reply(`"completed"`, thought, call),
			func(m *assay.Message) { m.State.Origin = "responses elsewhere.example" },
			items(t, plain),
		},
		{
			"DamagedState", reply(`"completed"`, thought, call),
			func(m *assay.Message) { m.State.Data = []byte(`{}`) },
			items(t, plain),
		},
		{
			"CallsOutsideOfState", reply(`"completed"`, thought, call),
			func(m *assay.Message) { m.State.Data = []byte(`[` + thought + `]`) },
			items(t, plain),
		},
		{
			"OnlyReasoning",
			`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},` +
				`"output":[` + thought + `]}`,
			same, items(t, `{"role":"assistant","content":"(empty reply)"}`),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(test.want, next(t, test.reply, test.adapt)); d != "" {
				t.Errorf("items differ (-want +got):\n%s", d)
			}
		})
	}
}

// TestRefusedParametersAreLeftOut checks that each refusal costs one request, once.
func TestRefusedParametersAreLeftOut(t *testing.T) {
	t.Parallel()
	refusal := func(param, message string) string {
		return `{"error":{"message":"` + message + `","type":"invalid_request_error","param":"` +
			param + `","code":null}}`
	}
	e, p := serve(t,
		refusal("temperature", "Unsupported parameter: 'temperature' is not supported."),
		refusal("include", "Encrypted content is not supported with this model."),
		hello)
	req := wiretest.Hi()
	req.Sampling.Temperature = new(0.5)
	for range 2 {
		resp := wiretest.Chat(t, p, req)
		if d := cmp.Diff([]string{"no temperature"}, resp.Deviations); d != "" {
			t.Errorf("deviations differ (-want +got):\n%s", d)
		}
	}
	if len(e.Bodies) != 4 {
		t.Errorf("%d requests, want 4", len(e.Bodies))
	}
	for _, name := range []string{"temperature", "include"} {
		if v, ok := e.Last()[name]; ok {
			t.Errorf("%s = %v is still sent", name, v)
		}
	}
	if d := cmp.Diff([]string{"temperature"}, p.Omits(req)); d != "" {
		t.Errorf("Omits() differs (-want +got):\n%s", d)
	}
}

// TestRefusedEffortIsAFault checks that an experiment's factor is never dropped.
func TestRefusedEffortIsAFault(t *testing.T) {
	t.Parallel()
	e, p := serve(t, `{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not `+
		`supported with this model.","param":"reasoning.effort"}}`)
	req := wiretest.Hi()
	req.Sampling.Effort = "high"
	_, err := p.Chat(context.Background(), &req)
	if f := assay.AsFault(err); f == nil || f.Kind != assay.BadRequest || len(e.Bodies) != 1 {
		t.Errorf("Chat() = %v after %d requests", err, len(e.Bodies))
	}
}
