//go:build !race

package episode

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestKeptOpeningIsThatOfTheTrial draws trials that differ in one or several conditions, so an
// opening that is kept under too short a key comes back for another trial.
func TestKeptOpeningIsThatOfTheTrial(t *testing.T) {
	t.Parallel()
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	var tasks []*assay.Task
	refs, err := lib.Refs(t.Context(), assay.TaskTypes[0], "easy")
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs[:40] {
		task, err := lib.Task(t.Context(), ref.ID, "easy")
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, &task)
	}
	r, dice := NewRunner(lib.Catalog(), 0), rand.New(rand.NewPCG(1, 2))
	one := func(of ...string) string { return of[dice.IntN(len(of))] }
	shared, n := 0, 4000
	if testing.Short() {
		n = 400
	}
	for range n {
		task := tasks[dice.IntN(len(tasks))]
		trial := &assay.Trial{Task: task.ID, Seed: dice.Uint64N(3)}
		trial.Variant = assay.Variants[dice.IntN(len(assay.Variants))]
		if !slices.Contains(assay.PlainVariants, trial.Variant) {
			trial.Severity = one(assay.Severities...)
		}
		trial.Reliability = []float64{0.5, 0.8}[dice.IntN(2)]
		trial.Faults = one("", "before=1")
		trial.World = one(world.Simulated...)
		trial.Protocol = one("functions", assay.Tags)
		trial.Tools = one(assay.Discover, assay.Listed)
		trial.SeveralCalls = one("", assay.RefuseSeveral)
		trial.Setting.Turns, trial.Calls = 10+dice.IntN(2), dice.IntN(2)
		got, gotErr := r.opening(trial, task)
		want, wantErr := newOpening(lib.Catalog(), trial, task)
		if (gotErr == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
			t.Fatalf("trial %+v begins with %v, error %v; want %v, error %v",
				trial, got, gotErr, want, wantErr)
		}
		if again, _ := r.opening(trial, task); gotErr == nil && again == got {
			shared++
		}
	}
	if shared < n/4 {
		t.Errorf("only %d openings were kept", shared)
	}
}
