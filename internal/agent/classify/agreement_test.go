package classify_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/agent/classify"
)

// TestKappaPublished uses the table of Cohen, "Weighted kappa", Psychological Bulletin 70, 1968,
// table 1: 200 cases, 0.70 agreement, 0.41 by chance, and an unweighted kappa of 0.492.
func TestKappaPublished(t *testing.T) {
	t.Parallel()
	names := []string{"timeout", "sequence_order", "other"}
	table := [][]int{{88, 10, 2}, {14, 40, 6}, {18, 10, 12}}
	var a classify.Agreement
	for i, row := range table {
		for j, n := range row {
			for range n {
				a.Add(names[i], names[j])
			}
		}
	}
	if kappa, ok := a.Kappa(); !ok || math.Abs(kappa-.492) > .0005 {
		t.Errorf("Kappa() = %v, %v, want 0.492", kappa, ok)
	}
	if same, total := a.Agreed(); same != 140 || total != 200 {
		t.Errorf("Agreed() = %d, %d, want 140 of 200", same, total)
	}
	categories, counts := a.Table()
	if diff := cmp.Diff(names, categories) + cmp.Diff(table, counts); diff != "" {
		t.Errorf("Table() (-want +got):\n%s", diff)
	}
}

func TestKappaUndefined(t *testing.T) {
	t.Parallel()
	var a classify.Agreement
	if _, ok := a.Kappa(); ok {
		t.Error("kappa is defined without attempts")
	}
	categories, counts := a.Table()
	if len(categories) != 0 || len(counts) != 0 {
		t.Errorf("Table() = %v, %v, want empty ones", categories, counts)
	}
	a.Add("other", "other")
	if _, ok := a.Kappa(); ok {
		t.Error("kappa is defined with a single category")
	}
	a.Add("other", "timeout")
	if kappa, ok := a.Kappa(); !ok || kappa != 0 {
		t.Errorf("Kappa() = %v, %v, want 0", kappa, ok)
	}
}

// TestTableOrder checks that rows and columns follow the order of the categories, with unknown
// names last.
func TestTableOrder(t *testing.T) {
	t.Parallel()
	var a classify.Agreement
	a.Add("zeal", "other")
	a.Add("", "timeout")
	a.Add("other", "timeout")
	categories, counts := a.Table()
	if diff := cmp.Diff([]string{"timeout", "other", "", "zeal"}, categories); diff != "" {
		t.Errorf("categories (-want +got):\n%s", diff)
	}
	diff := cmp.Diff([][]int{{0, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}}, counts)
	if diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestKappaLaws checks these laws: kappa is at most 1, and only full agreement reaches it. Swapping
// rules and model or renaming categories does not change it. Independent opinions have a kappa of
// 0.
func TestKappaLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		categories := rapid.Permutation(classify.Categories).Draw(t, "names")
		name := rapid.IntRange(0, len(categories)-1)
		var a, swapped, renamed, independent classify.Agreement
		rules := rapid.SliceOfN(name, 1, 20).Draw(t, "rules")
		model := rapid.SliceOfN(name, 20, 20).Draw(t, "model")
		for i, r := range rules {
			a.Add(classify.Categories[r], classify.Categories[model[i]])
			swapped.Add(classify.Categories[model[i]], classify.Categories[r])
			renamed.Add(categories[r], categories[model[i]])
			for _, m := range model {
				independent.Add(categories[r], categories[m])
			}
		}
		kappa, ok := a.Kappa()
		same, total := a.Agreed()
		if kappa > 1 || kappa < -1 || ok && (kappa == 1) != (same == total) {
			t.Fatalf("Kappa() = %v with %d of %d", kappa, same, total)
		}
		for _, other := range []classify.Agreement{swapped, renamed} {
			if k, o := other.Kappa(); k != kappa || o != ok {
				t.Fatalf("Kappa() = %v, %v, but %v, %v when swapped or renamed", kappa, ok, k, o)
			}
		}
		if k, _ := independent.Kappa(); k != 0 {
			t.Fatalf("independent opinions have kappa %v", k)
		}
	})
}
