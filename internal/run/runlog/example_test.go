package runlog_test

import (
	"fmt"
	"os"
	"time"

	"github.com/assay-eval/assay/internal/run/runlog"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	started := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	log, err := runlog.Open(dir, "run1", started, runlog.Options{Experiment: "first"})
	if err != nil {
		panic(err)
	}
	log.Logger().Info("run started")
	if err := log.Close(); err != nil {
		panic(err)
	}

	logs, err := os.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	fmt.Println(logs[0].Name())
	// Output: 20260304T050607Z-first-run1.jsonl
}
