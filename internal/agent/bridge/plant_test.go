package bridge_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// planted returns a trial that plants a fault in the first request of its agent, and in no second one.
func (s *stand) planted(kind assay.ModelFault, tools string) (*assay.Trial, *assay.Task) {
	rates := assay.ModelFaultRates{kind: .5}
	for n := 0; ; n++ {
		trial, task := s.trial(n, tools)
		if rates.At(trial.Seed, 0) != kind || rates.At(trial.Seed, 1) != "" {
			continue
		}
		cell := trial.Cell
		cell.Reliability = 1
		set := trial.Setting
		set.ModelFaults = rates.String()
		faulty := assay.NewTrial(cell, assay.TaskRef{ID: task.ID}, set, 7, n)
		return &faulty, task
	}
}

// An agent that asks again after every fault of its model does what the bare model does without any. The
// faults cost nothing, and count as no fault of a provider. One that does not ask again fails for that
// reason, and is judged, although it has not called a tool.
func TestPlantedFaultsOfModels(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, kind := range assay.ModelFaults {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			trial, task := s.planted(kind, assay.Discover)
			bare := *trial
			bare.ModelFaults = ""
			want, wantScript := s.episodes.Run(t.Context(), s.models, &bare, task)
			trial.ModelFaults = string(kind) + "=0.5"
			got, script := s.runner("work and ask again", time.Minute).Run(t.Context(), s.models, trial, task)
			faults := script.ModelFaults()
			if len(faults) == 0 {
				t.Fatalf("no fault was planted; ended %q %s", got.Ended, got.FaultDetail)
			}
			last := faults[len(faults)-1]
			if first := faults[0]; first.Request != 1 || !first.Delivered || !first.Recovered || !last.Recovered {
				t.Errorf("faults %+v", faults)
			}
			if got.ModelFaultsMet != len(faults) || got.ModelFaultsRecovered != len(faults) {
				t.Errorf("%d met, %d recovered of %d", got.ModelFaultsMet, got.ModelFaultsRecovered, len(faults))
			}
			if diff := cmp.Diff(wantScript.Calls, script.Calls, sameTurns); diff != "" {
				t.Errorf("calls (-bare +agent):\n%s", diff)
			}
			spoiled := 0
			if kind.Rule().Spoils {
				spoiled = len(faults)
			}
			if got.Level != want.Level || got.Requests != want.Requests+spoiled || len(got.Retried) > 0 ||
				got.Outcome.Turns != want.Outcome.Turns+spoiled || got.Deviations != "" {
				t.Errorf("%s %q after %d requests, %d turns and %v, deviations %q; the bare model: %s after %d, %d",
					got.Level, got.FaultDetail, got.Requests, got.Outcome.Turns, got.Retried, got.Deviations,
					want.Level, want.Requests, want.Outcome.Turns)
			}

			if kind == assay.ModelHang { // it would wait until the connection breaks
				return
			}
			got, script = s.runner("work", time.Minute).Run(t.Context(), s.models, trial, task)
			if got.Cause != assay.ModelFailed || got.ErrorCategory != assay.CategoryAgentFailure || got.FaultKind != "" ||
				got.Unmetered || got.Requests != min(spoiled, 1) || got.ModelFaultsMet != 1 || got.ModelFaultsRecovered != 0 {
				t.Errorf("cause %q, category %q, fault %q, %d requests, %+v", got.Cause, got.ErrorCategory,
					got.FaultDetail, got.Requests, script.ModelFaults())
			}
		})
	}
}

// sameTurns compares calls without their turns.
var sameTurns = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Turn" }, cmp.Ignore())

// questions ask for a reply in each protocol, with the streams of each.
var questions = []struct{ name, path, body string }{
	{"chat", "/v1/chat/completions", `{"model": "m", "messages": [{"role": "user", "content": "hi"}]}`},
	{"chat stream", "/v1/chat/completions", `{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}`},
	{"responses", "/v1/responses", `{"model": "m", "input": "hi"}`},
	{"responses stream", "/v1/responses", `{"model": "m", "stream": true, "input": "hi"}`},
	{"messages", "/v1/messages", `{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}`},
	{"messages stream", "/v1/messages", `{"model": "m", "stream": true, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}`},
	{"gemini", "/v1beta/models/m:generateContent", `{"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}`},
	{"gemini stream", "/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}`},
}

// An answer is what a client gets.
type answer struct {
	status int
	wait   string
	body   string
	broken bool // the connection broke
}

// Each kind has its form in each protocol, whole and as a stream. After it, the client gets the reply.
func TestPlantedFaultsSpeakEveryProtocol(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, kind := range assay.ModelFaults {
		if kind == assay.ModelHang { // see TestHangsAreBounded
			continue
		}
		for _, q := range questions {
			t.Run(string(kind)+" "+q.name, func(t *testing.T) {
				t.Parallel()
				var first, second answer
				service := serve(t, func(w http.ResponseWriter, r *http.Request) {
					env := bodyOf(r)
					first = question(t, env["model_url"]+q.path, env["token"], q.body)
					second = question(t, env["model_url"]+q.path, env["token"], q.body)
					fmt.Fprint(w, `{"text": "TASK_COMPLETED"}`)
				})
				trial, task := s.planted(kind, assay.Discover)
				models := new(speaker)
				got, script := s.Runner(s.episodes, bridge.Agent{
					Name: "agent", Model: "m", Timeout: time.Minute, URL: service,
				}).Run(t.Context(), models, trial, task)
				rule := kind.Rule()
				if (first.status != rule.Status && rule.Status > 0) || rule.Status == 0 && first.status != 200 ||
					(first.wait == "1") != rule.Waits || first.broken != (kind == assay.ModelCut) {
					t.Errorf("the client got %+v", first)
				}
				unlike := map[assay.ModelFault]string{assay.ModelEmpty: "TASK_COMPLETED", assay.ModelCut: "TASK_COMPLETED"}[kind]
				if unlike != "" && strings.Contains(first.body, unlike) || first.status == 200 && first.body == "" {
					t.Errorf("the client got %s", first.body)
				}
				if kind == assay.ModelBadArguments && strings.Contains(first.body, "ü") {
					t.Errorf("the arguments are whole: %s", first.body)
				}
				if second.status != 200 || second.broken || second.wait != "" {
					t.Errorf("then the client got %+v", second)
				}
				asked := 1
				if rule.Spoils {
					asked = 2
				}
				if models.n != asked || got.FaultKind != "" || len(script.ModelFaults()) != 1 ||
					!script.ModelFaults()[0].Recovered || got.InputTokens != 20*asked {
					t.Errorf("asked %d times for %d tokens, fault %q, %+v", models.n, got.InputTokens, got.FaultDetail,
						script.ModelFaults())
				}
			})
		}
	}
}

// question sends a request and reads whatever comes.
func question(t *testing.T, url, token, body string) (a answer) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return a
	}
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return a
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Retry-After"), string(b), err != nil}
}

// A service that fails itself after a planted fault has failed, and was not unavailable.
func TestServicesThatPassAPlantedFaultOn(t *testing.T) {
	t.Parallel()
	s := open(t)
	service := serve(t, func(w http.ResponseWriter, r *http.Request) {
		env := bodyOf(r)
		_, status := ask(r, env["model_url"]+"/v1/responses", env["token"], map[string]any{"model": "m", "input": "hi"})
		http.Error(w, status, http.StatusServiceUnavailable)
	})
	trial, task := s.planted(assay.ModelOverload, assay.Discover)
	a, _ := s.Runner(s.episodes, bridge.Agent{
		Name: "agent", URL: service, Model: "m", Timeout: time.Minute,
	}).Run(t.Context(), new(speaker), trial, task)
	if a.FaultKind != "" || a.Cause != assay.ModelFailed {
		t.Errorf("fault %q %s, cause %q", a.FaultKind, a.FaultDetail, a.Cause)
	}
}
