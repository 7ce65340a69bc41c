package own_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world/own"
)

// TestCatalogue plays the tasks of an environment of OpenEnv's catalogue as it is published. Its
// plans solve them. Without their last call, they do not, nor if that call does not happen.
func TestCatalogue(t *testing.T) {
	python := filepath.Join(examples, ".echo", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("examples/environments/install.sh echo installs it")
	}
	l, err := library.OpenNamed(t.Context(), filepath.Join(examples, "echo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, id := range []assay.TaskID{"pong", "ping-pong"} {
		task, err := l.Task(t.Context(), id, "easy")
		if err != nil {
			t.Fatal(err)
		}
		calls := task.Reference.Calls
		wrong := slices.Clone(calls)
		wrong[len(wrong)-1].Arguments = []byte(`{"message":"pang"}`)
		for name, c := range map[string]struct {
			calls []assay.Expected
			want  bool
		}{
			"the plan":            {calls, true},
			"no last call":        {calls[:len(calls)-1], false},
			"another last call":   {wrong, false},
			"a call after it":     {append(slices.Clone(calls), wrong[len(wrong)-1]), false},
			"the last call twice": {append(slices.Clone(calls), calls[len(calls)-1]), true},
		} {
			if g := play(t, l.Catalog(), trialOf(1, "", 1), &task, c.calls); g.verdict != fmt.Sprint(c.want) {
				t.Errorf("task %s, %s: success is %s", id, name, g.verdict)
			}
		}
	}
	task, err := l.Task(t.Context(), "pong", "easy")
	if err != nil {
		t.Fatal(err)
	}
	w := enter(t, l.Catalog(), trialOf(0, "before=1", 1), &task)
	if rec, err := w.Call(1, "echo_message", `{"message":"pong"}`); err != nil || rec.OK {
		t.Errorf("a call that is to fail: %+v, %v", rec, err)
	}
	state, err := w.End()
	tr := &assay.Transcript{Calls: w.Calls(), State: state, Ended: assay.Finished}
	o := own.Environments.Verdict(l.Catalog(), task, tr, nil)
	if err != nil || o.Level != assay.Failure {
		t.Errorf("after a call that did not happen: %+v, %v", o, err)
	}
}
