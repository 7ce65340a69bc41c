package gemini_test

import (
	"os"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/gemini"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// TestMain keeps the tests away from the machine's proxy.
func TestMain(m *testing.M) {
	if err := os.Setenv("NO_PROXY", "*"); err != nil {
		panic(err)
	}
	const ofSDK = "go.opencensus.io/stats/view.(*worker).start"
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(ofSDK))
}

// serve starts an endpoint and returns a provider for it.
func serve(
	t testing.TB, deployment string, replies ...string,
) (*wiretest.Endpoint, *wire.Provider) {
	t.Helper()
	e := &wiretest.Endpoint{Replies: replies}
	p, err := gemini.Protocol.New(e.Serve(t, "/v1beta", deployment))
	if err != nil {
		t.Fatal(err)
	}
	return e, p
}

const hello = `{"candidates":[{"content":{"parts":[{"text":"hello"}],"role":"model"},
"finishReason":"STOP","index":0}],"modelVersion":"gemini-x","responseId":"r1"}`

func TestSeedWithoutRoomIsLeftOut(t *testing.T) {
	t.Parallel()
	e, p := serve(t, "gemini-x", hello)
	req := wiretest.Hi()
	req.Sampling.Seed = new(int64(1) << 40)
	resp := wiretest.Chat(t, p, req)
	if d := gocmp.Diff([]string{"no seed"}, resp.Deviations); d != "" {
		t.Errorf("deviations differ (-want +got):\n%s", d)
	}
	if config := e.Last()["generationConfig"]; config != nil {
		t.Errorf("sent the configuration %v", config)
	}
}

const (
	thought = `{"text":"hm","thought":true}`
	call    = `{"functionCall":{"name":"read","args":{"x":1}},"thoughtSignature":"Ab+/<1>="}`
	call2   = `{"functionCall":{"name":"re ad","id":"f2"}}`
	say     = `{"text":"well","thoughtSignature":"Cd=="}`
)

func reply(parts ...string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") +
		`]},"finishReason":"STOP"}]}`
}

func contents(t *testing.T, all string) []any {
	t.Helper()
	return wiretest.Object(t, `{"x":[`+all+`]}`)["x"].([]any)
}

func TestReplyGoesBackAsItCame(t *testing.T) {
	t.Parallel()
	const (
		answered = `{"role":"user","parts":[` +
			`{"functionResponse":{"name":"read","response":{"output":"1"}}},` +
			`{"functionResponse":{"id":"f2","name":"re ad","response":{"output":"1"}}}]}`
		rebuilt = `{"role":"model","parts":[{"functionCall":{"name":"read","args":{"x":1}},` +
			`"thoughtSignature":"skip_thought_signature_validator"},` +
			`{"functionCall":{"id":"f2","name":"re_ad","args":{}}}]},` +
			`{"role":"user","parts":[` +
			`{"functionResponse":{"name":"read","response":{"output":"1"}}},` +
			`{"functionResponse":{"id":"f2","name":"re_ad","response":{"output":"1"}}}]}`
	)
	same := func(*assay.Message) {}
	tests := []struct {
		name, reply string
		adapt       func(*assay.Message)
		want        string
	}{
		{
			"Calls", reply(thought, call, call2), same,
			`{"role":"model","parts":[` + thought + "," + call + "," + call2 + `]},` + answered,
		},
		{
			"Text", reply(thought, say), same,
			`{"role":"model","parts":[` + thought + "," + say + `]}`,
		},
		{
			"UnknownPart", reply(`{"text":"a"}`, `{"executableCode":{"code":"1"}}`), same,
			`{"role":"model","parts":[{"text":"a"},{"executableCode":{"code":"1"}}]}`,
		},
		{
			"NoState", reply(thought, `{"text":"a"}`, `{"text":"b"}`), same,
			`{"role":"model","parts":[{"text":"ab"}]}`,
		},
		{
			"OtherEndpoint", reply(call, call2),
			func(m *assay.Message) { m.State.Origin = "gemini elsewhere.example" }, rebuilt,
		},
		{
			"DamagedState", reply(call, call2),
			func(m *assay.Message) { m.State.Data = []byte(`{}`) }, rebuilt,
		},
		{
			"OtherCalls", reply(call, call2),
			func(m *assay.Message) { m.State.Data = []byte(`[` + call + `]`) }, rebuilt,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e, p := serve(t, "gemini-x", test.reply, hello)
			req := wiretest.Hi()
			resp := wiretest.Chat(t, p, req)
			req.Messages = append(req.Messages, resp.Message)
			test.adapt(&req.Messages[1])
			for _, c := range resp.Message.Calls {
				m := assay.Message{Role: assay.ToolRole, CallID: c.ID, Content: "1"}
				req.Messages = append(req.Messages, m)
			}
			wiretest.Chat(t, p, req)
			got := e.Last()["contents"].([]any)[1:]
			if d := gocmp.Diff(contents(t, test.want), got); d != "" {
				t.Errorf("contents differ (-want +got):\n%s", d)
			}
		})
	}
}
