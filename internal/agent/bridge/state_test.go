package bridge_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// A held provider replies when it may.
type held struct {
	assay.Provider
	asked, reply chan struct{}
}

func (h *held) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	h.asked <- struct{}{}
	<-h.reply
	return h.Provider.Chat(ctx, req)
}

// The bridge knows the activity of each agent.
func TestStatesOfAgents(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := &held{s.models, make(chan struct{}), make(chan struct{})}
	trial, task := s.trial(0, assay.Listed)
	cell := trial.Cell
	cell.Reliability, cell.Faults = .01, "slow=1"
	own := *task
	own.Inputs = []byte(`{"source": "a.csv"}`)
	slow := assay.NewTrial(cell, assay.TaskRef{ID: task.ID}, trial.Setting, 7, 0)
	check := func(want assay.AgentState) {
		if diff := cmp.Diff(map[assay.AgentState]int{want: 1}, s.States(cell.Model)); diff != "" {
			t.Errorf("states (-want +got):\n%s", diff)
		}
	}
	send := func(env map[string]string, url, body string) <-chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url,
				bytes.NewReader([]byte(body)))
			req.Header = http.Header{
				"Authorization": {"Bearer " + env["token"]}, "Content-Type": {"application/json"},
				"Accept": {"application/json, text/event-stream"},
			}
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			if resp, err := client.Do(req); err != nil || resp.Body.Close() != nil {
				t.Errorf("%s: %v", url, err)
			}
		}()
		return done
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		env := bodyOf(r)
		check(assay.AgentStarting)
		const rpc = `{"jsonrpc":"2.0","id":1,"method":"tools/%s","params":%s}`
		<-send(env, env["mcp_url"], fmt.Sprintf(rpc, "list", "{}"))
		check(assay.AgentThinking)
		called := send(env, env["mcp_url"], fmt.Sprintf(rpc, "call",
			`{"name":"file_operations_reader","arguments":{"source":"a.csv"}}`))
		for s.States(cell.Model)[assay.AgentCalling] == 0 {
			select {
			case <-called:
				t.Error("the agent was never calling")
			case <-time.After(time.Millisecond):
				continue
			}
			break
		}
		asked := send(env, env["model_url"]+"/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
		<-p.asked
		check(assay.AgentAsking)
		close(p.reply)
		<-called
		<-asked
		check(assay.AgentThinking)
		fmt.Fprint(w, `{"text": "TASK_COMPLETED"}`)
	})
	runner := s.Runner(s.episodes, bridge.Agent{
		Name: "bot", Model: "m", Timeout: time.Minute, URL: url,
	})
	a, _ := runner.Run(t.Context(), p, &slow, &own)
	if a.Ended != assay.Finished {
		t.Errorf("ended %q (%s)", a.Ended, a.FaultDetail)
	}
	if states := s.States(cell.Model); len(states) > 0 {
		t.Errorf("after the attempt: %v", states)
	}
}
