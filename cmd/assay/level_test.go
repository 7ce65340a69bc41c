package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

// TestEqualModelsSeldomDiffer compares 25 pairs of equal models whose repeats are unequal by
// condition. If trials were added up over conditions, 19 pairs would have p below .05.
func TestEqualModelsSeldomDiffer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: compares 25 pairs of models")
	}
	path := quickRun(t, oneModel)
	a := attempts(t, path)[0]
	db := writable(t, path)
	r := rand.New(rand.NewPCG(13, 2))
	const pairs = 25
	var saves sync.WaitGroup
	for i := range pairs * 2 {
		for k := range 2 {
			for task := range 20 {
				for repeat := range 1 + 3*((i+k)%2) {
					cell := a.Cell
					cell.Model = fmt.Sprintf("%c%d", "ab"[i%2], i/2)
					cell.Reliability = []float64{.9, .6}[k]
					a := a
					a.Trial = assay.NewTrial(cell, assay.TaskRef{
						ID: assay.TaskID(fmt.Sprint(task)), Digest: "d",
					}, a.Setting, 1, repeat+1)
					a.Level, a.ErrorCategory = assay.FullSuccess, ""
					if r.Float64() > cell.Reliability {
						a.Level, a.ErrorCategory = assay.Failure, assay.CategoryOther
					}
					saves.Go(func() {
						if err := db.Save(t.Context(), &a, nil); err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	}
	saves.Wait()
	if err := db.Close(); err != nil || t.Failed() {
		t.Fatal(err)
	}
	differ := 0
	for i := range pairs {
		var c report.Comparison
		out := must(t, nil, "compare", fmt.Sprintf("model:a%d", i), fmt.Sprintf("model:b%d", i),
			"--store", path, "--json").out
		if err := json.Unmarshal([]byte(out), &c); err != nil {
			t.Fatal(err)
		}
		if c.Whole.Tasks != 20 || c.Whole.Conditions != 2 {
			t.Fatalf("%+v", c.Whole)
		}
		if c.Whole.P < .05 {
			differ++
		}
	}
	t.Logf("%d of %d equal models differ", differ, pairs)
	if differ > 5 {
		t.Errorf("%d of %d equal models differ", differ, pairs)
	}
}
