package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// noScore checks that an attempt that ended with a fault has no result.
func noScore(t *testing.T, a assay.Attempt) {
	t.Helper()
	if a.FaultKind != "" && (a.Level != "" || a.Ended != "" || a.ErrorCategory != "") {
		t.Errorf("trial %s has fault %s and level %q", a.ID, a.FaultKind, a.Level)
	}
}

const canary = "canary-7f3a9d51c0de"

func noFileHasCanary(t *testing.T, dir string) {
	t.Helper()
	noCanary(t, "a file", textIn(t, dir))
}

func noCanary(t *testing.T, where, text string) {
	t.Helper()
	for name, shown := range spelled(canary) {
		if i := strings.Index(text, shown); i >= 0 {
			around := text[max(0, i-60):min(len(text), i+60)]
			t.Errorf("the key appears in %s (%s): …%s…", where, name, around)
		}
	}
}

// spelled returns the forms in which a server may echo a key.
func spelled(key string) map[string]string {
	return map[string]string{
		"plain":      key,
		"hex":        hex.EncodeToString([]byte(key)),
		"upper hex":  fmt.Sprintf("%X", key),
		"base64":     base64.StdEncoding.EncodeToString([]byte(key)),
		"URL base64": base64.RawURLEncoding.EncodeToString([]byte(key)),
	}
}

// echoKey repeats the key in content, in a call's arguments, in the model's name and in errors.
func echoKey(w http.ResponseWriter, r *http.Request) {
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Echo", key)
	if len(body)%5 == 0 {
		w.WriteHeader(http.StatusBadRequest)
		forms := slices.Collect(maps.Values(spelled(key)))
		message, _ := json.Marshal(forms[len(body)%len(forms)] + " is a bad key")
		fmt.Fprintf(w, `{"error":{"message":%s,"code":%q}}`, message, key)
		return
	}

	args, _ := json.Marshal(map[string]string{"query": "file " + key})
	call := map[string]any{
		"id": "1", "type": "function",
		"function": map[string]any{"name": "tool_search", "arguments": string(args)},
	}
	var all strings.Builder
	for _, form := range spelled(key) {
		all.WriteString(", " + form)
	}
	model := "sim/listed"
	if len(body)%7 == 0 {
		model = key
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"model": model,
		"choices": []any{map[string]any{"message": map[string]any{
			"role": "assistant", "content": "your key is " + all.String(), "tool_calls": []any{call},
		}}},
		"usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1},
	})
}

// An Azure provider spreads a model's requests over both of its deployments.
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
	experiment := file(t, dir, "azure.yaml",
		"models: [sim/listed]\nvariants: [optimal]\ntasks_per_type: 4\nproviders: providers.yaml\n")
	db := filepath.Join(dir, "azure.db")
	env := map[string]string{"ENDPOINT": server.url, "AZURE_KEY": "k"}
	must(t, env, "run", experiment, "--store", db, "--display", "none")
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

// A server that enforces the stated limits of two keys never counts a request over a limit.
func TestLimitsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := serve(t, "--limit", "concurrency=2,rpm=400")
	text := providersFile(server.url, "{concurrency: 2, rpm: 400}")
	file(t, dir, "providers.yaml", strings.Replace(text, "[SIM_KEY]", "[KEY_A, KEY_B]", 1))
	experiment := file(t, dir, "limits.yaml", "models: [sim/listed, sim/optimal]\n"+
		"variants: [optimal]\ntasks_per_type: 8\nproviders: providers.yaml\n")
	db := filepath.Join(dir, "limits.db")
	env := map[string]string{"KEY_A": "a", "KEY_B": "b"}
	must(t, env, "run", experiment, "--store", db, "--display", "none")
	stats := server.stats(t)
	if stats.OverLimit != 0 || stats.MaxInFlight > 8 {
		t.Errorf("server counts %+v, want none over a limit and at most 8 at once", stats)
	}
}
