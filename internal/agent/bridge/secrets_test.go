package bridge_test

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/task/child"
)

func TestTokenOpensItsOwnAttemptOnly(t *testing.T) {
	t.Parallel()
	s := open(t)
	var mu sync.Mutex
	var env [2]map[string]string
	ready := make(chan struct{}, 2)
	hold := make(chan struct{})
	service := func(i int) *bridge.Runner {
		return s.Runner(s.episodes, bridge.Agent{
			Name: "agent", Model: "m", Timeout: time.Minute,
			URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
				body := bodyOf(r)
				mu.Lock()
				env[i] = body
				mu.Unlock()
				ready <- struct{}{}
				<-hold
				fmt.Fprint(w, `{"text": "TASK_COMPLETED"}`)
			}),
		})
	}
	var wg sync.WaitGroup
	for i := range env {
		wg.Go(func() {
			trial, task := s.trial(i, assay.Discover)
			a, _ := service(i).Run(t.Context(), s.models, trial, task)
			if want := `status 200: {"text": "TASK_COMPLETED"}`; bridge.Unstarted(a) != want {
				t.Errorf("ended %q (%s), want no action", a.Ended, a.FaultDetail)
			}
		})
	}
	<-ready
	<-ready
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	status := func(url, token, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			t.Error(err)
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	chat := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	for i, own := range env {
		other := env[1-i]
		if got := status(own["mcp_url"], own["token"], list); got != http.StatusOK {
			t.Errorf("its own token: %d", got)
		}
		for _, token := range []string{other["token"], "", "x"} {
			if got := status(own["mcp_url"], token, list); got != http.StatusUnauthorized {
				t.Errorf("tools with token %q: %d", token, got)
			}
			if got := status(own["model_url"]+"/v1/chat/completions", token, chat); got != http.StatusUnauthorized {
				t.Errorf("model with token %q: %d", token, got)
			}
		}
	}
	close(hold)
	wg.Wait()
	if got := status(env[0]["mcp_url"], env[0]["token"], list); got != http.StatusUnauthorized {
		t.Errorf("after the attempt: %d", got)
	}
}

func TestAgentSeesOnlyNamedVariables(t *testing.T) {
	const canary = "sk-canary-8f3a"
	t.Setenv("OPENAI_API_KEY", canary)
	t.Setenv("AWS_SECRET_ACCESS_KEY", canary)
	t.Setenv("MY_CONFIG", "named")
	s := open(t)
	trial, task := s.trial(0, assay.Discover)
	_, script := s.Runner(s.episodes, bridge.Agent{
		Name: "agent", Command: []string{s.program, asAgent, "environment"}, Model: "m",
		Timeout: time.Minute, Pass: []string{"MY_CONFIG"},
	}).Run(t.Context(), s.models, trial, task)
	out := script.Agent.Output
	if strings.Contains(out, canary) || !strings.Contains(out, "MY_CONFIG=named") {
		t.Errorf("the agent's environment:\n%s", out)
	}
	for _, name := range []string{
		"ASSAY_PROMPT", "ASSAY_MCP_URL", "ASSAY_TOKEN", "ASSAY_MODEL", "OPENAI_BASE_URL",
		"OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "HOME", "PATH", "TMPDIR",
	} {
		if !strings.Contains(out, name+"=") {
			t.Errorf("%s is not set", name)
		}
	}
}

func TestPlaceholdersInCommands(t *testing.T) {
	t.Parallel()
	s := open(t)
	trial, task := s.trial(0, assay.Discover)
	_, script := s.Runner(s.episodes, bridge.Agent{
		Name: "agent", Model: "gpt/5", Timeout: time.Minute, Command: []string{
			"sh", "-c", `for x in "$@"; do echo "$x"; done; echo "$ASSAY_MCP_URL" "$TMPDIR" "$ASSAY_TOKEN"`,
			"-", "{mcp_url} {scratch} {token}", "{model}", "{prompt}",
		},
	}).Run(t.Context(), s.models, trial, task)
	lines := strings.Split(script.Agent.Output, "\n")
	if first, last := lines[0], lines[len(lines)-1]; first != last || strings.Contains(first, "{") {
		t.Errorf("arguments %q, variables %q", first, last)
	}
	if lines[1] != "gpt-5" || !strings.Contains(script.Agent.Output, task.Description) {
		t.Errorf("the model and the prompt are missing: %q", lines)
	}
}

// A token of another attempt does not help an agent in a room: its port leads to its own attempt.
func TestRoomsOpenTheirOwnAttemptOnly(t *testing.T) {
	t.Parallel()
	if err := child.Rooms(); err != nil {
		t.Skipf("there are no rooms here: %v; apt-get install bubblewrap", err)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	s := open(t)
	told := make(chan map[string]string)
	done := make(chan struct{})
	victim := s.Runner(s.episodes, bridge.Agent{
		Name: "victim", Model: "m", Timeout: time.Minute,
		URL: serve(t, func(w http.ResponseWriter, r *http.Request) {
			told <- bodyOf(r)
			<-done
			fmt.Fprint(w, `{"text": "TASK_COMPLETED"}`)
		}),
	})
	go func() {
		trial, task := s.trial(0, assay.Listed)
		victim.Run(t.Context(), s.models, trial, task)
	}()
	other := <-told
	defer close(done)
	// It uses its own address and token once, which works, and then those of the other attempt.
	const script = `list='{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
for at in "$ASSAY_MCP_URL $ASSAY_TOKEN" "$OTHER"; do
	set -- $at
	curl -s -o /dev/null -w '%{http_code} ' -H "Authorization: Bearer $2" -H 'Content-Type: application/json' \
		-H 'Accept: application/json, text/event-stream' -d "$list" "$1"
done`
	trial, task := s.trial(1, assay.Listed)
	a, transcript := s.Runner(s.episodes, bridge.Agent{
		Name: "thief", Model: "m", Timeout: time.Minute, Command: []string{"sh", "-c", script},
		Set: map[string]string{"OTHER": other["mcp_url"] + " " + other["token"]},
	}).Run(t.Context(), s.models, trial, task)
	if got := transcript.Agent.Output; got != "200 401" {
		t.Errorf("its own attempt and another one answered %q: %s", got, a.FaultDetail)
	}
}
