package legacy_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
)

// TestLeavesAreInOrder checks that leaves are in the order of the original's
// tables.
func TestLeavesAreInOrder(t *testing.T) {
	t.Parallel()
	var attempts []assay.Attempt
	for i, v := range []string{"zzz", "flawed_semantic_drift", "aaa", "baseline", "optimal"} {
		for j, r := range []float64{.6, 1, .9} {
			attempts = append(attempts,
				outcome(fmt.Sprint(i, j),
					assay.Cell{
						Model: "m", Variant: v, Difficulty: "easy", TaskType: "t",
						Reliability: r,
					}, assay.FullSuccess, ""))
		}
	}
	var got []string
	for _, r := range writtenCSV(t, attempts)[1:] {
		got = append(got, r[1]+" "+r[2])
	}
	var want []string
	for _, v := range []string{"baseline", "optimal", "flawed_semantic_drift", "aaa", "zzz"} {
		for _, r := range []string{"1.0", "0.9", "0.6"} {
			want = append(want, v+" "+r)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestGroupNamesAreUnique checks that names that contain the separator do not
// collide.
func TestGroupNamesAreUnique(t *testing.T) {
	t.Parallel()
	attempts := []assay.Attempt{
		outcome("1",
			assay.Cell{
				Model: "m", Variant: "baseline", Difficulty: "easy", TaskType: "a_b",
				Reliability: .8,
			}, assay.Failure, assay.CategoryOther),
		outcome("2",
			assay.Cell{
				Model: "m_a", Variant: "baseline", Difficulty: "easy", TaskType: "b",
				Reliability: .8,
			}, assay.Failure, assay.CategoryOther),
	}
	db := read(t, written(t, attempts))
	got := make(map[string]bool)
	for _, f := range db.Findings {
		got[f.Kind] = true
	}
	if diff := cmp.Diff([]string{"unknown_task_type"}, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
