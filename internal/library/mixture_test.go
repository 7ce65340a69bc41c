package library_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/library"
)

// TestMixtures: each has, of every type, its share of the five wordings, also
// among the tasks of one length.
func TestMixtures(t *testing.T) {
	t.Parallel()
	shares := map[string][]float64{
		"easy_biased":   {.30, .50, .15, .04, .01},
		"medium_biased": {.05, .20, .50, .20, .05},
		"hard_biased":   {.01, .04, .15, .50, .30},
	}
	want := map[string][]int{ // of 126, the rest added to the largest
		"easy_biased":   {37, 65, 18, 5, 1},
		"medium_biased": {6, 25, 64, 25, 6},
		"hard_biased":   {1, 5, 18, 65, 37},
	}
	type group struct {
		mixture, typ string
		length       int // 0 for all
	}
	counts := make(map[group][]int)
	for _, task := range generated() {
		if task.Wording == "" {
			continue
		}
		for _, length := range []int{0, len(task.Required)} {
			g := group{task.Difficulty, task.Type, length}
			if counts[g] == nil {
				counts[g] = make([]int, 5)
			}
			counts[g][slices.Index(assay.Difficulties, task.Wording)]++
		}
	}
	for g, got := range counts {
		if g.length == 0 {
			if diff := cmp.Diff(want[g.mixture], got); diff != "" {
				t.Errorf("%v (-want +got):\n%s", g, diff)
			}
			continue
		}
		total := 0
		for _, n := range got {
			total += n
		}
		for i, n := range got {
			if off := float64(n) - shares[g.mixture][i]*float64(total); off < -2 || off > 2 {
				t.Errorf("%v: %d of %d tasks have the wording %s", g, n, total, assay.Difficulties[i])
			}
		}
	}
	if len(counts) < 15 {
		t.Errorf("there are only %d groups", len(counts))
	}
}

// TestMixturesOfAnySize: a library of any size has whole mixtures, and the
// main wording has what rounding leaves.
func TestMixturesOfAnySize(t *testing.T) {
	t.Parallel()
	main := map[string]string{"easy_biased": "easy", "medium_biased": "medium", "hard_biased": "hard"}
	for _, n := range []int{1, 2, 19, 100} {
		tasks, err := library.GenerateN(n)
		if err != nil {
			t.Fatal(err)
		}
		counts := make(map[string]map[string]int)
		for task := range tasks {
			if task.Wording != "" && task.Type == "basic_task" {
				if counts[task.Difficulty] == nil {
					counts[task.Difficulty] = make(map[string]int)
				}
				counts[task.Difficulty][task.Wording]++
			}
		}
		for _, name := range assay.Mixtures {
			if got, least := counts[name][main[name]], n/2; got < least {
				t.Errorf("%s of %d tasks has %v", name, n, counts[name])
			}
			if n == 1 && counts[name][main[name]] != 1 {
				t.Errorf("%s of one task has %v", name, counts[name])
			}
		}
		if n == 100 {
			want := map[string]int{"very_easy": 30, "easy": 50, "medium": 15, "hard": 4, "very_hard": 1}
			if diff := cmp.Diff(want, counts["easy_biased"]); diff != "" {
				t.Errorf("easy_biased of 100 tasks (-want +got):\n%s", diff)
			}
		}
	}
}
