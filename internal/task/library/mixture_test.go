//go:build !race

package library_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// A mixture has its shares of the five wordings, also among the tasks of one type and length.
func TestMixturesHaveTheirShares(t *testing.T) {
	t.Parallel()
	shares := map[string][]float64{
		"easy_biased":   {.30, .50, .15, .04, .01},
		"medium_biased": {.05, .20, .50, .20, .05},
		"hard_biased":   {.01, .04, .15, .50, .30},
	}
	want := map[string][]int{ // of 630 tasks; the remainder goes to the middle
		"easy_biased":   {189, 315, 95, 25, 6},
		"medium_biased": {31, 126, 316, 126, 31},
		"hard_biased":   {6, 25, 95, 315, 189},
	}
	type group struct {
		mixture, typ string
		length       int // 0 for all tasks of a type, -1 for all types
	}
	counts := make(map[group][]int)
	for _, task := range generated() {
		if task.Wording == "" {
			continue
		}
		for _, g := range []group{
			{task.Difficulty, "", -1},
			{task.Difficulty, task.Type, 0},
			{task.Difficulty, task.Type, len(task.Required)},
		} {
			if counts[g] == nil {
				counts[g] = make([]int, 5)
			}
			counts[g][slices.Index(assay.Difficulties, task.Wording)]++
		}
	}

	for g, got := range counts {
		if g.length == -1 {
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
			off := float64(n) - shares[g.mixture][i]*float64(total)
			if off < -2 || off > 2 {
				t.Errorf("%v: %d of %d tasks are worded %s", g, n, total, assay.Difficulties[i])
			}
		}
	}
	if len(counts) < 15 {
		t.Errorf("got only %d groups", len(counts))
	}
}

func TestMixturesKeepTheirSharesAtAnySize(t *testing.T) {
	t.Parallel()
	main := map[string]string{
		"easy_biased": "easy", "medium_biased": "medium", "hard_biased": "hard",
	}
	for _, n := range []int{1, 2, 19, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			counts := countWordings(t, n)
			for _, name := range assay.Mixtures {
				if counts[name][main[name]] < 5*n/2 {
					t.Errorf("%s has the wordings %v", name, counts[name])
				}
			}
			if n == 100 {
				want := map[string]int{
					"very_easy": 150, "easy": 250, "medium": 75, "hard": 20, "very_hard": 5,
				}
				if diff := cmp.Diff(want, counts["easy_biased"]); diff != "" {
					t.Errorf("easy_biased (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// countWordings generates n tasks of each type and counts the wordings of each mixture.
func countWordings(t *testing.T, n int) map[string]map[string]int {
	t.Helper()
	tasks, err := library.GenerateN(n)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]map[string]int)
	for task := range tasks {
		if task.Wording == "" {
			continue
		}
		if counts[task.Difficulty] == nil {
			counts[task.Difficulty] = make(map[string]int)
		}
		counts[task.Difficulty][task.Wording]++
	}
	return counts
}
