package bridge_test

import (
	"encoding/json"
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

// A stale answer repeats the latest success of its tool, as if it were new.
func TestStaleAnswerReachesTheAgent(t *testing.T) {
	t.Parallel()
	s := open(t)
	var answers []map[string]any
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		env := bodyOf(r)
		for range 8 {
			answers = append(answers, answerOf(t, env))
		}
		fmt.Fprint(w, `{"text": "TASK_COMPLETED"}`)
	})
	trial, task := s.trial(0, assay.Listed)
	own := *task
	own.Inputs = []byte(`{"source": "a.csv"}`)
	cell := trial.Cell
	cell.Reliability, cell.Faults = .5, "stale=1"
	stale := assay.NewTrial(cell, assay.TaskRef{ID: task.ID}, trial.Setting, 7, 3)
	runner := s.Runner(s.episodes, bridge.Agent{
		Name: "bot", Model: "m", Timeout: time.Minute, URL: url,
	})
	_, script := runner.Run(t.Context(), s.models, &stale, &own)
	if len(script.Calls) != len(answers) {
		t.Fatalf("%d calls with %d answers", len(script.Calls), len(answers))
	}
	var latest map[string]any
	repeated := 0
	for i, c := range script.Calls {
		delete(answers[i], "calls_left")
		switch {
		case c.Fault == assay.FaultStale && latest != nil:
			repeated++
			if diff := cmp.Diff(latest, answers[i]); diff != "" {
				t.Errorf("call %d (-latest success +stale):\n%s", i+1, diff)
			}
		case c.Met() == "":
			latest = answers[i]
		}
	}
	if repeated == 0 {
		t.Errorf("no answer was stale: %+v", script.Calls)
	}
}

// answerOf calls a tool and returns its answer.
func answerOf(t *testing.T, env map[string]string) map[string]any {
	t.Helper()
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` +
		`{"name":"file_operations_reader","arguments":{"source":"a.csv"}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, env["mcp_url"],
		strings.NewReader(call))
	if err != nil {
		t.Error(err)
		return nil
	}
	req.Header = http.Header{
		"Authorization": {"Bearer " + env["token"]}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"},
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	var reply struct {
		Result struct{ Content []struct{ Text string } }
	}
	answer := make(map[string]any)
	if err != nil || json.Unmarshal(body, &reply) != nil || len(reply.Result.Content) != 1 ||
		json.Unmarshal([]byte(reply.Result.Content[0].Text), &answer) != nil {
		t.Errorf("the answer is %s", body)
	}
	return answer
}
