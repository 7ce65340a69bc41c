package store_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// A run saves an attempt, and a reader finds its trial settled.
func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := store.Open(ctx, filepath.Join(dir, "assay.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	err = db.BeginRun(ctx, store.Experiment{Name: "quickstart"},
		store.Run{ID: "run1", StartedAt: now})
	if err != nil {
		log.Fatal(err)
	}
	cell := assay.Cell{Model: "sim/expert", Variant: "optimal", TaskType: "chain", Reliability: 1}
	trial := assay.NewTrial(cell, assay.TaskRef{ID: "chain/0"}, assay.Setting{World: "assay-1"},
		2025, 0)
	a := assay.Attempt{
		Trial: trial, Experiment: "quickstart", Run: "run1", StartedAt: now,
		FinishedAt: now,
	}
	a.Level, a.Ended = assay.FullSuccess, assay.Finished
	if err := db.Save(ctx, &a, nil); err != nil {
		log.Fatal(err)
	}

	settled, err := db.Settled(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("attempt", a.Number, "settles its trial:", settled.Has(trial.ID))
	// Output: attempt 1 settles its trial: true
}
