package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// mutate returns a text with a few random changes: parts that are cut off, changed, repeated,
// indented or nested.
func mutate(r *rand.Rand, text string) string {
	for range 1 + r.IntN(3) {
		if text == "" {
			return text
		}
		at := r.IntN(len(text))
		end := at + r.IntN(min(len(text)-at, 400))
		part := text[at:end]
		switch r.IntN(6) {
		case 0:
			text = text[:at]
		case 1:
			text = text[:at] + string([]byte{byte(r.IntN(256))}) + text[at+1:]
		case 2:
			text = text[:end] + strings.Repeat(part, 1+r.IntN(1000)) + text[end:]
		case 3:
			indent := "\n" + strings.Repeat(" ", r.IntN(9))
			text = text[:at] + strings.ReplaceAll(part, "\n", indent) + text[end:]
		case 4:
			open := []string{"[", "{a: ", "- ", "? ", "!a ", "&a ", `{"a":`, "\""}[r.IntN(8)]
			text = text[:at] + strings.Repeat(open, 1<<r.IntN(17)) + text[at:]
		case 5:
			text = text[:at] + text[end:]
		}
	}
	return text
}

// The project's own files, changed at random, end no command with a panic, a message above 1 KB or
// an allocation that their size does not explain.
func TestMutatedFiles(t *testing.T) {
	dir := t.TempDir()
	must(t, nil, "init", dir)
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("%q %v", paths, err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 500 {
		path := paths[i%len(paths)]
		original, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := mutate(r, string(original))
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
			if grown > 64<<20+10*int64(len(text)) {
				t.Errorf("mutation %d of %s: the heap grows by %d MB", i, path, grown>>20)
			}
			if len(got.err) > 1100 || strings.ContainsAny(got.err, "\x00\x1b") {
				t.Errorf("mutation %d of %s: %d bytes: %q", i, path, len(got.err), got.err)
			}
		}
		file(t, dir, filepath.Base(path), string(original))
	}
}
