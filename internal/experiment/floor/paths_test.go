//go:build !race

package floor_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// makers returns tools, each given as "NAME KIND KIND", that make records of the second kind of
// records of the first one.
func makers(texts ...string) (tools []assay.Tool) {
	for _, text := range texts {
		w := strings.Fields(text)
		tools = append(tools, assay.Tool{
			Name: w[0], Category: "any", Operation: w[0],
			Description: fmt.Sprintf("Turns %s into %s.", w[1], w[2]),
			Parameters: []assay.Parameter{{
				Name: "data", Type: "object", Description: "The " + w[1] + " to work on.", Required: true,
			}},
			Returns: []assay.Return{{Name: "data", Type: "object"}},
			Errors:  []assay.ToolError{{Code: "TIMEOUT", Description: "It took too long."}},
		})
	}
	return tools
}

// TestPathsAreFloors plays the policies at tasks that name the first and the last records. Where one
// tool leads on from each kind of records, searching a path solves all of them; where two do, a third
// of them or so.
func TestPathsAreFloors(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	plain := makers("weigh apples pears", "wash pears plums", "peel plums figs", "dry figs dates",
		"split grapes lemons", "press lemons limes")
	double := append(slices.Clone(plain), makers("rinse pears plums", "skin plums figs")...)
	for _, tc := range []struct {
		tools       []assay.Tool
		least, most float64
	}{{plain, 40, 40}, {double, 3, 18}} {
		var tasks []assay.Task
		for i := range 40 {
			tasks = append(tasks, assay.Task{
				ID: assay.TaskID(fmt.Sprint("task-", i)), Type: "simple_task", Difficulty: "medium",
				Description: fmt.Sprintf("In week %d, apples came in. They have to end up as figs.", i),
				Inputs:      json.RawMessage(`{"data":{"records":3}}`),
				Required:    []string{"weigh", "wash", "peel"},
			})
		}
		path := filepath.Join(t.TempDir(), "tools.db")
		meta := library.Meta{Name: "paths"}
		if err := library.Create(t.Context(), path, meta, tc.tools, slices.Values(tasks)); err != nil {
			t.Fatal(err)
		}
		lib, err := library.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		defer lib.Close()
		setting := assay.Setting{
			World: world.Assay1Name, Protocol: assay.Native, Tools: assay.Listed,
			Turns: plan.DefaultTurns, Calls: plan.DefaultCalls,
		}
		for _, variant := range []string{assay.Baseline, assay.CoT, assay.Optimal} {
			cell := assay.Cell{
				Model: "m", Variant: variant, Difficulty: "medium", TaskType: "simple_task", Reliability: 1,
			}
			var trials []assay.Trial
			for i := range tasks {
				ref := assay.TaskRef{ID: tasks[i].ID, Digest: tasks[i].Digest()}
				trials = append(trials, assay.NewTrial(cell, ref, setting, 1, 1))
			}
			if assay.ShowsPlan(variant) { // which the policy does not read
				if n := wins(t, lib, trials, tasks); n < tc.least || n > tc.most {
					t.Errorf("%d tools, with a plan: %v wins, want %v to %v", len(tc.tools), n, tc.least, tc.most)
				}
				continue
			}
			floors, err := floor.Find(t.Context(), lib, slices.Values(trials))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range floors {
				if f.Policy != "path" || f.Full < tc.least || f.Full > tc.most {
					t.Errorf("%d tools, %s: floor %+v, want %v to %v", len(tc.tools), variant, f, tc.least, tc.most)
				}
			}
		}
	}
}

// wins counts the tasks that the policy "path" solves.
func wins(
	t *testing.T, lib *library.Library, trials []assay.Trial, tasks []assay.Task,
) (n float64) {
	t.Helper()
	all := floor.Policies(world.Assay1Name)
	i := slices.IndexFunc(all, func(p floor.Policy) bool { return p.Name == "path" })
	for k := range trials {
		a, _ := floor.NewPlayer(lib).Play(t.Context(), all[i], trials[k], &tasks[k], 0)
		if a.Level == assay.FullSuccess {
			n++
		}
	}
	return n
}
