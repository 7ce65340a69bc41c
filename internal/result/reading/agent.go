package reading

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/assay-eval/assay"
)

// shownOutput is how much of an agent's output is shown, in bytes: the end of it.
const shownOutput = 2 << 10

// writeAgent prints how a foreign agent ended. What it wrote is untrusted, so terminals get no
// character of it that they would obey.
func writeAgent(w *bytes.Buffer, a *assay.AgentRecord) {
	if a == nil {
		return
	}
	fmt.Fprint(w, "\n── agent ──\n")
	if a.Exit != "" {
		fmt.Fprintf(w, "    %s\n", printable(a.Exit))
	}
	for _, part := range []struct{ name, text string }{
		{"standard output", a.Output}, {"standard error", a.Errors},
	} {
		if part.text == "" {
			continue
		}
		text := part.text[max(0, len(part.text)-shownOutput):]
		fmt.Fprintf(w, "  end of its %s:\n", part.name)
		for line := range strings.Lines(text) {
			fmt.Fprintf(w, "    %s\n", printable(strings.TrimRight(line, "\r\n")))
		}
	}
}

// printable replaces what a terminal would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
