//go:build !race

package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestImportAndProofAgree checks that an import finds the tasks that no policy solves when they are
// played: here one of eleven steps.
func TestImportAndProofAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tools := make(map[string]any)
	var names []string
	for i := range 11 {
		name := fmt.Sprintf("tool_%02d", i)
		names = append(names, name)
		tools[name] = map[string]any{
			"description": "Does something.",
			"returns":     []any{map[string]any{"name": "success", "type": "boolean"}},
			"errors":      []any{map[string]any{"code": "TIMEOUT"}},
		}
	}
	var tasks []assay.Task
	for i := range 11 {
		tasks = append(tasks, assay.Task{
			ID: assay.TaskID(fmt.Sprint("task-", i)), Description: fmt.Sprint("Do ", i, "."),
			Required: names[:i+1],
		})
	}
	opts := library.ImportOptions{
		Tasks: filepath.Join(dir, "tasks.json"), Tools: filepath.Join(dir, "tools.json"),
		Out: filepath.Join(dir, "lib.db"), Solvable: Solvable,
	}
	write(t, opts.Tools, tools)
	write(t, opts.Tasks, foreign(tasks))
	report, err := library.Import(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := library.Open(t.Context(), opts.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	proof, err := Library(t.Context(), lib, world.Assay1Name, silent)
	if err != nil {
		t.Fatal(err)
	}
	counted := 0
	for _, f := range report.Findings {
		if f.Kind == library.Unsolvable {
			counted = f.Tasks
		}
	}
	if counted != proof.Unsolvable || counted == 0 || counted == len(tasks) {
		t.Errorf("%d tasks cannot be solved by the import, %d by the proof: %+v",
			counted, proof.Unsolvable, report.Findings)
	}
}

// foreign returns tasks as a task file has them.
func foreign(tasks []assay.Task) (all []map[string]any) {
	for _, t := range tasks {
		all = append(all, map[string]any{
			"id": t.ID, "task_type": "simple_task", "description": t.Description,
			"required_tools": t.Required,
		})
	}
	return all
}

func write(t *testing.T, path string, content any) {
	t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReliabilitiesTakeTurns checks that each of twelve tasks is played with sure tools, and that
// the other reliabilities have equally many of them.
func TestReliabilitiesTakeTurns(t *testing.T) {
	t.Parallel()
	got := make(map[float64]int)
	for n := range 12 {
		for _, r := range reliabilitiesOf(n) {
			got[r]++
		}
	}
	want := map[float64]int{1: 12, 0.9: 4, 0.8: 4, 0.6: 4}
	if !maps.Equal(got, want) {
		t.Errorf("tasks by reliability: %v, want %v", got, want)
	}
}

// TestGamesThatPay checks the limits of agents that do not do the task. With luck, three of 42 may
// be 2 % by the exact bound: P(X ≥ 3) is .05, and P(X ≥ 6) is .0002.
func TestGamesThatPay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		game Game
		want bool
	}{
		{"2 of 126", Game{Reliability: 1, Tasks: 126, Full: 2}, false},
		{"3 of 126", Game{Reliability: 1, Tasks: 126, Full: 3}, true},
		{"3 of 19", Game{Reliability: 1, Tasks: 19, Full: 3}, false},
		{"partial", Game{Reliability: 1, Tasks: 126, Partial: 7}, true},
		{"three by luck", Game{Reliability: .6, Tasks: 42, Full: 3}, false},
		{"more than luck", Game{Reliability: .6, Tasks: 42, Full: 6}, true},
		{"partial by luck", Game{Reliability: .6, Tasks: 42, Partial: 7}, false},
		{"partial beyond luck", Game{Reliability: .6, Tasks: 42, Partial: 10}, true},
		{"copier", Game{Agent: sim.Copier, Fair: "x", Reliability: .6, Tasks: 42, Full: 1}, true},
		{"copier of most", Game{Agent: sim.Copier, Fair: "x", Reliability: 1, Tasks: 42, Partial: 42}, false},
		{"starter", Game{Agent: sim.Starter, Fair: "x", Reliability: 1, Tasks: 126, Full: 3}, true},
		{"starter of parts", Game{Agent: sim.Starter, Fair: "x", Reliability: 1, Tasks: 42, Partial: 42}, false},
		{"inputs", Game{Agent: sim.Inputs, Fair: "x", Reliability: 1, Tasks: 126, Full: 126}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := tc.game.Pays(); got != tc.want {
				t.Errorf("Pays() = %v, want %v: at least as many by chance %.4f, %.4f", got, tc.want,
					atLeast(tc.game.Full, tc.game.Tasks, MaxFull),
					atLeast(tc.game.Partial, tc.game.Tasks, MaxPartial))
			}
		})
	}
}

// TestValidateComparesOracleWithPlanner plays a library in which every task can be solved. The
// library is not sound if the planner promises more successes than the oracle has.
func TestValidateComparesOracleWithPlanner(t *testing.T) {
	t.Parallel()
	lib := control(t)
	for _, tc := range []struct {
		name  string
		extra float64 // successes that the planner promises beyond those it computes
		sound bool
	}{
		{"promise kept", 0, true},
		{"promise broken", 50, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := newValidator(lib, world.Assay1Name)
			if err := v.playAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			v.results[0].planned += tc.extra
			p := v.conclude()
			if p.Sound != tc.sound || p.Unsolvable+len(p.Failed)+len(p.Null) != 0 {
				t.Errorf("proof = %+v, want Sound %v and no bad tasks", p, tc.sound)
			}
		})
	}
}

// control opens a library with a task that can be solved, and with others.
func control(t *testing.T, others ...assay.Task) *library.Library {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lib.db")
	parameter := func(kind string) assay.Parameter {
		return assay.Parameter{Name: "page", Type: kind, Required: true}
	}
	tools := []assay.Tool{
		{
			Name: "tool_0", Description: "Does something.",
			Returns: []assay.Return{{Name: "success", Type: "boolean"}},
			Errors:  []assay.ToolError{{Code: "TIMEOUT"}},
		},
		{ // no value is both a text and a number
			Name: "reader", Description: "Reads.",
			Parameters: []assay.Parameter{parameter("string"), parameter("number")},
		},
	}
	tasks := append(others, taskOf("control", "tool_0"))
	err := library.Create(t.Context(), path, library.Meta{}, tools, slices.Values(tasks))
	if err != nil {
		t.Fatal(err)
	}
	lib, err := library.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lib.Close() })
	return lib
}

func taskOf(id assay.TaskID, required ...string) assay.Task {
	return assay.Task{
		ID: id, Type: "basic_task", Difficulty: "easy", Description: "Do it.", Required: required,
	}
}

// TestUnsoundTasksAreNamed plays tasks that no oracle solves. In the world pilot, arguments make no
// difference.
func TestUnsoundTasksAreNamed(t *testing.T) {
	t.Parallel()
	lib := control(t, taskOf("refused", "reader"), taskOf("empty"))
	for name, want := range map[string][]string{
		world.Assay1Name: {"empty (easy)", "refused (easy)"}, world.PilotName: {"empty (easy)"},
	} {
		p, err := Library(t.Context(), lib, name, silent)
		slices.Sort(p.Failed)
		if err != nil || p.Sound || !slices.Equal(p.Failed, want) {
			t.Errorf("%s: %v, %+v, want %q", name, err, p, want)
		}
	}
}
