//go:build !race

package floor_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// trials returns trials of the first tasks of each type at two difficulties with all kinds of plan.
func trials(t *testing.T, lib *library.Library, worldName string) (all []assay.Trial) {
	counts, err := lib.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	setting := assay.Setting{
		World: worldName, Protocol: assay.Native, Tools: assay.Listed,
		Turns: plan.DefaultTurns, Calls: plan.DefaultCalls,
	}
	for _, c := range counts {
		if c.Difficulty != "easy" && c.Difficulty != "hard" {
			continue
		}
		refs, err := lib.Refs(t.Context(), c.Type, c.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs[:6] {
			for _, reliability := range []float64{1, .8} {
				for _, variant := range []string{assay.Baseline, assay.Optimal} {
					cell := assay.Cell{
						Model: "m", Variant: variant, Difficulty: c.Difficulty, TaskType: c.Type,
						Reliability: reliability,
					}
					all = append(all, assay.NewTrial(cell, ref, setting, 1, 1))
				}
			}
		}
	}
	return all
}

func builtin(t *testing.T) *library.Library {
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lib.Close() })
	return lib
}

// TestFloorsAreKept plays with the cache: what was stored is read again, whatever its order and
// models, and a damaged file is not.
func TestFloorsAreKept(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	lib := builtin(t)
	planned := trials(t, lib, world.PilotName)[:24]
	find := func(ctx context.Context, planned []assay.Trial) (floor.Floors, error) {
		return floor.Find(ctx, lib, slices.Values(planned))
	}
	first, err := find(t.Context(), planned)
	if err != nil {
		t.Fatal(err)
	}
	// A context that has ended shows that nothing is played.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	slices.Reverse(planned)
	for i := range planned {
		planned[i].Model = "another"
	}
	again, err := find(over, planned)
	if err != nil || !maps.Equal(first, again) {
		t.Errorf("stored %v, read %v (%v)", first, again, err)
	}
	if _, err := find(over, planned[:10]); err == nil {
		t.Error("other trials have the same floors")
	}
	files, err := filepath.Glob(filepath.Join(dir, "assay", "floors", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v (%v), want one", files, err)
	}
	for _, text := range []string{"", "[]", "{", `[{"value":{"full":3,"best":2,"played":2}}]`} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := find(over, planned); err == nil {
			t.Errorf("%q was read as floors", text)
		}
	}
	if again, err := find(t.Context(), planned); err != nil || !maps.Equal(first, again) {
		t.Errorf("after a damage: floors %v (%v), want %v", again, err, first)
	}
}
