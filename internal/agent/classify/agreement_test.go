package classify_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/agent/classify"
)

// TestKappaPublished has the table of Cohen, "Weighted kappa", Psychological
// Bulletin 70, 1968, table 1: 200 cases, 0.70 agreement, 0.41 by chance, and an
// unweighted kappa of 0.492.
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
		t.Error("a kappa of nothing")
	}
	categories, counts := a.Table()
	if len(categories) != 0 || len(counts) != 0 {
		t.Errorf("Table() = %v, %v, want nothing", categories, counts)
	}
	a.Add("other", "other")
	if _, ok := a.Kappa(); ok {
		t.Error("a kappa of one category alone")
	}
	a.Add("other", "timeout")
	if kappa, ok := a.Kappa(); !ok || kappa != 0 {
		t.Errorf("Kappa() = %v, %v, want 0", kappa, ok)
	}
}

// TestTableOrder: rows and columns stand in the order of the categories, with
// names of other rules after them.
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
	if diff := cmp.Diff([][]int{{0, 0, 0, 0}, {1, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}}, counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// TestKappaLaws: kappa is at most 1, which full agreement alone reaches; who
// is called the rules and who the model, and what categories are called, does
// not matter; independent opinions have 0.
func TestKappaLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		categories := rapid.Permutation(classify.Categories).Draw(t, "names")
		name := rapid.IntRange(0, len(categories)-1)
		var a, turned, renamed, independent classify.Agreement
		rules, model := rapid.SliceOfN(name, 1, 20).Draw(t, "rules"), rapid.SliceOfN(name, 20, 20).Draw(t, "model")
		for i, r := range rules {
			a.Add(classify.Categories[r], classify.Categories[model[i]])
			turned.Add(classify.Categories[model[i]], classify.Categories[r])
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
		for _, other := range []classify.Agreement{turned, renamed} {
			if k, o := other.Kappa(); k != kappa || o != ok {
				t.Fatalf("Kappa() = %v, %v, and the other way %v, %v", kappa, ok, k, o)
			}
		}
		if k, _ := independent.Kappa(); k != 0 {
			t.Fatalf("independent opinions have kappa %v", k)
		}
	})
}
