//go:build linux && !race

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

// mostOf runs the program and returns its largest resident memory in MB and its output.
func mostOf(t *testing.T, args ...string) (mb float64, out string) {
	t.Helper()
	cmd := program(t, args...)
	cmd.Env = append(cmd.Environ(), "GOGC=100") // the default, whatever the tests have
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case <-ended:
			return mb, text.String()
		case <-time.After(2 * time.Millisecond):
			mb = max(mb, highWater(cmd.Process.Pid))
		}
	}
}

// The program needs at most 64 MB and ten times the size of a file more than it needs for a small
// file, whatever the file holds. Its output is short and has no control characters.
func TestMemoryOfHostileFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: reads large files")
	}
	dir := t.TempDir()
	small, _ := mostOf(t, "plan", file(t, dir, "small.yaml", fiveTrials))
	check := func(name string, size int, args ...string) {
		mb, out := mostOf(t, args...)
		if most := small + 64 + 10*float64(size)/(1<<20); mb > most {
			t.Errorf("%s: %s %s takes %.0f MB, want at most %.0f MB", name, args[0], args[1], mb, most)
		}
		if len(out) > 8<<10 || strings.ContainsAny(out, "\x00\x07\x1b") ||
			strings.Contains(out, "goroutine ") {
			t.Errorf("%s: %d bytes of output: %.1000q", name, len(out), out)
		}
	}
	empty := file(t, dir, "empty.json", "[]")
	lib := filepath.Join(dir, "out.db")
	for name, text := range yamldoctest.YAML(500 << 10) {
		check(name, len(text), "plan", file(t, dir, "f.yaml", text))
	}
	for name, text := range yamldoctest.YAML(200 << 10) {
		check(name, len(text), "library", "inspect", file(t, dir, "f.yaml", text))
	}
	huge := "name: " + strings.Repeat("x", 10<<20)
	check("huge", len(huge), "plan", file(t, dir, "f.yaml", huge))
	for name, text := range yamldoctest.JSON(2 << 20) {
		path := file(t, dir, "f.json", text)
		check(name, len(text), "library", "import", path, "-o", lib, "--force")
		check(name, len(text), "library", "import", empty, "--tools", path, "-o", lib, "--force")
	}
}
