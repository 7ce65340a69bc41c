package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
)

// TestFreshLibrariesAreEquallyHard checks that comparing words solves as many tasks of any seed,
// and few of the hard ones.
func TestFreshLibrariesAreEquallyHard(t *testing.T) {
	t.Parallel()
	seeds := 5
	if testing.Short() {
		seeds = 2
	}
	rates := make(map[string][]float64)
	for seed := range seeds {
		l, err := freshLesson(fmt.Sprint("seed ", seed), 126)
		if err != nil {
			t.Fatal(err)
		}
		for difficulty, tasks := range l.tasks {
			right := score([]*lesson{l}, difficulty, overlap)
			rates[difficulty] = append(rates[difficulty], float64(right)/float64(len(tasks)))
		}
	}
	for _, difficulty := range assay.Difficulties {
		low, high := slices.Min(rates[difficulty]), slices.Max(rates[difficulty])
		t.Logf("%s: %.1f to %.1f %%", difficulty, 100*low, 100*high)
		if high-low > .03 {
			t.Errorf("%s: comparing words solves %.1f to %.1f %%", difficulty, 100*low, 100*high)
		}
		if most, ok := maxFloor[difficulty]; ok && high > most {
			t.Errorf("%s: comparing words solves %.1f %%", difficulty, 100*high)
		}
	}
}
