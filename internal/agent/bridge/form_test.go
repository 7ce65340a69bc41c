package bridge_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// formal gives replies in a form, or refuses to, and notes the forms that it was asked for.
type formal struct {
	assay.Provider // refuses
	asked          []assay.Form
}

func (f *formal) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	f.asked = append(f.asked, req.Form)
	if f.Provider != nil {
		return f.Provider.Chat(ctx, req)
	}
	r := assay.Response{Usage: assay.Usage{InputTokens: 20, OutputTokens: 3}}
	r.Message = assay.Message{Role: assay.Assistant, Content: `{"n":1}`}
	return &r, nil
}

// An agent may want replies in a form. If its model refuses that, it can go on without, and no turn is
// lost. One that cannot, and has done nothing before, does not suit its model, which is a fault.
func TestAgentWantsAForm(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, tc := range []struct {
		name          string
		model         formal
		status        string // of the request with a form
		again         int    // further such requests
		ask           bool   // and one without
		turns, wanted int
		ended         assay.Ended
	}{
		{"Given", formal{}, "200 OK", 0, true, 2, 1, assay.Finished},
		{"Refused", formal{Provider: s.models}, "400 Bad Request", 0, true, 1, 1, assay.Finished},
		{"Unsuitable", formal{Provider: s.models}, "400 Bad Request", 0, false, 0, 1, ""},
		{"Stubborn", formal{Provider: s.models}, "400 Bad Request", 20, true, 0, 16, assay.TurnLimit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			service := serve(t, func(w http.ResponseWriter, r *http.Request) {
				env := bodyOf(r)
				url := env["model_url"] + "/v1/chat/completions"
				doc := map[string]any{
					"model": "m", "messages": []any{map[string]any{"role": "user", "content": "hi"}},
					"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{
						"name": "count", "schema": map[string]any{"type": "object"},
					}},
				}
				reply, status := ask(r, url, env["token"], doc)
				refused := fmt.Sprint(reply["error"])
				if status != tc.status || status != "200 OK" && !strings.Contains(refused, "response_format") {
					t.Errorf("%s: %v", status, reply)
				}
				for range tc.again {
					ask(r, url, env["token"], doc)
				}
				if delete(doc, "response_format"); tc.ask {
					ask(r, url, env["token"], doc)
				}
				fmt.Fprint(w, `{"text": "TASK_COMPLETED"}`)
			})
			trial, task := s.trial(0, assay.Discover)
			a, _ := s.Runner(s.episodes, bridge.Agent{
				Name: "agent", URL: service, Model: "m", Timeout: time.Minute,
			}).Run(t.Context(), &tc.model, trial, task)
			wanted := 0
			for _, f := range tc.model.asked {
				if f.Type == assay.BySchema && f.Name == "count" && string(f.Schema) == `{"type":"object"}` {
					wanted++
				}
			}
			if a.Ended != tc.ended || a.Outcome.Turns != tc.turns || wanted != tc.wanted {
				t.Errorf("ended %q %s with %d turns, and the model was asked %v",
					a.Ended, a.FaultDetail, a.Outcome.Turns, tc.model.asked)
			}
		})
	}
}
