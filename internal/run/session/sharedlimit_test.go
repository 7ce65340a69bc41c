package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store"
)

// A watcher is a display that looks at a run while its agents work.
type watcher struct {
	recorder
	store string
	shown string
	state *terminal.Progress
}

func (w *watcher) Show(ctx context.Context, run session.Live) {
	for ctx.Err() == nil && w.state == nil {
		var view strings.Builder
		(&terminal.Plain{W: &view}).Show(run.Progress())
		if !strings.Contains(view.String(), " starting") {
			time.Sleep(time.Millisecond)
			continue
		}
		w.shown = view.String()
		if reply, err := session.Send(ctx, w.store, session.Order{Do: "status"}); err == nil {
			w.state = reply.Run
		}
	}
}

// play writes files to a directory and runs the experiment e.yaml among them, with at most some
// trials of each model, into the store s.db.
func play(
	t *testing.T, dir string, limit int, d session.Display, files map[string]string,
) *session.Summary {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := plan.Load(filepath.Join(dir, "e.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Open(t.Context(), e, limit)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	path := filepath.Join(dir, "s.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := session.New(j, session.Options{
		Store: path, Program: "test", Display: d, Env: os.LookupEnv,
	})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := s.Run(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// All revisions of an agent together keep its concurrency and share it. The view and the state show
// the states of their agents.
func TestRevisionsOfAnAgentShareItsConcurrency(t *testing.T) {
	dir := t.TempDir()
	display := &watcher{store: filepath.Join(dir, "s.db")}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sum := play(t, dir, 4, display, map[string]string{"log.sh": fmt.Sprintf(`
log="${0%%/*}/log"
echo + >>"$log"; sleep 0.1; "%s" %s call; echo - >>"$log"
`, program, asAgent), "providers.yaml": `agents:
  bot:
    command: [sh, log.sh]
    sandbox: none
    model: sim/listed
    concurrency: 3
`, "e.yaml": `
models: [{name: bot, revision: v1}, {name: bot, revision: v2}, bot]
providers: providers.yaml
task_types: [simple_task]
difficulties: [easy]
variants: [baseline]
tasks_per_type: 4
`})
	if sum.Done != 12 {
		t.Fatalf("%+v", sum)
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
	if !strings.Contains(display.shown, "agents are starting") &&
		!strings.Contains(display.shown, "agent is starting") {
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
