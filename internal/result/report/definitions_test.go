package report_test

import (
	"os"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay/internal/result/report"
)

// TestDocsDefineFigures checks that docs/results.md has the definitions of the declarations. With
// -update, it writes them.
func TestDocsDefineFigures(t *testing.T) {
	t.Parallel()
	const path = "../../../docs/results.md"
	const begin, end = "<!-- definitions -->\n", "<!-- end of definitions -->"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	got, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s lacks its markers", path)
	}
	want := wrapped(report.Definitions())
	if got == want {
		return
	}
	if !golden.FlagUpdate() {
		t.Fatalf("%s does not define the figures as the program does; run this test with -update\n%s",
			path, want)
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wrapped breaks lines as the page does.
func wrapped(text string) string {
	const width = 100
	var b strings.Builder
	for line := range strings.Lines(text) {
		n := 0
		for i, word := range strings.Fields(line) {
			switch {
			case i > 0 && n+1+len([]rune(word)) > width:
				b.WriteString("\n  ")
				n = 2
			case i > 0:
				b.WriteString(" ")
				n++
			}
			b.WriteString(word)
			n += len([]rune(word))
		}
		b.WriteString("\n")
	}
	return "\n" + b.String()
}
