//go:build !race

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-eval/assay/internal/result/document"
)

// TestOutputFitsTerminal checks that no line of plan, run and status is wider than the terminal.
// Lines with a path are exempt because a path has no place to break.
func TestOutputFitsTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs eight commands")
	}
	t.Parallel()
	for _, width := range []int{80, 132} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			store := filepath.Join(dir, "s.db")
			experiment := file(t, dir, "e.yaml", "models: [sim/optimal, sim/mute]\n"+
				"variants: [baseline, optimal, flawed]\ntasks_per_type: 2\n"+
				"parts: [{name: one}, {name: two}]\n")
			for _, args := range [][]string{
				{"plan", experiment},
				{"run", experiment, "--display", "none", "--sim-latency", "0"},
				{"plan", experiment},
				{"status"},
			} {
				var out, errs bytes.Buffer
				p := &process{
					in: strings.NewReader(""), out: &out, err: &errs, name: "assay",
					env:      func(string) (string, bool) { return "", false },
					terminal: document.Terminal{Width: width},
				}
				if code := run(append(args, "--store", store), p); code != exitOK {
					t.Fatalf("assay %v: exit code %d\n%s", args, code, errs.String())
				}
				for line := range strings.Lines(out.String()) {
					line = strings.TrimRight(line, "\n")
					if utf8.RuneCountInString(line) > width && !strings.Contains(line, dir) {
						t.Errorf("assay %s: a line exceeds %d columns:\n%s", args[0], width, line)
					}
				}
			}
		})
	}
}

// TestTerminalShowsNoSource checks that a page in HTML goes to a pipe or a file.
func TestTerminalShowsNoSource(t *testing.T) {
	t.Parallel()
	store := smallRun(t)
	page := filepath.Join(t.TempDir(), "report.html")
	for _, row := range []struct {
		width int
		to    string
		code  int
	}{{80, "-", exitUsage}, {80, page, exitOK}, {0, "-", exitOK}} {
		var out, errs bytes.Buffer
		p := &process{
			in: strings.NewReader(""), out: &out, err: &errs, name: "assay",
			env:      func(string) (string, bool) { return "", false },
			terminal: document.Terminal{Width: row.width},
		}
		args := []string{"report", "--store", store, "--format", "html", "--output", row.to}
		if code := run(args, p); code != row.code || out.Len() > 0 != (row.width == 0) ||
			code == exitUsage && !strings.Contains(errs.String(), "--output report.html") {
			t.Errorf("%+v: exit code %d, %d bytes of output\n%s", row, code, out.Len(), errs.String())
		}
	}
}
