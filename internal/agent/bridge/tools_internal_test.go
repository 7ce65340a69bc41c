package bridge

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/library"
)

// A slow call keeps its own caller waiting, but no other request of the agent, and the time is not
// the agent's. The end of the attempt ends the wait.
func TestSlowCallWaitsAlone(t *testing.T) {
	t.Parallel()
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	refs, err := lib.Refs(t.Context(), "simple_task", "easy")
	if err != nil {
		t.Fatal(err)
	}
	task, err := lib.Task(t.Context(), refs[0].ID, "easy")
	if err != nil {
		t.Fatal(err)
	}
	task.Inputs = json.RawMessage(`{"source": "a.csv"}`)
	cell := assay.Cell{Model: "agent", Variant: assay.Optimal, Reliability: .01, Faults: "slow=1"}
	trial := assay.NewTrial(cell, assay.TaskRef{ID: task.ID}, assay.Setting{
		World: "assay-1", Protocol: assay.Native, Tools: assay.Listed, Turns: 15,
	}, 7, 0)
	runner := episode.NewRunner(lib.Catalog(), 0)
	slow := &mcp.CallToolParamsRaw{Name: "file_operations_reader", Arguments: []byte(
		`{"source": "a.csv"}`)}

	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stage, err := runner.Stage(ctx, &trial, &task)
		if err != nil {
			t.Fatal(err)
		}
		a := &attempt{stage: stage, ctx: ctx, clock: newClock(100*time.Millisecond, func() {
			t.Error("the wait counts as the agent's time")
		})}
		defer a.clock.stop()

		begin := time.Now()
		result, _ := a.callTool(ctx, slow)
		seconds := secondsOf(t, result)
		want := time.Duration(seconds) * time.Second / hurry
		if got := time.Since(begin); seconds == 0 || got != want {
			t.Fatalf("waited %v after %d seconds, want %v: %+v", got, seconds, want, result.Content[0])
		}

		done := make(chan struct{})
		go func() { _, _ = a.callTool(ctx, slow); close(done) }()
		synctest.Wait()
		begin = time.Now()
		_, _ = a.callTool(ctx, &mcp.CallToolParamsRaw{Name: "teleport"})
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("another request waited %v", waited)
		}
		cancel()
		<-done
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the wait outlived the attempt by %v", waited)
		}
	})
}

func secondsOf(t *testing.T, r *mcp.CallToolResult) int {
	t.Helper()
	var answer struct{ Seconds int }
	if err := json.Unmarshal([]byte(r.Content[0].(*mcp.TextContent).Text), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Seconds
}

// Some frameworks, such as Mastra 0.24, drop properties that a schema does not mention.
func TestObjectsWithoutPropertiesAreOpen(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(objectSchema([]byte(`{"properties": {"any": {"type": "object"},
		"some": {"type": "object", "properties": {"ref": {"type": "string"}}},
		"none": {"type": "object", "additionalProperties": false}, "one": {"type": "number"}}}`)))
	want := `{"properties":{"any":{"additionalProperties":{},"properties":{},"type":"object"},` +
		`"none":{"additionalProperties":false,"type":"object"},"one":{"type":"number"},` +
		`"some":{"properties":{"ref":{"type":"string"}},"type":"object"}},"type":"object"}`
	if err != nil || string(got) != want {
		t.Errorf("%s\nwant %s: %v", got, want, err)
	}
}
