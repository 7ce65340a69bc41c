package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/run/session"
)

func TestSpeedNamesBottleneck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		speed session.ModelSpeed
		want  string
	}{
		{"idle", session.ModelSpeed{Model: "m", Used: 0.1}, "m: 10 % of its lanes' time used"},
		{
			"full",
			session.ModelSpeed{Model: "m", Used: 0.95, Bottleneck: "concurrency limit of builtin"},
			"m: 95 % of its lanes' time used; bottleneck: concurrency limit of builtin",
		},
		{
			"hung",
			session.ModelSpeed{
				Model: "m", Used: 1, Lost: 0.97, Bottleneck: "requests without a reply",
			},
			"m: 100 % of its lanes' time used, 97 % of it without a reply; " +
				"bottleneck: requests without a reply",
		},
		{
			"waited",
			session.ModelSpeed{
				Model: "m", Used: 0.5, Bottleneck: "rpm limit of gw/K1/m", Waited: 80 * time.Second,
			},
			"m: 50 % of its lanes' time used; bottleneck: rpm limit of gw/K1/m (waited 1m20s)",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := speedText(tc.speed); got != tc.want {
				t.Errorf("speedText() = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestOutputFitsTerminal checks that no line of plan, run and status is wider than the terminal.
// Lines with a path are exempt because a path has no place to break.
func TestOutputFitsTerminal(t *testing.T) {
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
