package protocol_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/task/library"
)

const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

// tellForms checks that an endpoint sees the form that a reply shall have, as far as the protocol can say
// it, and that its refusal is told from those of other requests.
func tellForms(t *testing.T, c column) {
	whole := assay.Form{
		Type: assay.BySchema, Name: "count", Description: "how many", Strict: new(true), Schema: json.RawMessage(schema),
	}
	bare := assay.Form{Type: assay.BySchema, Schema: whole.Schema}
	anyObject := assay.Form{Type: assay.AnyObject}
	for _, form := range []assay.Form{{}, anyObject, whole, bare} {
		s := c.stage(t, simserver.Config{}, reply("x"))
		req := question()
		req.Form = form
		s.say(t, &req)
		want := form
		switch {
		case form.Type == "":
		case c.Name == protocol.Anthropic && form.Type == assay.AnyObject:
			want = assay.Form{Type: assay.BySchema, Schema: json.RawMessage(`{"type":"object"}`)}
		case form.Type == assay.BySchema && (c.Name == protocol.Anthropic || c.Name == protocol.Gemini):
			want = bare
		case form.Type == assay.BySchema && form.Name == "":
			want.Name = "reply"
		}
		if diff := cmp.Diff(want, s.latest().Form); diff != "" {
			t.Errorf("the endpoint saw (-want +got):\n%s", diff)
		}
	}

	s := c.stage(t, simserver.Config{Provider: sim.New(assay.NewCatalog(library.Tools()), sim.Latency{}), Models: []string{model}})
	refusal := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"message":"this model is for vision only"}}`)
	}))
	t.Cleanup(refusal.Close)
	for url, want := range map[string]bool{s.url: true, refusal.URL: false} {
		req := question()
		req.Form = whole
		_, err := c.open(t, url, model).Chat(t.Context(), &req)
		if f := assay.AsFault(err); f == nil || f.Kind != assay.BadRequest || f.Form != want {
			t.Errorf("Chat() = %+v, want a refusal, of the form: %v", f, want)
		}
	}
}

// TestFormsOfClients checks that each server reads the forms as clients of its protocol write them, and
// refuses with the name of the setting what other protocols cannot say.
func TestFormsOfClients(t *testing.T) {
	t.Parallel()
	dialects := protocol.Dialects("")
	for param, tc := range map[string]struct {
		dialect         gateway.Dialect
		body            string // with a place for the form
		text, json, odd string
		other           assay.Form // if it is not the one by schema
		otherWay        string
	}{
		"response_format": {
			dialect: dialects[0], body: `{"model":"m","messages":[{"role":"user","content":"go"}],"response_format":%s}`,
			text: `{"type":"text"}`, odd: `{"type":"grammar"}`,
			json:  `{"type":"json_schema","json_schema":{"schema":` + schema + `}}`,
			other: assay.Form{Type: assay.AnyObject}, otherWay: `{"type":"json_object"}`,
		},
		"text.format": {
			dialect: dialects[2], body: `{"model":"m","input":"go","text":{"verbosity":"low","format":%s}}`,
			text: `{"type":"text"}`, odd: `{"type":"grammar"}`,
			json:  `{"type":"json_schema","schema":` + schema + `}`,
			other: assay.Form{Type: assay.AnyObject}, otherWay: `{"type":"json_object"}`,
		},
		"output_config.format": {
			dialect: dialects[3], body: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"}],
				"output_config":{"format":%s}}`,
			text: `null`, odd: `{"type":"json_schema"}`,
			json:     `{"type":"json_schema","schema":` + schema + `}`,
			otherWay: `null`,
		},
		"responseMimeType": {
			dialect: dialects[4], body: `{"contents":[{"role":"user","parts":[{"text":"go"}]}],"generationConfig":%s}`,
			text: `{"responseMimeType":"text/plain"}`, odd: `{"responseMimeType":"text/x.enum"}`,
			json:  `{"responseMimeType":"application/json","responseJsonSchema":` + schema + `}`,
			other: assay.Form{Type: assay.AnyObject}, otherWay: `{"responseMimeType":"application/json"}`,
		},
	} {
		bySchema := assay.Form{Type: assay.BySchema, Schema: json.RawMessage(schema)}
		for written, want := range map[string]assay.Form{
			tc.text: {}, tc.json: bySchema, tc.otherWay: tc.other,
		} {
			p, e := tc.dialect.Decode(fmt.Appendf(nil, tc.body, written))
			if diff := cmp.Diff(want, p.Form); e != nil || diff != "" {
				t.Errorf("%s: %s is refused with %+v, or read as (-want +got):\n%s", param, written, e, diff)
			}
		}
		_, e := tc.dialect.Decode(fmt.Appendf(nil, tc.body, tc.odd))
		if e == nil || !strings.Contains(e.Message, "'"+param+"'") {
			t.Errorf("%s: %s is answered with %+v", param, tc.odd, e)
		}
	}
	own := `{"contents":[{"role":"user","parts":[{"text":"go"}]}],"generationConfig":{"responseMimeType":` +
		`"application/json","responseSchema":{"type":"OBJECT","properties":{"n":{"type":"INTEGER"}}}}}`
	p, e := dialects[4].Decode([]byte(own))
	if e != nil || string(p.Form.Schema) != `{"properties":{"n":{"type":"integer"}},"type":"object"}` {
		t.Errorf("Gemini's own form of a schema is read as %s: %+v", p.Form.Schema, e)
	}
}
