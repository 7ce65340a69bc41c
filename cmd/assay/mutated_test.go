package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

// The project's own files, changed at random, end no command with a panic, a message above 1 KB or
// an allocation that their size does not explain.
func TestMutatedFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: reads hundreds of files")
	}
	dir := t.TempDir()
	must(t, nil, "init", dir)
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("%q %v", paths, err)
	}
	originals := make([]string, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		originals[i] = string(text)
	}
	for i, text := range yamldoctest.Mutations(250, originals...) {
		path := paths[i%len(paths)]
		file(t, dir, filepath.Base(path), text)
		for _, args := range [][]string{
			{"library", "inspect", filepath.Join(dir, "tasks.yaml")},
			{"plan", filepath.Join(dir, "experiment.yaml")},
		} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			slow := time.AfterFunc(time.Minute, func() { panic("no end: " + path) })
			got := call(t, nil, args...)
			slow.Stop()
			runtime.ReadMemStats(&after)
			grown := int64(after.HeapSys-after.HeapReleased) - int64(before.HeapSys-before.HeapReleased)
			const arena = 64 << 20 // the heap grows by these, so that another may be due whatever is read
			if grown > 2*arena+10*int64(len(text)) {
				t.Errorf("mutation %d of %s: the heap grows by %d MB", i, path, grown>>20)
			}
			if len(got.err) > 1100 || strings.ContainsAny(got.err, "\x00\x1b") {
				t.Errorf("mutation %d of %s: %d bytes: %q", i, path, len(got.err), got.err)
			}
		}
		file(t, dir, filepath.Base(path), originals[i%len(paths)])
	}
}
