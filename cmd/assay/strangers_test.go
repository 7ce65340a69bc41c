package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// The tests of this file run against servers that others wrote: aimock, which answers in the
// dialects of many providers, and LiteLLM's proxy, which translates between them. `make strangers`
// installs both.

// strangerExperiment has trials whose right answers do not depend on luck.
const strangerExperiment = `name: stranger
models: [%s]
variants: [optimal]
difficulties: [easy]
task_types: [basic_task]
reliabilities: [1]
tasks_per_type: %d
%s
`

// stranger returns the program named by a variable, and skips the test without it.
func stranger(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s is not set; see `make test-all` and `make strangers`", variable)
	}
	return path
}

// startStranger runs a server until the end of the test. It returns once GET url succeeds.
func startStranger(t *testing.T, url string, cmd *exec.Cmd) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		log.Close()
	})
	for {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-ended:
			ended <- err
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%s ended: %v\n%s", cmd.Path, err, text)
		case <-t.Context().Done():
			t.Fatalf("%s does not answer", cmd.Path)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// freePort returns a port on which no one listens.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// TestAimock plays one trial in each protocol against aimock. Its replies are the replies of
// sim/optimal to the same task, with thinking.
func TestAimock(t *testing.T) {
	t.Parallel()
	program := stranger(t, "ASSAY_AIMOCK")
	dir := t.TempDir()
	port := freePort(t)
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	fixtures := file(t, dir, "fixtures.json", aimockFixtures(t, dir))
	startStranger(t, url+"/health", exec.CommandContext(t.Context(), "node", program,
		"--port", fmt.Sprint(port), "--fixtures", fixtures, "--strict"))

	for _, c := range []struct {
		protocol, base, settings string
		// model is an entry of the experiment's models. The default is gpt-5.
		model string
		// path is the path of a request if aimock's journal shows the state in it.
		path string
	}{
		{protocol: "openai", base: "/v1", path: "/v1/chat/completions"},
		{protocol: "openai", base: "/api/v1", path: "/api/v1/chat/completions"}, // OpenRouter's
		{protocol: "azure", settings: "\n    api_version: 2025-04-01-preview"},
		{protocol: "responses", base: "/v1"},
		// aimock refuses a conversation whose thinking was lost or cut.
		{protocol: "anthropic", model: "{name: claude-sonnet-4-5, thinking: 2048}"},
		{protocol: "gemini", base: "/v1beta", model: "{name: gemini-3-pro, effort: high}"},
	} {
		t.Run(c.protocol+c.base, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file(t, dir, "providers.yaml", fmt.Sprintf(`providers:
  aimock:
    protocol: %s
    base_url: %s%s%s
    keys: [AIMOCK_KEY]
    models:
      gpt-5: {limits: {concurrency: 2}}
      claude-sonnet-4-5: {limits: {concurrency: 2}}
      gemini-3-pro: {serves: [""], limits: {concurrency: 2}} # aimock leaves the model out
`, c.protocol, url, c.base, c.settings))
			plan := file(t, dir, "experiment.yaml",
				fmt.Sprintf(strangerExperiment, cmp.Or(c.model, "gpt-5"), 1, "providers: providers.yaml"))
			db := filepath.Join(dir, "a.db")
			must(t, map[string]string{"AIMOCK_KEY": "canary-aimock-0123456789"},
				"run", plan, "--store", db, "--display", "none")
			got := attempts(t, db)
			if len(got) != 1 || got[0].Level != assay.FullSuccess {
				t.Fatalf("attempts are %+v, want one full success", got)
			}
			if c.path != "" {
				checkThoughts(t, url, c.path)
			}
		})
	}
}

// checkThoughts checks that each request on a path has the thoughts of all replies before it.
func checkThoughts(t *testing.T, url, path string) {
	t.Helper()
	resp, err := http.Get(url + "/__aimock/journal?path=" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var requests []struct {
		Body struct {
			Messages []struct {
				Role    string `json:"role"`
				Thought string `json:"reasoning_content"`
			} `json:"messages"`
		} `json:"body"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&requests); err != nil {
		t.Fatal(err)
	}
	thoughts := 0
	for _, r := range requests {
		n := 0
		for _, m := range r.Body.Messages {
			if m.Role != string(assay.Assistant) {
				continue
			}
			n++
			thoughts++
			if want := thoughtNumber(n); m.Thought != want {
				t.Errorf("reply %d went back with the thought %q, want %q", n, m.Thought, want)
			}
		}
	}
	if thoughts == 0 {
		t.Errorf("the journal has no reply in %d requests", len(requests))
	}
}

func thoughtNumber(n int) string { return fmt.Sprintf("Thought number %d.", n) }

// aimockFixtures returns the replies of sim/optimal to the only trial, as aimock's fixtures.
func aimockFixtures(t *testing.T, dir string) string {
	t.Helper()
	type toolCall struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type fixture struct {
		Match struct {
			TurnIndex int `json:"turnIndex"`
		} `json:"match"`
		Response struct {
			Content   string     `json:"content,omitempty"`
			ToolCalls []toolCall `json:"toolCalls,omitempty"`
			Reasoning string     `json:"reasoning"`
		} `json:"response"`
	}
	var all struct {
		Fixtures []fixture `json:"fixtures"`
	}
	plan := file(t, dir, "model.yaml", fmt.Sprintf(strangerExperiment, "sim/optimal", 1, ""))
	path := filepath.Join(dir, "model.db")
	must(t, nil, "run", plan, "--store", path, "--display", "none", "--sim-latency", "0s")
	for _, m := range firstTranscript(t, path).Messages {
		if m.Role != assay.Assistant {
			continue
		}
		f := fixture{}
		f.Match.TurnIndex = len(all.Fixtures)
		f.Response.Content = m.Content
		f.Response.Reasoning = thoughtNumber(len(all.Fixtures) + 1)
		for _, c := range m.Calls {
			f.Response.ToolCalls = append(f.Response.ToolCalls, toolCall{c.Name, c.Arguments})
		}
		all.Fixtures = append(all.Fixtures, f)
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// firstTranscript returns the transcript of the first attempt in a store.
func firstTranscript(t *testing.T, path string) assay.Transcript {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		transcript, err := db.Transcript(t.Context(), a.ID, a.Number)
		if err != nil {
			t.Fatal(err)
		}
		return transcript
	}
	t.Fatal("the store has no attempt")
	return assay.Transcript{}
}

// TestLiteLLM runs trials through LiteLLM's proxy in front of a simulated server, which insists on
// its thinking. The proxy does not change the results.
func TestLiteLLM(t *testing.T) {
	t.Parallel()
	program := stranger(t, "ASSAY_LITELLM")
	upstream := serveProgram(t, "--thinking", "reasoning_content")
	dir := t.TempDir()
	port := freePort(t)
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	config := file(t, dir, "litellm.yaml", fmt.Sprintf(`model_list:
  - model_name: sim/optimal
    litellm_params: {model: openai/sim/optimal, api_base: %[1]s/v1, api_key: canary-upstream-0123}
  - model_name: sim-optimal-2
    litellm_params: {model: anthropic/sim/optimal, api_base: %[1]s, api_key: canary-upstream-0123}
  - model_name: sim-optimal-3
    litellm_params: {model: gemini/sim-optimal-3, api_base: %[1]s/v1beta, api_key: canary-upstream-0123}
general_settings: {master_key: sk-canary-proxy-0123}
`, upstream))
	cmd := exec.CommandContext(t.Context(), program, "--config", config, "--host", "127.0.0.1",
		"--port", fmt.Sprint(port))
	cmd.Env = append(environment, "LITELLM_LOCAL_MODEL_COST_MAP=True")
	startStranger(t, url+"/health/liveliness", cmd)

	const trials = 12
	plan := file(t, dir, "direct.yaml", fmt.Sprintf(strangerExperiment, "sim/optimal", trials, ""))
	direct := filepath.Join(dir, "direct.db")
	must(t, nil, "run", plan, "--store", direct, "--display", "none", "--sim-latency", "0s")

	for _, c := range []struct{ protocol, base, deployment string }{
		{"openai", "/v1", "sim/optimal"},
		{"responses", "/v1", "sim/optimal"},
		{"anthropic", "", "sim-optimal-2"},
		{"gemini", "/v1beta", "sim-optimal-3"},
	} {
		t.Run(c.protocol, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file(t, dir, "providers.yaml", fmt.Sprintf(`providers:
  proxy:
    protocol: %s
    base_url: %s%s
    keys: [PROXY_KEY]
    models:
      sim/optimal: {deployments: [%s], serves: [sim/optimal], limits: {concurrency: 4}}
`, c.protocol, url, c.base, c.deployment))
			plan := file(t, dir, "experiment.yaml",
				fmt.Sprintf(strangerExperiment, "sim/optimal", trials, "providers: providers.yaml"))
			db := filepath.Join(dir, "a.db")
			must(t, map[string]string{"PROXY_KEY": "sk-canary-proxy-0123"},
				"run", plan, "--store", db, "--display", "none")
			got, want := levels(t, db), levels(t, direct)
			if len(got) != trials {
				t.Errorf("%d trials, want %d", len(got), trials)
			}
			for id, level := range want {
				if got[id] != level {
					t.Errorf("trial %s: %q through the proxy, %q without it", id, got[id], level)
				}
			}
			if reply := firstTranscript(t, db).Messages[2]; reply.State == nil {
				t.Errorf("the first reply has no thinking: %+v", reply)
			}
			text, err := os.ReadFile(db)
			if err != nil || strings.Contains(string(text), "canary") {
				t.Errorf("the store has a key (%v)", err)
			}
		})
	}
}

// TestLiteLLMLimits runs trials through LiteLLM's proxy with a key that may have 6 requests in
// flight, although its refusals ask to wait a minute. With ASSAY_SOAK, it also runs them with 100
// requests a minute for a key and for a model, twice on the same store.
func TestLiteLLMLimits(t *testing.T) {
	t.Parallel()
	program := stranger(t, "ASSAY_LITELLM")
	upstream := serveProgram(t, "--latency", "200ms")
	dir := t.TempDir()
	file(t, dir, "keys.py", `from litellm.proxy._types import UserAPIKeyAuth

LIMITS = {
    "sk-canary-parallel": {"max_parallel_requests": 6},
    "sk-canary-rpm": {"rpm_limit": 100},
    "sk-canary-model": {"metadata": {"model_rpm_limit": {"sim/optimal": 100}}},
}


async def auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, **LIMITS[api_key])
`)
	config := file(t, dir, "litellm.yaml", fmt.Sprintf(`model_list:
  - model_name: sim/optimal
    litellm_params: {model: openai/sim/optimal, api_base: %s/v1, api_key: any}
general_settings: {custom_auth: keys.auth, master_key: sk-canary-0123456789abcdef0123456789abcdef}
`, upstream))
	port := freePort(t)
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	cmd := exec.CommandContext(t.Context(), program, "--config", config, "--host", "127.0.0.1",
		"--port", fmt.Sprint(port))
	cmd.Env = append(environment, "LITELLM_LOCAL_MODEL_COST_MAP=True")
	startStranger(t, url+"/health/liveliness", cmd)
	file(t, dir, "providers.yaml", fmt.Sprintf(`providers:
  proxy: {protocol: openai, base_url: %s/v1, keys: [PROXY_KEY], models: {sim/optimal: {}}}
`, url))

	soak := os.Getenv("ASSAY_SOAK") != ""
	for _, c := range []struct {
		key, found string
		runs       int
	}{
		{"parallel", "at most 6 in flight", 2}, {"rpm", "", 2}, {"model", "", 2},
	} {
		if c.key != "parallel" && !soak {
			continue
		}
		t.Run(c.key, func(t *testing.T) {
			t.Parallel()
			db := filepath.Join(dir, c.key+".db")
			for n := 1; n <= c.runs; n++ {
				const trials = 20
				plan := file(t, dir, c.key+".yaml", fmt.Sprintf(strangerExperiment, "sim/optimal",
					trials, fmt.Sprintf("providers: providers.yaml\nrepeats: %d", n)))
				t.Log(must(t, map[string]string{"PROXY_KEY": "sk-canary-" + c.key},
					"run", plan, "--store", db, "--display", "none").out)
				out := strings.Join(strings.Fields(must(t, nil, "report", "--details", "--store", db).out), " ")
				if !strings.Contains(out, c.found) {
					t.Errorf("the report of run %d lacks %q:\n%.3000s", n, c.found, out)
				}
				for _, a := range attempts(t, db) {
					if a.Level == "" {
						t.Errorf("trial %s has the fault %s", a.ID, a.FaultKind)
					}
				}
				if got := len(levels(t, db)); got != n*trials {
					t.Errorf("%d trials, want %d", got, n*trials)
				}
			}
		})
	}
}

// levels returns the level of each trial.
func levels(t *testing.T, path string) map[assay.TrialID]assay.Level {
	t.Helper()
	all := make(map[assay.TrialID]assay.Level)
	for _, a := range attempts(t, path) {
		all[a.ID] = a.Level
	}
	return all
}
