package atif_test

import (
	"bytes"
	"encoding/json"
	"iter"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/atif"
	"github.com/assay-eval/assay/internal/result/export"
)

func call(id, name, arguments string) assay.ToolCall {
	return assay.ToolCall{ID: id, Name: name, Arguments: arguments}
}

// odd is an attempt with everything that a conversation may have.
func odd() atif.Sample {
	a := assay.Attempt{Number: 2, Run: "01a0", Program: "1.2.3", StartedAt: time.Unix(1, 0), Sandbox: assay.InRoom}
	a.Trial.ID, a.Model, a.AgentModel = "3f2a", "coder", "gpt-x"
	a.Level, a.Ended = assay.PartialSuccess, assay.Finished
	a.InputTokens, a.OutputTokens, a.CachedTokens, a.CostUSD = 30, 12, 4, 0.25
	t := &assay.Transcript{
		Messages: []assay.Message{
			{Role: assay.System, Content: "Rules \xff."},
			{Role: assay.User, Content: "Task."},
			{Role: assay.Assistant, Reasoning: "Hm.", Calls: []assay.ToolCall{
				call("c1", "fetch", `{"n":1}`), call("c2", "fetch", `{"n":`), call("c3", "stop", ""), call("c4", "stop", "null"),
			}},
			{Role: assay.ToolRole, CallID: "c1", Content: "one"},
			{Role: assay.ToolRole, CallID: "c2", Content: "refused"},
			{Role: assay.ToolRole, CallID: "of nobody", Content: "late"},
			{Role: assay.User, Content: "Reply in the form."},
			{Role: assay.Assistant, Content: "Done."},
			{Role: assay.User, Content: "Thanks."},
			{Role: assay.Assistant, Content: "A reply that is in no record."},
		},
		Turns: []assay.TurnRecord{
			{
				ServedModel: "gpt-x-1", Usage: assay.Usage{InputTokens: 10, OutputTokens: 5, CachedTokens: 4, ReasoningTokens: 3},
				Requests: 2, Finish: "tool_calls", Assisted: true,
			},
			{ServedModel: "gpt-x-1", Usage: assay.Usage{InputTokens: 20, OutputTokens: 7}},
		},
		Calls: []assay.CallRecord{{Turn: 1, Tool: "fetch", OK: true, Chance: .8, Luck: .3}},
	}
	return atif.Sample{Attempt: a, Transcript: t}
}

func yield(samples ...atif.Sample) iter.Seq2[atif.Sample, error] {
	return func(yield func(atif.Sample, error) bool) {
		for _, s := range samples {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	fault := odd()
	fault.Attempt.Level, fault.Attempt.Ended, fault.Attempt.FaultKind = "", "", assay.Network
	fault.Attempt.UnpricedTokens = 1
	var out bytes.Buffer
	n, err := atif.Write(&out, yield(odd(), atif.Sample{Attempt: odd().Attempt}, fault))
	if n != 2 || err != nil { // one has no transcript
		t.Fatalf("%d lines, %v", n, err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var got, faulted map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(lines[1]), &faulted); err != nil {
		t.Fatal(err)
	}
	extra := got["extra"].(map[string]any)
	if extra["reward"] != 0.5 || extra["assay"].(map[string]any)["level"] != "partial_success" {
		t.Errorf("extra is %v", extra)
	}
	if _, ok := faulted["extra"].(map[string]any)["reward"]; ok {
		t.Error("a fault has a reward")
	}
	if _, ok := faulted["final_metrics"].(map[string]any)["total_cost_usd"]; ok {
		t.Error("an unknown cost has a number")
	}
	if a := faulted["extra"].(map[string]any)["assay"].(map[string]any); a["fault"] == "" || a["coverage"] != nil {
		t.Errorf("a fault has an outcome: %v", a)
	}
	record, err := export.JSON(odd().Attempt)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(lines[0], `"assay":`+string(record)) {
		t.Errorf("the attempt is not as JSON lines have it: %s", record)
	}
	delete(got, "extra")
	var want map[string]any
	if err := json.Unmarshal([]byte(`{
		"schema_version": "ATIF-v1.8", "session_id": "01a0", "trajectory_id": "3f2a-2",
		"agent": {"name": "coder", "version": "1.2.3", "model_name": "gpt-x", "extra": {"sandbox": "bubblewrap"}},
		"steps": [
			{"step_id": 1, "timestamp": "1970-01-01T00:00:01Z", "source": "system", "message": "Rules \ufffd."},
			{"step_id": 2, "source": "user", "message": "Task."},
			{"step_id": 3, "source": "agent", "model_name": "gpt-x-1", "message": "", "reasoning_content": "Hm.",
				"tool_calls": [
					{"tool_call_id": "c1", "function_name": "fetch", "arguments": {"n": 1}},
					{"tool_call_id": "c2", "function_name": "fetch", "arguments": {}, "extra": {"written_arguments": "{\"n\":"}},
					{"tool_call_id": "c3", "function_name": "stop", "arguments": {}},
					{"tool_call_id": "c4", "function_name": "stop", "arguments": {}, "extra": {"written_arguments": "null"}}
				],
				"observation": {"results": [
					{"source_call_id": "c1", "content": "one"}, {"source_call_id": "c2", "content": "refused"}, {"content": "late"}
				]},
				"metrics": {"prompt_tokens": 10, "completion_tokens": 5, "cached_tokens": 4,
					"extra": {"reasoning_tokens": 3, "requests": 2}},
				"llm_call_count": 1,
				"extra": {"finish": "tool_calls", "calls": [{"turn": 1, "tool": "fetch", "ok": true, "chance": 0.8, "luck": 0.3}]}},
			{"step_id": 4, "source": "user", "message": "Reply in the form.", "extra": {"correction": true}},
			{"step_id": 5, "source": "agent", "model_name": "gpt-x-1", "message": "Done.", "llm_call_count": 1,
				"metrics": {"prompt_tokens": 20, "completion_tokens": 7}},
			{"step_id": 6, "source": "user", "message": "Thanks."},
			{"step_id": 7, "source": "agent", "message": "A reply that is in no record."}
		],
		"final_metrics": {"total_prompt_tokens": 30, "total_completion_tokens": 12, "total_cached_tokens": 4,
			"total_cost_usd": 0.25, "total_steps": 7}
	}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trajectory (-want +got):\n%s", diff)
	}
	validated(t, out.String(), 2)
}

// TestRefuses checks that a conversation that no episode has is an error and no trajectory.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, m := range []assay.Message{{Role: assay.ToolRole, Content: "x"}, {Role: "judge"}} {
		s := odd()
		s.Transcript.Messages = []assay.Message{m}
		if n, err := atif.Write(new(bytes.Buffer), yield(s)); n != 0 || err == nil {
			t.Errorf("%s: %d lines, %v", m.Role, n, err)
		}
	}
}

// FuzzArguments checks that whatever a model writes becomes a valid line.
func FuzzArguments(f *testing.F) {
	f.Add("fetch", `{"a":1}`, "text")
	f.Add("", `{"a":1} x`, "\xff\x00")
	f.Add("f", `["a"]`, "\u2028")
	f.Add("f", `{"a":1,"a":2}`, "")
	f.Fuzz(func(t *testing.T, name, arguments, content string) {
		s := odd()
		s.Transcript.Messages[2].Calls[0] = call("c1", name, arguments)
		s.Transcript.Messages[3].Content = content
		var out bytes.Buffer
		if n, err := atif.Write(&out, yield(s)); n != 1 || err != nil {
			t.Fatalf("%d lines, %v", n, err)
		}
		var line struct {
			Steps []struct {
				Calls []struct{ Arguments map[string]any } `json:"tool_calls"`
			}
		}
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || strings.Count(out.String(), "\n") != 1 {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if line.Steps[2].Calls[0].Arguments == nil {
			t.Errorf("arguments %q are no object", arguments)
		}
	})
}

// validated lets the format's own models read lines, if there is a Python that has them.
func validated(t *testing.T, lines string, want int) {
	t.Helper()
	python := os.Getenv("ASSAY_PYTHON")
	if python == "" {
		t.Log("ASSAY_PYTHON names no Python with the format's models; make strangers does")
		return
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", `
import sys
from atif import Trajectory
print(sum(1 for line in sys.stdin if Trajectory.model_validate_json(line)))`)
	cmd.Stdin = strings.NewReader(lines)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != strconv.Itoa(want) {
		t.Errorf("%v: %s, want %d", err, out, want)
	}
}
