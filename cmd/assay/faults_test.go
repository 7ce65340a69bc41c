package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
)

// TestEveryTrialEndsUnderFaults runs against a server that hangs, breaks,
// limits and answers as another model. All trials end done, with the outcomes
// of a run without faults; nothing was scored from a fault; no socket is left.
func TestEveryTrialEndsUnderFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `
name: stormy
models: [sim/listed, sim/optimal]
variants: [baseline, optimal]
reliabilities: [0.8]
tasks_per_type: 10
limits: {request: 2s, trial: 1m}
`
	calm := filepath.Join(dir, "calm.db")
	must(t, nil, "run", file(t, dir, "calm.yaml", text), "--store", calm, "--sim-latency", "0", "--display", "none")

	server := serve(t, "--fault", "hang=1%", "--fault", "500=3%", "--fault", "429=3%", "--fault", "wrong-model=1%")
	file(t, dir, "providers.yaml", providersFile(server.url, "{concurrency: 32}"))
	experiment := file(t, dir, "stormy.yaml", text+"providers: providers.yaml\n")
	stormy := filepath.Join(dir, "stormy.db")
	env := map[string]string{"SIM_KEY": "k"}
	var r result
	for range 3 { // a trial that met a fault three times is parked for the next run
		if r = call(t, env, "run", experiment, "--store", stormy, "--display", "json"); r.code != exitIncomplete {
			break
		}
	}
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if event := lastEvent(t, r.out); event["done"] != 200.0 || event["pending"] != 0.0 {
		t.Errorf("last event %v, want 200 done", event)
	}
	if diff := cmp.Diff(outcomes(t, calm), outcomes(t, stormy)); diff != "" {
		t.Errorf("outcomes differ from a run without faults:\n%.3000s", diff)
	}
	kinds := make(map[assay.FaultKind]int)
	for _, a := range attempts(t, stormy) {
		kinds[a.FaultKind]++
		for kind, n := range a.Retried {
			kinds[kind] += n
		}
		if a.FaultKind != "" && (a.Level != "" || a.Ended != "" || a.ErrorCategory != "") {
			t.Errorf("trial %s has the fault %s and the level %q", a.ID, a.FaultKind, a.Level)
		}
		if a.FaultKind == assay.Identity && (a.ServedModel == a.Model || !strings.Contains(a.FaultDetail, "serves in the providers file")) {
			t.Errorf("identity fault served by %q: %s", a.ServedModel, a.FaultDetail)
		}
		if limit := time.Minute.Milliseconds(); a.WorkingMS > limit {
			t.Errorf("trial %s worked %d ms, limit %d", a.ID, a.WorkingMS, limit)
		}
	}
	for _, kind := range []assay.FaultKind{assay.Timeout, assay.Server, assay.RateLimited, assay.Identity} {
		if kinds[kind] == 0 {
			t.Errorf("no %s was met in %v: the test is too weak", kind, kinds)
		}
	}
	noSocketsLeft(t, server)
}

// noSocketsLeft waits until the server has no connection but the one that asks.
func noSocketsLeft(t *testing.T, server rehearsal) {
	t.Helper()
	for range 200 {
		if server.stats(t).Connections <= 1 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d connections are open after the run", server.stats(t).Connections-1)
}

const canary = "canary-7f3a9d51c0de"

// TestKeyAppearsNowhere plants a key and looks for it in everything that a
// user can see: files, output, exports and transcripts. The servers echo it
// wherever a server can.
func TestKeyAppearsNowhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	echo := httptest.NewServer(http.HandlerFunc(echoKey))
	defer echo.Close()
	refusing := serve(t, "--key", "SOME_OTHER_KEY") // its 401 repeats the key
	env := map[string]string{"SIM_KEY": canary}
	text := "name: NAME\nmodels: [sim/listed]\ntasks_per_type: 2\nproviders: NAME-providers.yaml\n"
	db := filepath.Join(dir, "canary.db")
	for name, url := range map[string]string{"echo": echo.URL, "refused": refusing.url} {
		file(t, dir, name+"-providers.yaml", providersFile(url, "{concurrency: 4}"))
		experiment := file(t, dir, name+".yaml", strings.ReplaceAll(text, "NAME", name))
		for _, display := range []string{"plain", "json"} {
			r := call(t, env, "run", experiment, "--store", db, "--display", display, "--log-level", "debug", "--debug-trials", "all")
			if name == "refused" && r.code != exitIncomplete {
				t.Errorf("a refused key ended with exit code %d\n%s%s", r.code, r.out, r.err)
			}
			noCanary(t, name+" run", r.out+r.err)
		}
	}
	all := attempts(t, db)
	if len(all) == 0 {
		t.Fatal("no attempt was stored")
	}
	sawEcho := false
	for _, a := range all {
		show := must(t, nil, "show", string(a.ID), "--attempt", fmt.Sprint(a.Number), "--store", db)
		noCanary(t, "show", show.out)
		sawEcho = sawEcho || strings.Contains(show.out, "[redacted]")
	}
	if !sawEcho {
		t.Error("no transcript has the place where the key was: the server did not echo it")
	}
	noCanary(t, "export", must(t, nil, "export", "--store", db, "--format", "csv").out)
	noCanary(t, "status", must(t, nil, "status", "--store", db).out)
	noCanary(t, "report", must(t, nil, "report", "echo", "--store", db, "--format", "html", "--transcripts", "9").out)
	must(t, nil, "export", "--store", db, "--format", "parquet", "--output", filepath.Join(dir, "a.parquet"), "--calls", filepath.Join(dir, "c.parquet"))
	must(t, nil, "export", "--store", db, "--format", "inspect", "--output", filepath.Join(dir, "logs"))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		noCanary(t, path, string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func noCanary(t *testing.T, where, text string) {
	t.Helper()
	if i := strings.Index(text, canary); i >= 0 {
		t.Errorf("the key stands in %s: …%s…", where, text[max(0, i-60):min(len(text), i+60)])
	}
}

// echoKey repeats the key in content, in a call's arguments, in the model's
// name and in errors.
func echoKey(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Echo", key)
	if len(body)%5 == 0 {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"bad key %s","code":%q}}`, key, key)
		return
	}
	args, _ := json.Marshal(map[string]string{"query": "file " + key})
	model := "sim/listed"
	if len(body)%7 == 0 {
		model = key
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"model": model,
		"choices": []any{map[string]any{"message": map[string]any{
			"role": "assistant", "content": "your key is " + key,
			"tool_calls": []any{map[string]any{"id": "1", "type": "function", "function": map[string]any{"name": "tool_search", "arguments": string(args)}}},
		}}},
		"usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1},
	})
}

// TestAzureOverHTTP runs over two Azure deployments of one model.
func TestAzureOverHTTP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := serve(t)
	file(t, dir, "providers.yaml", `
providers:
  azure-east:
    protocol: azure
    base_url: ${ENDPOINT}
    api_version: 2025-04-01-preview
    keys: [AZURE_KEY]
    models:
      sim/listed:
        deployments: [sim-listed, sim-listed-2]
        serves: [sim/listed]
        limits: {concurrency: 2}
        price: {input: 1, output: 2}
`)
	experiment := file(t, dir, "azure.yaml", "models: [sim/listed]\nvariants: [optimal]\ntasks_per_type: 4\nproviders: providers.yaml\n")
	db := filepath.Join(dir, "azure.db")
	must(t, map[string]string{"ENDPOINT": server.url, "AZURE_KEY": "k"}, "run", experiment, "--store", db, "--display", "none")
	lanes := make(map[string]int)
	for _, a := range attempts(t, db) {
		lanes[a.Lane]++
		if a.CostUSD <= 0 || a.ServedModel != "sim/listed" {
			t.Errorf("attempt %+v has no cost or another model", a)
		}
	}
	if len(lanes) != 2 {
		t.Errorf("lanes used: %v, want both deployments", lanes)
	}
}

// TestLimitsAreKept runs two keys with limits that the server enforces too: it
// counts no request over a limit.
func TestLimitsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := serve(t, "--limit", "concurrency=2,rpm=400")
	text := strings.Replace(providersFile(server.url, "{concurrency: 2, rpm: 400}"), "[SIM_KEY]", "[KEY_A, KEY_B]", 1)
	file(t, dir, "providers.yaml", text)
	experiment := file(t, dir, "limits.yaml", "models: [sim/listed, sim/optimal]\nvariants: [optimal]\ntasks_per_type: 8\nproviders: providers.yaml\n")
	db := filepath.Join(dir, "limits.db")
	must(t, map[string]string{"KEY_A": "a", "KEY_B": "b"}, "run", experiment, "--store", db, "--display", "none")
	stats := server.stats(t)
	if stats.OverLimit != 0 || stats.MaxInFlight > 8 {
		t.Errorf("server counts %+v, want nothing over a limit and at most 8 at once", stats)
	}
}
