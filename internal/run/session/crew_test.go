package session_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/live"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

// A watcher is a display that looks at a run while its agents work.
type watcher struct {
	recorder
	store string
	shown string
	state *session.State
}

func (w *watcher) Show(ctx context.Context, meter *live.Meter) {
	for ctx.Err() == nil && w.state == nil {
		var view strings.Builder
		(&live.Plain{W: &view}).Show(meter.Snapshot())
		if !strings.Contains(view.String(), "agents: ") {
			time.Sleep(time.Millisecond)
			continue
		}
		w.shown = view.String()
		if reply, err := session.Send(ctx, w.store, session.Order{Do: "status"}); err == nil {
			w.state = reply.Run
		}
	}
}

// All revisions of an agent together keep its concurrency and share it. The view and the state show
// what they are doing.
func TestRevisionsOfAnAgentShareItsConcurrency(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ctx, dir := t.Context(), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("providers.yaml", `agents:
  bot:
    command: [sh, -c, 'echo + >>log; sleep 0.1; echo - >>log']
    model: sim/listed
    concurrency: 3
`)
	e, err := plan.Load(write("e.yaml", `
models: [{name: bot, revision: v1}, {name: bot, revision: v2}, bot]
providers: providers.yaml
task_types: [simple_task]
difficulties: [easy]
variants: [baseline]
tasks_per_type: 4
`))
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Open(ctx, e, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	path := filepath.Join(dir, "s.db")
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	display := &watcher{store: path}
	s, err := session.New(j, session.Options{
		Store: path, Program: "test", Display: display, Env: os.LookupEnv,
	})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := s.Run(ctx, db)
	if err != nil || sum.Done != 12 {
		t.Fatalf("%+v, %v", sum, err)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	most, now := 0, 0
	for _, line := range strings.Fields(string(log)) {
		now += strings.Count(line, "+") - strings.Count(line, "-")
		most = max(most, now)
	}
	if most != 3 {
		t.Errorf("%d attempts of the agent at once at most, want 3\n%s", most, log)
	}
	if !strings.Contains(display.shown, " starting") {
		t.Errorf("the view has no state of an agent: %s", display.shown)
	}
	agents := 0
	for _, m := range display.state.Models {
		agents += m.Agents[assay.AgentStarting]
	}
	if agents == 0 || agents > 3 {
		t.Errorf("the state has %d starting agents: %+v", agents, display.state)
	}
}
