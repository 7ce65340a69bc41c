package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// odd stands between the program and a simulated server, and behaves as gateways do: it wants no
// key, refuses a temperature, comments on its replies, and fails in the middle of every fourth one
// with status 200.
type odd struct {
	t       *testing.T
	backend string
	replies atomic.Int64
}

func (o *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "" {
		o.t.Errorf("the request has the key %q, %v", r.Header.Get("Authorization"), err)
	}
	switch {
	case bytes.Contains(body, []byte(`"temperature"`)):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"Unsupported parameter: temperature"}}`)
		return
	case o.replies.Add(1)%4 == 0:
		_, _ = io.WriteString(w, `{"model":"sim/listed","choices":[{"finish_reason":"error",`+
			`"message":{"content":"The task is comp"},"error":{"code":502,"message":"lost"}}]}`)
		return
	}
	forward, err := http.NewRequestWithContext(r.Context(), http.MethodPost,
		o.backend+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		o.t.Error(err)
		return
	}
	forward.Header.Set("Authorization", "Bearer any")
	resp, err := http.DefaultClient.Do(forward)
	if err != nil {
		o.t.Error(err)
		return
	}
	defer resp.Body.Close()
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(resp.StatusCode)
	_, _ = io.WriteString(w, ": OPENROUTER PROCESSING\n\n")
	_, _ = io.Copy(w, resp.Body)
}

// TestStrangeGatewayChangesNoOutcome runs trials at an odd gateway. Their outcomes are those of a
// model without it, and what the gateway does not accept is stored and told once.
func TestStrangeGatewayChangesNoOutcome(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = "name: strange\nmodels: [sim/listed]\nvariants: [baseline, optimal]\n" +
		"tasks_per_type: 4\nsampling: {temperature: 0.5}\n"
	calm := filepath.Join(dir, "calm.db")
	must(t, nil, "run", file(t, dir, "calm.yaml", text), "--store", calm,
		"--sim-latency", "0", "--display", "none")

	gateway := httptest.NewServer(&odd{t: t, backend: serve(t).url})
	defer gateway.Close()
	file(t, dir, "providers.yaml", strings.Replace(
		providersFile(gateway.URL, "{concurrency: 4}"), "[SIM_KEY]", "none", 1))
	strange := filepath.Join(dir, "strange.db")
	experiment := file(t, dir, "strange.yaml", text+"providers: providers.yaml\n")
	r := must(t, nil, "run", experiment, "--store", strange, "--display", "plain")
	outcomesEqual(t, outcomes(t, calm), outcomes(t, strange))

	if n := strings.Count(r.out+r.err, "does not accept it: no temperature"); n != 1 {
		t.Errorf("the deviation is told %d times, want once:\n%s%s", n, r.out, r.err)
	}
	if !strings.Contains(r.out+r.err, "Requests differ from what was asked") {
		t.Errorf("the run does not warn about the deviation:\n%s%s", r.out, r.err)
	}
	for _, a := range attempts(t, strange) {
		if a.Deviations != "no temperature" || !strings.HasPrefix(a.Lane, "rehearsal/none/") {
			t.Errorf("attempt on %s deviates in %q", a.Lane, a.Deviations)
		}
		noScore(t, a)
	}
}
