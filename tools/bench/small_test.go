package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSmallAimsAreOnThePage compares the targets of --quick with the table of docs/measured.md.
func TestSmallAimsAreOnThePage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/measured.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### The small size\n")
	section, _, _ = strings.Cut(section, "\n#")
	page := make(map[string]string)
	for line := range strings.Lines(section) {
		cells := strings.Split(line, " | ")
		if name, ok := strings.CutPrefix(cells[0], "| 2"); ok && len(cells) == 3 {
			page["2"+name] = strings.TrimSuffix(cells[2], " |\n")
		}
	}

	code := make(map[string]string)
	for name, with := range smallAims {
		r := with(newRow(name, share, 0))
		code[name] = r.Unit.aim(*r.Aim)
	}
	if diff := cmp.Diff(code, page); diff != "" {
		t.Errorf("-code +docs/measured.md:\n%s", diff)
	}
}

// TestMissedAims checks that a figure below its target ends the program with a special exit code.
func TestMissedAims(t *testing.T) {
	t.Parallel()
	slow := small(row{Number: "2f", What: "ideal ÷ wall time", Unit: share, Value: 0.02})
	const want = "missed: 2f ideal ÷ wall time is 2 %, want ≥ 50 %"
	if err := (report{Rows: []row{slow}}).missed(); err == nil || err.Error() != want {
		t.Errorf("missed() = %v, want %s", err, want)
	}
	slow.Value = 0.5
	if err := (report{Rows: []row{small(slow), {}}}).missed(); err != nil {
		t.Errorf("missed() = %v, want nil", err)
	}
	if r := small(row{Number: "2c", What: "ideal ÷ wall time"}.atLeast(0.95)); r.Aim != nil {
		t.Errorf("the small version of 2c has the target %v", r.Aim)
	}
}
