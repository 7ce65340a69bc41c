package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/assay-eval/assay/internal/run/telemetry"
)

// TestRunIsFollowed runs the program with metrics, a webhook and a collector of traces. It scrapes
// the metrics while the run works, and looks for the secret of the others in everything that the
// run leaves behind.
func TestRunIsFollowed(t *testing.T) {
	t.Parallel()
	const secret = "canary-7f9c2ba4e88f827d"
	var mu sync.Mutex
	var messages []telemetry.Message
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m telemetry.Message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.URL.Path != "/"+secret {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		mu.Lock()
		defer mu.Unlock()
		messages = append(messages, m)
	}))
	defer hook.Close()
	var traces bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := traces.ReadFrom(r.Body); err != nil || r.Header.Get("Authorization") != secret {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
	}))
	defer collector.Close()
	dir := t.TempDir()
	experiment := file(t, dir, "f.yaml", "name: followed\nmodels: [sim/optimal]\n"+
		"variants: [optimal]\ntasks_per_type: 10\nmetrics: :0\nnotify: HOOK\n")
	cmd := program(t, "run", experiment, "--store", filepath.Join(dir, "f.db"), "--log-level", "debug",
		"--debug-trials", "all", "--sim-latency", "200ms")
	cmd.Env = append(cmd.Environ(), "HOOK="+hook.URL+"/"+secret,
		"OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL,
		"OTEL_EXPORTER_OTLP_HEADERS=authorization="+secret)
	var out bytes.Buffer
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	errors := bufio.NewReader(stderr)
	line, err := errors.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "metrics: ")
	if err != nil || !ok {
		t.Fatalf("first line %q, error %v", line, err)
	}
	var text string
	waitFor(t, func() bool {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatalf("the run ended before its metrics were complete: %v\n%s", err, text)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		text = string(b)
		return strings.Contains(text, `assay_attempts_total{model="sim/optimal",result="full_success"}`)
	})
	for _, want := range []string{
		`assay_run_info{experiment="followed"`, `assay_trials{model="sim/optimal",state="pending"} `,
		`assay_lane_width{lane="builtin",model="sim/optimal"} `, "assay_store_save_seconds_count ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	rest, err := io.ReadAll(errors)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, rest)
	}
	if len(messages) != 1 || messages[0].Event != "end" || messages[0].Done != 50 {
		t.Errorf("messages %+v", messages)
	}
	// Each trial has an outcome, and one span holds it.
	if n := strings.Count(traces.String(), "gen_ai.evaluation.result"); n != 50 {
		t.Errorf("the collector has %d outcomes, want 50", n)
	}
	if strings.Contains(out.String()+line+string(rest)+textIn(t, dir), secret) {
		t.Error("the secret is in a file or printed")
	}
}

// TestTracesNameEndpoint runs trials at an endpoint, with settings that it gets and ones that it does
// not accept. Their traces name its host and the replies.
func TestTracesNameEndpoint(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var traces bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = traces.ReadFrom(r.Body)
	}))
	defer collector.Close()
	dir := t.TempDir()
	file(t, dir, "providers.yaml", "providers:\n  sim:\n    base_url: "+serveProgram(t)+"/v1\n"+
		"    keys: [SIM_KEY]\n    models: {sim/optimal: {}}\n")
	experiment := file(t, dir, "e.yaml", "models: [{name: sim/optimal, max_tokens: 999}]\n"+
		"providers: providers.yaml\nvariants: [optimal]\ntasks_per_type: 1\n")
	cmd := program(t, "run", experiment, "--store", filepath.Join(dir, "a.db"), "--display", "none")
	cmd.Env = append(cmd.Environ(), "SIM_KEY=any", "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"server.address", "127.0.0.1", "server.port", "gen_ai.response.id", "chatcmpl-",
		"gen_ai.request.max_tokens", "test.suite.run.status",
	} {
		if !strings.Contains(traces.String(), want) {
			t.Errorf("traces have no %s", want)
		}
	}
}
