package bridge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/task/library"
)

// A request hangs until its bound, or until the agent leaves or the attempt ends. Then its connection
// breaks.
func TestHangsAreBounded(t *testing.T) {
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
	trial := assay.NewTrial(assay.Cell{Model: "agent", Variant: assay.Optimal, Reliability: 1},
		assay.TaskRef{ID: task.ID}, assay.Setting{
			World: "assay-1", Protocol: assay.Native, Tools: assay.Discover, Turns: 15, Calls: 10,
		}, 7, 1)
	never := func(context.CancelFunc, context.CancelFunc) {}
	for name, tc := range map[string]struct {
		after   time.Duration
		unless  func(leave, end context.CancelFunc)
		listens bool
	}{
		"bound":   {30 * time.Second, never, true},
		"leaves":  {5 * time.Second, func(leave, _ context.CancelFunc) { time.Sleep(5 * time.Second); leave() }, true},
		"is over": {7 * time.Second, func(_, end context.CancelFunc) { time.Sleep(7 * time.Second); end() }, true},
		"is gone": {0, func(leave, _ context.CancelFunc) { leave() }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			stage, err := episode.NewRunner(lib.Catalog(), 0).Stage(t.Context(), &trial, &task)
			if err != nil {
				t.Fatal(err)
			}
			asks, leave := context.WithCancel(t.Context())
			attempts, end := context.WithCancel(t.Context())
			defer leave()
			defer end()
			a := &attempt{stage: stage, ctx: attempts, model: "m"}
			if !tc.listens {
				tc.unless(leave, end)
			} else {
				go tc.unless(leave, end)
			}
			began := time.Now()
			func() {
				defer func() {
					if v := recover(); v != http.ErrAbortHandler {
						t.Errorf("%s: %v", name, v)
					}
				}()
				defer a.contain()
				asking := stage.Asks()
				asking.Fault = assay.ModelHang
				a.fail(httptest.NewRecorder(), httptest.NewRequestWithContext(asks, http.MethodPost, "/", nil),
					protocol.Dialects(gateway.ThinkingNone)[0], &gateway.Prompt{}, asking)
			}()
			if got := time.Since(began); got != tc.after {
				t.Errorf("%s: it hung for %v", name, got)
			}
			_, script := stage.Conclude(assay.Finished, "", &assay.AgentRecord{}, nil)
			if f := script.ModelFaults(); len(f) != 1 || f[0].Delivered != tc.listens || f[0].Recovered {
				t.Errorf("%s: %+v", name, f)
			}
		})
	}
}
