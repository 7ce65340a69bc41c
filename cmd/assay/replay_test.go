//go:build !race

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// replayed are the experiments that the replay covers.
var replayed = []string{`
name: independent
models: [sim/expert, sim/optimal, sim/obedient, sim/listed, sim/batcher, sim/mute]
variants: [all]
reliabilities: [0.8]
tasks_per_type: 2
`, `
name: lasting
models: [sim/expert, sim/alphabet, sim/sprayer, sim/copier, sim/inputs, sim/guesser, sim/claimer]
variants: [all]
difficulties: [very_hard]
reliabilities: [0.6]
failures: {persistence: 0.5, burst: 0.2}
tasks_per_type: 1
`, `
name: kinds
models: [sim/expert, sim/optimal, sim/obedient, sim/batcher]
variants: [baseline, optimal]
reliabilities: [0.6]
failures: {kinds: {after: 0.3, before: 0.1, slow: 0.1, stale: 0.3, wrong_shape: 0.2}}
tasks_per_type: 4
`, `
name: outages
models: [sim/expert, sim/optimal, sim/obedient, sim/careful]
variants: [baseline, optimal]
reliabilities: [0.6]
failures: {kinds: {before: 0.4, down: 0.1, throttled: 0.5}}
tasks_per_type: 4
`, `
name: drift
models: [sim/expert, sim/optimal, sim/obedient, sim/careful]
variants: [baseline, optimal]
reliabilities: [0.6]
failures: {kinds: {before: 0.2, drift: 0.8}}
tasks_per_type: 4
`}

// python returns a Python that can replay trials.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("ASSAY_PYTHON")
	if name == "" {
		name = "python3"
	}
	out, err := exec.CommandContext(t.Context(), name, "-c", "import sqlite3").CombinedOutput()
	if err != nil {
		t.Skipf("%s cannot run (%v); ASSAY_PYTHON names another Python: %s", name, err, out)
	}
	return name
}

// TestReplay has an independent script, written from docs/worlds.md alone, replay trials of
// built-in models: luck, chance, mistakes, codes, results and verdicts have to be the same as in
// the store.
func TestReplay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: replays trials in Python")
	}
	python := python(t)
	dir := t.TempDir()
	path, tasks := filepath.Join(dir, "assay.db"), filepath.Join(dir, "tasks.db")
	mustProgram(t, "library", "generate", "-o", tasks)
	for i, text := range replayed {
		experiment := file(t, dir, fmt.Sprintf("%d.yaml", i), text)
		mustProgram(t, "run", experiment, "--store", path, "--quiet", "--sim-latency", "0s")
	}

	trials := file(t, dir, "trials.jsonl", shown(t, path))
	script := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "replay.py"),
		tasks, trials, "2025")
	out, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("the replay differs: %v\n%.4000s", err, out)
	}
	t.Logf("%s", out)
}

// shown returns the fields of `assay show --json` that the script reads, for each trial of a store.
func shown(t *testing.T, path string) string {
	t.Helper()
	trials := attempts(t, path)
	if len(trials) < 700 {
		t.Fatalf("%d trials; the replay is about at least 700", len(trials))
	}
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	for _, a := range trials {
		trial, err := query.FindTrial(t.Context(), db, string(a.ID), 0, true)
		if err != nil {
			t.Fatal(err)
		}
		show(t, &out, trial.Attempt, trial.Transcript)
	}
	return out.String()
}

func show(t *testing.T, out io.Writer, a assay.Attempt, tr any) {
	t.Helper()
	attempt, err := export.JSON(a)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(out).Encode(map[string]any{
		"attempt": json.RawMessage(attempt), "transcript": tr,
	}); err != nil {
		t.Fatal(err)
	}
}

// TestReplayOfChance replays a model that replies at random, on random tasks, with every protocol
// and tool setting. It comes to cases that built-in models and tasks never reach. Three of them are
// left out of the script in turn, and each time the replay has to differ.
func TestReplayOfChance(t *testing.T) {
	t.Parallel()
	python := python(t)
	dir := t.TempDir()
	catalog := assay.NewCatalog(library.Tools())
	tasks := randomTasks(catalog, 200)
	path := filepath.Join(dir, "tasks.db")
	if err := library.Create(t.Context(), path, library.Meta{Name: "random"}, library.Tools(),
		slices.Values(tasks)); err != nil {
		t.Fatal(err)
	}
	trials := file(t, dir, "trials.jsonl", wandered(t, catalog, tasks))
	script, err := os.ReadFile(filepath.Join("testdata", "replay.py"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, rule, without string }{
		{"all rules", "", ""},
		{"feed of another tool", "earlier.passes and earlier.name != tool.name", "earlier.passes"},
		{"no sound success", "and name not in self.sound", "and name not in self.results"},
		{
			"a call that happens", "useful = call.wanted_sound and call.happened",
			"useful = call.wanted_sound and call.ok",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(string(script), tc.rule, tc.without, 1)
			if text == string(script) != (tc.rule == "") {
				t.Fatalf("the script has no %q", tc.rule)
			}
			replay := file(t, t.TempDir(), "replay.py", text)
			out, err := exec.CommandContext(t.Context(), python, replay, path, trials,
				"2025").CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			last := lines[len(lines)-1]
			if (err == nil) != (tc.rule == "") || !strings.HasSuffix(last, " differences") {
				t.Errorf("the replay ends with %v:\n%.4000s", err, out)
			}
			t.Log(last)
		})
	}
}

// mixes are mixes of tool faults: without faults, with every kind alone, and with all kinds.
var mixes = []string{
	"", "after=1", "slow=1", "stale=1", "wrong_shape=1", "down=1", "throttled=1",
	"after=0.1,before=0.2,down=0.1,drift=0.2,stale=0.1,throttled=0.3",
	"after=0.2,before=0.3,slow=0.1,stale=0.3,wrong_shape=0.1",
}

// randomTasks returns tasks with the inputs of built-in ones, whose required tools are random.
// Plans insert their dependencies, some of them twice.
func randomTasks(catalog *assay.Catalog, n int) []assay.Task {
	dice := rand.New(rand.NewPCG(3, 4))
	var tasks []assay.Task
	for task := range library.Generate() {
		for len(tasks) < n && task.Difficulty == "easy" {
			task.Required = nil
			for _, i := range dice.Perm(len(catalog.Names()))[:1+dice.IntN(3)] {
				task.Required = append(task.Required, catalog.All()[i].Name)
			}
			if len(policy.Sequence(catalog, task.Required)) <= 7 {
				tasks = append(tasks, task)
				break
			}
		}
	}
	return tasks
}

// wandered plays each task with every protocol and tool setting.
func wandered(t *testing.T, catalog *assay.Catalog, tasks []assay.Task) string {
	t.Helper()
	runner := episode.NewRunner(catalog, 0)
	var out bytes.Buffer
	for i, task := range tasks {
		for _, protocol := range assay.Protocols {
			for _, tools := range []string{assay.Discover, assay.Listed} {
				cell := assay.Cell{
					Model: "wanderer", Variant: assay.Baseline, Difficulty: task.Difficulty,
					TaskType: task.Type, Reliability: []float64{1, .8, .6, .4}[i%4],
				}
				set := assay.Setting{
					World: world.Assay1Name, Protocol: protocol, Tools: tools,
					Turns: plan.DefaultTurns, Calls: plan.DefaultCalls,
					Persistence: .2 * float64(i%3), Burst: .1 * float64(i%5),
				}
				cell.Faults = mixes[i/2%len(mixes)]
				if i%7 == 0 {
					set.SeveralCalls = assay.RefuseSeveral
				}
				ref := assay.TaskRef{ID: task.ID, Digest: task.Digest()}
				trial := assay.NewTrial(cell, ref, set, plan.DefaultSeed, 1)
				w := &wanderer{
					catalog: catalog, trial: &trial, task: &task,
					plan: policy.Sequence(catalog, task.Required),
					dice: rand.New(rand.NewPCG(uint64(i), uint64(len(protocol+tools)))),
				}
				a, tr := runner.Run(t.Context(), w, &trial, &task)
				if !a.Settles() {
					t.Fatal(a.FaultDetail)
				}
				show(t, &out, *a, tr)
			}
		}
	}
	return out.String()
}

// A wanderer is a model that knows the task's plan and often strays from it.
type wanderer struct {
	catalog *assay.Catalog
	trial   *assay.Trial
	task    *assay.Task
	plan    []string
	dice    *rand.Rand
}

var succeededText = regexp.MustCompile(`"succeeded":\[([^\]]*)\]`)

// Chat implements [assay.Provider].
func (w *wanderer) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	var done []string
	if len(req.Messages) > 2 {
		last := req.Messages[len(req.Messages)-1].Content
		if found := succeededText.FindAllStringSubmatch(last, -1); found != nil {
			list := strings.ReplaceAll(found[len(found)-1][1], `"`, "")
			done = strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
		}
	}
	reply := assay.Message{Role: assay.Assistant}
	if w.dice.IntN(10) == 0 || len(done) >= len(policy.Distinct(w.plan)) && w.dice.IntN(3) > 0 {
		reply.Content = w.pick("TASK_COMPLETED", "TASK_COMPLETED: "+w.tool(done),
			"All done.\n**TASK_COMPLETED**", "XTASK_COMPLETED", "__TASK_COMPLETED__. "+w.tool(done),
			"TASK_COMPLETED_SOON "+w.tool(done)+", then TASK_COMPLETED", "I would think first.")
		return &assay.Response{Message: reply, ServedModel: req.Model}, nil
	}
	for range 1 + max(0, w.dice.IntN(5)-2) {
		w.act(&reply, done)
	}
	return &assay.Response{Message: reply, ServedModel: req.Model}, nil
}

func (w *wanderer) pick(texts ...string) string { return texts[w.dice.IntN(len(texts))] }

// tool returns the next tool of the plan, any tool of the plan, or any tool of the catalog.
func (w *wanderer) tool(done []string) string {
	switch w.dice.IntN(8) {
	case 0:
		return w.pick(w.catalog.Names()...)
	case 1, 2:
		return w.pick(w.plan...)
	}
	return w.plan[min(len(done), len(w.plan)-1)]
}

// act adds an action to a reply.
func (w *wanderer) act(reply *assay.Message, done []string) {
	kind, name := "tool_call", w.tool(done)
	arguments := w.arguments(name, done)
	switch w.dice.IntN(16) {
	case 0:
		kind = "tool_search"
	case 1:
		kind = "tool_info"
	case 2:
		name = w.pick("no_such_tool", "", " "+name+" ")
	case 3:
		arguments = w.pick("", "null", "[]", "{", "  ")
	}
	if w.trial.Protocol == assay.Tags {
		reply.Content += w.pick("So: ", "", "<tool_call>", "</tool_info>", "\n", "\n", "\n", "\n") +
			"<" + kind + ">" + name + w.pick(" ", "\n", "") + arguments + "</" + kind + ">"
		return
	}
	if w.trial.Tools == assay.Discover {
		inner := arguments
		if !json.Valid([]byte(inner)) {
			inner = "3"
		}
		quoted, _ := json.Marshal(name)
		name, arguments = kind, fmt.Sprintf(`{"tool":%s,"query":%s,"arguments":%s}`, quoted, quoted,
			inner)
	}
	id := fmt.Sprint("call_", w.dice.Uint64())
	reply.Calls = append(reply.Calls, assay.ToolCall{ID: id, Name: name, Arguments: arguments})
}

// arguments returns the arguments that a plan gives a tool. It damages some of them.
func (w *wanderer) arguments(tool string, done []string) string {
	right := workflow.Arguments(w.catalog, tool, w.task.Inputs, done)
	var args map[string]any
	if w.dice.IntN(3) > 0 || json.Unmarshal(right, &args) != nil {
		return string(right)
	}
	names := []string{"data", "source", "options", "bogus"}
	for name := range args {
		names = append(names, name, name)
	}
	slices.Sort(names)
	values := []any{nil, "", 3, 2.5, true, []any{}, w.tool(done)}
	for _, ref := range append([]string{"inputs", "inputs.data", "inputs.source", "none"}, w.plan...) {
		to := map[string]any{"ref": ref}
		values = append(values, to, map[string]any{"input": to})
	}
	name := w.pick(names...)
	args[name] = values[w.dice.IntN(len(values))]
	if w.dice.IntN(5) == 0 {
		delete(args, name)
	}
	damaged, _ := json.Marshal(args)
	return string(damaged)
}
