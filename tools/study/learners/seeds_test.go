package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
)

// TestFreshLibrariesAreEquallyHard checks that policies without skill solve as many tasks of any
// seed, and few of medium and hard ones.
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
			best := 0.0
			for _, policy := range floors() {
				right := score([]*lesson{l}, difficulty, policy.learn(nil, difficulty))
				best = max(best, float64(right)/float64(len(tasks)))
			}
			rates[difficulty] = append(rates[difficulty], best)
		}
	}
	for _, difficulty := range assay.Difficulties {
		low, high := slices.Min(rates[difficulty]), slices.Max(rates[difficulty])
		t.Logf("%s: %.1f to %.1f %%", difficulty, 100*low, 100*high)
		if high-low > .03 {
			t.Errorf("%s: policies without skill solve %.1f to %.1f %%", difficulty, 100*low, 100*high)
		}
		if most, ok := maxFloor[difficulty]; ok && high > most {
			t.Errorf("%s: a policy without skill solves %.1f %%", difficulty, 100*high)
		}
	}
}
