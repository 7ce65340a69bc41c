package legacy_test

import (
	"encoding/json"
	"fmt"
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
			cell := easy(v)
			cell.Reliability = r
			attempts = append(attempts, outcome(fmt.Sprint(i, j), cell, assay.FullSuccess, ""))
		}
	}
	var got []string
	for _, a := range read(t, written(t, attempts)).Aggregates {
		got = append(got, a.Variant+" "+a.Rate)
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
	a, b := easy("baseline"), easy("baseline")
	a.TaskType, b.Model, b.TaskType = "a_b", "m_a", "b"
	attempts := []assay.Attempt{
		outcome("1", a, assay.Failure, assay.CategoryOther),
		outcome("2", b, assay.Failure, assay.CategoryOther),
	}
	var file struct {
		Groups map[string]struct{ Statistics struct{ Total int } } `json:"test_groups"`
	}
	if err := json.Unmarshal([]byte(written(t, attempts)), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Groups) != 2 {
		t.Errorf("groups %v, want two", file.Groups)
	}
}
