package validate

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestValidateComparesOracleWithPlanner plays a library in which every task can be solved. The
// library is not sound if the planner promises more successes than the oracle has.
func TestValidateComparesOracleWithPlanner(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lib.db")
	tool := assay.Tool{
		Name:        "tool_0",
		Description: "Does something.",
		Returns:     []assay.Return{{Name: "success", Type: "boolean"}},
		Errors:      []assay.ToolError{{Code: "TIMEOUT"}},
	}
	task := assay.Task{
		ID: "control", Type: "basic_task", Difficulty: "easy", Description: "Do it.",
		Required: []string{tool.Name},
	}
	err := library.Create(t.Context(), path, library.Meta{}, []assay.Tool{tool},
		slices.Values([]assay.Task{task}))
	if err != nil {
		t.Fatal(err)
	}
	lib, err := library.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()

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
			v.planned = tc.extra
			if err := v.playAll(t.Context()); err != nil {
				t.Fatal(err)
			}
			p := v.conclude()
			if p.Sound != tc.sound || p.Unsolvable+len(p.Failed)+len(p.Null) != 0 {
				t.Errorf("proof = %+v, want Sound %v and no bad tasks", p, tc.sound)
			}
		})
	}
}
