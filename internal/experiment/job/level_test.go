package job_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
)

const canary = "canary-0123456789"

// pools opens an experiment with these models, whose provider is a server, and its pools.
func pools(t *testing.T, models string, h http.HandlerFunc) (*job.Job, *job.Pools) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("p.yaml", "providers: {gw: {base_url: '"+server.URL+"/v1', keys: [KEY], "+
		"headers: {X-Gateway: 'team ${TEAM}', X-Route: a}, models: {m: {limits: {rpm: 60}}}}}\n")
	e, err := plan.Load(write("e.yaml", "models: ["+models+"]\nproviders: p.yaml\n"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Open(t.Context(), e, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	values := map[string]string{"KEY": "sk-0123456789", "TEAM": canary}
	p, err := j.Pools(func(name string) (string, bool) {
		v, ok := values[name]
		return v, ok
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return j, p
}

// TestLevelsShareLanes checks that the levels of a model have their own settings and headers, and
// the limits of one lane.
func TestLevelsShareLanes(t *testing.T) {
	t.Parallel()
	var efforts, routes []string
	j, p := pools(t, "m, m@high, {name: m, label: slow, headers: {X-Route: b}, effort: low}",
		func(w http.ResponseWriter, r *http.Request) {
			var body struct {
				Model  string
				Effort string `json:"reasoning_effort"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Model != "m" {
				t.Errorf("request for %q: %v", body.Model, err)
			}
			efforts = append(efforts, body.Effort)
			routes = append(routes, r.Header.Get("X-Route")+", "+r.Header.Get("X-Gateway"))
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"model": "m", "choices": [{"finish_reason": "stop",
				"message": {"content": "hi"}}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}`)
		})
	var seen []string
	p.Open(lane.Options{Observe: func(x lane.Exchange) { seen = append(seen, x.Model) }})
	for _, model := range j.Experiment.Models {
		_, err := p.ByModel[model].Chat(t.Context(), &assay.Request{
			Model: model, Sampling: j.Experiment.SamplingOf(model),
			Messages: []assay.Message{{Role: assay.User, Content: "hi"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := [][]string{
		{"m", "m@high", "m@slow"},
		{"", "high", "low"},
		{"a, team " + canary, "a, team " + canary, "b, team " + canary},
	}
	if diff := cmp.Diff(want, [][]string{seen, efforts, routes}); diff != "" {
		t.Errorf("models, efforts and headers (-want +got):\n%s", diff)
	}
	if n := p.ByModel["m"].Ledgers()[0].Requests; n != 3 || p.ByModel["m"] != p.ByModel["m@high"] {
		t.Errorf("the shared lane has sent %d requests, want 3", n)
	}
	for _, model := range j.Experiment.Models {
		if text := fmt.Sprintf("%+v", p.Configs[model]); strings.Contains(text, canary) {
			t.Errorf("a secret header is printed: %s", text)
		}
	}
	if !strings.Contains(strings.Join(p.Secrets, " "), canary) {
		t.Error("logs do not leave out the secret header")
	}
}

func TestUnknownLevelHasAHint(t *testing.T) {
	t.Parallel()
	e := &plan.Experiment{Name: "x"}
	if err := e.SetModels([]string{"sim/optimal@hihg"}); err != nil {
		t.Fatal(err)
	}
	_, err := (&job.Job{Experiment: e}).Pools(os.LookupEnv, 0)
	if err == nil || !strings.Contains(err.Error(), "did you mean sim/optimal@high?") {
		t.Errorf("Pools() error = %v, want a hint", err)
	}
}
