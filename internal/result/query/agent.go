package query

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"github.com/assay-eval/assay"
)

// shownOutput is how much of an agent's output is shown, in bytes: the end of it.
const shownOutput = 2 << 10

// writeAgent prints how a foreign agent ended.
func writeAgent(w *bytes.Buffer, a *assay.AgentRecord) {
	fmt.Fprint(w, "\n── agent ──\n")
	if a.Exit != "" {
		fmt.Fprintf(w, "    %s\n", a.Exit)
	}
	if len(a.Plan) > 0 {
		fmt.Fprintln(w, "  its own plan:")
		for _, step := range a.Plan {
			fmt.Fprintf(w, "    %s\n", visible(step))
		}
	}
	for _, part := range []struct{ name, text string }{
		{"standard output", a.Output}, {"standard error", a.Errors},
	} {
		if part.text == "" {
			continue
		}
		text := assay.Tail(part.text, shownOutput)
		fmt.Fprintf(w, "  end of its %s:\n", part.name)
		for line := range strings.Lines(text) {
			fmt.Fprintf(w, "    %s\n", strings.TrimRight(line, "\r\n"))
		}
	}
}

// writeRefused prints the calls of a foreign agent that were refused in a turn.
func writeRefused(w *bytes.Buffer, a *assay.AgentRecord, turn int) {
	for _, r := range a.Refused {
		if r.Turn != turn {
			continue
		}
		fmt.Fprintf(w, "    (refused %s: %s: %s", assay.Counted(r.Times, "call"),
			strings.TrimSpace(r.Tool+" "+r.Arguments), r.Why)
		if r.Asked != "" {
			fmt.Fprintf(w, "; the framework changed it: the model asked for %s", r.Asked)
		}
		fmt.Fprintln(w, ")")
	}
}

// writeLost prints the calls of a turn that a foreign agent did not carry out, or too late.
func writeLost(w *bytes.Buffer, a *assay.AgentRecord, turn int) {
	for _, l := range a.Lost {
		if l.Turn != turn {
			continue
		}
		what := "the agent did not carry out"
		if l.Late {
			what = "after later calls of its reply, the agent carried out"
		}
		fmt.Fprintf(w, "    (%s: %s)\n", what, visible(strings.TrimSpace(l.Tool+" "+l.Arguments)))
	}
}

// writeModelFaults prints the planted faults that the agent's model had after a turn.
func writeModelFaults(w *bytes.Buffer, a *assay.AgentRecord, turn int) {
	for _, f := range a.ModelFaults {
		if f.Turn == turn {
			fmt.Fprintf(w, "    (planted fault of the model in request %d: %s: %s; %s)\n",
				f.Request, f.Kind, f.Kind.Rule().Says, f.Text())
		}
	}
}

// visible replaces characters that a terminal would obey, but for line ends and tabs: control
// characters and changes of the direction of writing. The output of models and agents is untrusted.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
