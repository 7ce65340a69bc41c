//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// A dialect is how a server of docs/recipes.md differs from the simulated one. Unless it is LiteLLM
// itself, its quirks come from its source or from reports to its maintainers.
type dialect struct {
	address string // in the recipe
	path    string
	key     string // the header of the key; "" if requests must not have one
	model   string // the name that requests have to order; "" if it is in the path
	served  string // the name in replies
	mistake string // the body of the reply to a mistake that users make
	status  int    // of that reply
	kind    string // of the fault
	advice  string
	think   string // the field of thoughts
	headers map[string]string
	more    string // further fields of replies
}

var dialects = map[string]dialect{
	"ollama.yaml": {
		address: "http://127.0.0.1:11434", path: "/v1/chat/completions",
		model: "qwen3:8b", served: "qwen3:8b", think: "reasoning",
		status: 404, kind: "not_found", advice: "write the endpoint's own name, deployments: ",
		mistake: `{"error":{"message":"model \"qwen3:8b\" not found, try pulling it first",` +
			`"type":"api_error","param":null,"code":null}}`,
		more: `"system_fingerprint":"fp_ollama"`,
	},
	"vllm.yaml": {
		address: "http://127.0.0.1:8000", path: "/v1/chat/completions",
		model: "Qwen/Qwen3-8B", served: "Qwen/Qwen3-8B", think: "reasoning_content",
		status: 400, kind: "bad_request", advice: "--enable-auto-tool-choice and",
		mistake: `{"object":"error","message":"\"auto\" tool choice requires ` +
			`--enable-auto-tool-choice and --tool-call-parser to be set",` +
			`"type":"BadRequestError","param":null,"code":400}`,
		more: `"prompt_logprobs":null,"kv_transfer_params":null`,
	},
	"llamacpp.yaml": {
		address: "http://127.0.0.1:8080", path: "/v1/chat/completions",
		model: "qwen3-8b", served: "qwen3-8b", think: "reasoning_content",
		status: 503, kind: "overloaded", advice: "the endpoint was busy all the time",
		mistake: `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`,
		more: `"timings":{"prompt_n":1,"predicted_per_second":20.5},` +
			`"system_fingerprint":"b8681-Debian"`,
	},
	"litellm.yaml": {
		address: "http://127.0.0.1:4000", path: "/v1/chat/completions", key: "Authorization",
		model: "my-model", served: "upstream-model", think: "reasoning_content",
		status: 400, kind: "bad_request", advice: "No connected db.",
		mistake: `{"error":{"message":"No connected db.","type":"no_db_connection","param":null,` +
			`"code":"400"}}`,
		headers: map[string]string{"X-Ratelimit-Api_key-Limit-Requests": "100"},
	},
	"openrouter.yaml": {
		address: "https://openrouter.ai", path: "/api/v1/chat/completions", key: "Authorization",
		model: "deepseek/deepseek-chat-v3-0324", served: "deepseek/deepseek-chat-v3-0324",
		think:  "reasoning_details",
		status: 402, kind: "quota", advice: "has no credit left",
		mistake: `{"error":{"message":"Insufficient credits. Add more using ` +
			`https://openrouter.ai/settings/credits","code":402}}`,
		more: `"provider":"Fireworks"`,
	},
	"azure.yaml": {
		address: "https://my-resource.openai.azure.com", key: "Api-Key",
		path:   "/openai/deployments/my-gpt-4o/chat/completions",
		served: "gpt-4o-2024-08-06",
		status: 404, kind: "not_found", advice: `does not know "my-gpt-4o"`,
		mistake: `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this ` +
			`resource does not exist. If you created the deployment within the last 5 minutes, ` +
			`please wait a moment and try again."}}`,
		headers: map[string]string{"X-Ratelimit-Limit-Requests": "600"},
		more: `"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":` +
			`{"filtered":false,"severity":"safe"}}}]`,
	},
}

// TestRecipes checks the providers files of docs/recipes.md, and runs trials with them, at
// stand-ins for the servers. It then makes a mistake of each server's users.
func TestRecipes(t *testing.T) {
	t.Parallel()
	page := readDocument(t, "docs/recipes.md")
	simulated := map[string]string{} // by the field of thoughts
	for _, think := range []string{"reasoning_content", "reasoning_details"} {
		simulated[think] = serveProgram(t, "--thinking", think, "--limit-headers", "none")
	}
	for _, think := range []string{"reasoning", ""} {
		simulated[think] = simulated["reasoning_content"]
	}
	tried := 0
	for _, text := range blocks(page, "yaml") {
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		d, ok := dialects[name]
		if !ok {
			continue
		}
		tried++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			server := httptest.NewServer(d.handler(t, simulated[d.think]))
			defer server.Close()
			path := file(t, dir, name, strings.Replace(text, d.address, server.URL, 1))
			env := map[string]string{
				"LITELLM_API_KEY": "any", "OPENROUTER_API_KEY": "any",
				"AZURE_OPENAI_API_KEY": "any",
			}
			r := call(t, env, "check", "--providers", path)
			if r.code != 0 || !showsCheck(r.out) {
				t.Fatalf("check: exit code %d\n%s%s", r.code, r.out, r.err)
			}
			model := regexp.MustCompile(`(?m)^      (\S+): \{`).FindStringSubmatch(text)[1]
			run := must(t, env, "run", "--model", model, "--providers", path, "--limit", "1",
				"--store", dir+"/a.db")
			if !strings.Contains(run.out, "1 of 1 trials done") {
				t.Errorf("run:\n%s%s", run.out, run.err)
			}

			refuse := func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(d.status)
				_, _ = io.WriteString(w, d.mistake)
			}
			wrong := httptest.NewServer(http.HandlerFunc(refuse))
			defer wrong.Close()
			path = file(t, dir, "wrong-"+name, strings.Replace(text, d.address, wrong.URL, 1))
			r = call(t, env, "check", "--providers", path, "--timeout", "1s")
			named := strings.Contains(r.out, d.kind) && strings.Contains(r.out, d.advice)
			if r.code != 3 || !named {
				t.Errorf("check of a mistake: exit code %d, want 3, %s and %q\n%s%s",
					r.code, d.kind, d.advice, r.out, r.err)
			}
		})
	}
	if tried != len(dialects) {
		t.Errorf("docs/recipes.md has %d of %d recipes", tried, len(dialects))
	}
	dir := t.TempDir()
	for _, text := range blocks(page, "yaml") {
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		file(t, dir, name, text)
	}
	r := must(t, nil, "plan", dir+"/pinned.yaml")
	if !strings.Contains(r.out, "deepseek-v3@fireworks") {
		t.Errorf("plan of pinned.yaml:\n%s", r.out)
	}
}

// showsCheck reports whether a check found calls of tools, and states that were accepted.
func showsCheck(out string) bool {
	return strings.Contains(out, " parsed ") && strings.Contains(out, " accepted ")
}

// handler serves a dialect in front of the simulated server.
func (d *dialect) handler(t *testing.T, simulated string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		var request map[string]any
		if err := json.Unmarshal(body, &request); err != nil {
			t.Error(err)
		}
		hasKey := r.Header.Get("Authorization")+r.Header.Get("Api-Key") != ""
		switch name, _ := request["model"].(string); {
		case r.URL.Path != d.path:
			t.Errorf("path %s, want %s", r.URL.Path, d.path)
		case hasKey != (d.key != ""), d.key != "" && r.Header.Get(d.key) == "":
			t.Errorf("headers %v, want a key in %q", r.Header, d.key)
		case d.model != "" && name != d.model:
			t.Errorf("model %q, want %q", name, d.model)
		}
		request["model"] = "sim/optimal"
		if body, err = json.Marshal(request); err != nil {
			t.Error(err)
		}
		body = d.rename(body, "reasoning", "reasoning_content")
		inner, err := http.NewRequestWithContext(r.Context(), http.MethodPost,
			simulated+"/v1/chat/completions", bytes.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		inner.Header.Set("Authorization", "Bearer any")
		resp, err := http.DefaultClient.Do(inner)
		if err != nil {
			return // the client has left
		}
		defer resp.Body.Close()
		reply, _ := io.ReadAll(resp.Body)
		reply = d.rename(reply, "reasoning_content", "reasoning")
		reply = bytes.Replace(reply, []byte(`"model":"sim/optimal"`),
			[]byte(`"model":"`+d.served+`"`), 1)
		if d.more != "" && resp.StatusCode == http.StatusOK {
			reply = append(bytes.TrimSuffix(bytes.TrimSpace(reply), []byte("}")), ","+d.more+"}"...)
		}
		for name, value := range d.headers {
			w.Header().Set(name, value)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(resp.StatusCode)
		_, _ = w.Write(reply)
	})
}

// rename renames a field if the dialect's thoughts are in reasoning.
func (d *dialect) rename(body []byte, from, to string) []byte {
	if d.think != "reasoning" {
		return body
	}
	return bytes.ReplaceAll(body, []byte(`"`+from+`":`), []byte(`"`+to+`":`))
}

// TestLiteLLMRecipe checks LiteLLM itself with the recipe of docs/recipes.md.
func TestLiteLLMRecipe(t *testing.T) {
	t.Parallel()
	program := stranger(t, "ASSAY_LITELLM")
	upstream := serveProgram(t, "--thinking", "reasoning_content")
	dir := t.TempDir()
	url := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	config := file(t, dir, "config.yaml", `model_list:
  - model_name: my-model
    litellm_params: {model: openai/sim/optimal, api_base: `+upstream+`/v1, api_key: any}
general_settings: {master_key: sk-canary-proxy-0123}
`)
	cmd := exec.CommandContext(t.Context(), program, "--config", config, "--host", "127.0.0.1",
		"--port", url[strings.LastIndexByte(url, ':')+1:])
	cmd.Env = append(environment, "LITELLM_LOCAL_MODEL_COST_MAP=True")
	startStranger(t, url+"/health/liveliness", cmd)

	for _, text := range blocks(readDocument(t, "docs/recipes.md"), "yaml") {
		if !strings.HasPrefix(text, "# litellm.yaml") {
			continue
		}
		text = strings.Replace(text, dialects["litellm.yaml"].address, url, 1)
		text = strings.Replace(text, "upstream-model", "sim/optimal", 1)
		path := file(t, dir, "litellm.yaml", text)
		check := func(key string) result {
			return call(t, map[string]string{"LITELLM_API_KEY": key}, "check", "--providers", path)
		}
		r := check("sk-canary-proxy-0123")
		if r.code != 0 || !showsCheck(r.out) {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		r = check("sk-other-proxy-0123")
		if r.code != 3 || !strings.Contains(r.out, "No connected db.") {
			t.Errorf("a wrong key: exit code %d\n%s%s", r.code, r.out, r.err)
		}
	}
}
