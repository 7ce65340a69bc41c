package reading

import (
	"bytes"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

func TestOutputOfAnAgentCannotChangeATerminal(t *testing.T) {
	t.Parallel()
	var w bytes.Buffer
	writeAgent(&w, &assay.AgentRecord{
		Exit: "exit status 3: \x1b]0;title\a", Output: "\x1b[31mred\r\n\u202etxt",
		Errors: strings.Repeat("x", 1<<20) + "the end",
	})
	out := w.String()
	if strings.ContainsAny(out, "\x1b\a\r\u202e") || !strings.Contains(out, "red") {
		t.Errorf("%q", out)
	}
	if len(out) > 4<<10 || !strings.Contains(out, "the end") {
		t.Errorf("%d bytes, want the end of the output", len(out))
	}
}
