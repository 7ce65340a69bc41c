package query

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
)

// The output of agents and models is shown as text, on a terminal and in a page.
func TestHostileOutputIsText(t *testing.T) {
	t.Parallel()
	const hostile = "\x1b[31mred\x1b]0;title\a\r\n\u202etxt \u009b2J \xff\xfe" +
		"<script>alert(1)</script>"
	transcript := &assay.Transcript{
		Messages: []assay.Message{
			{Role: assay.User, Content: hostile},
			{
				Role: assay.Assistant, Content: hostile, Reasoning: hostile,
				Calls: []assay.ToolCall{{Name: hostile, Arguments: hostile}},
			},
			{Role: assay.ToolRole, Content: hostile},
		},
		Agent: &assay.AgentRecord{
			Exit: "exit status 3: " + hostile, Output: hostile,
			Errors: strings.Repeat("x", 1<<20) + hostile + "the end",
		},
	}
	a := assay.Attempt{
		Trial: assay.Trial{ID: "0123456789"}, FaultKind: assay.Network, FaultDetail: hostile,
	}
	text := string((&Trial{Attempt: a, Transcript: transcript}).Text(nil, nil, nil))
	var page strings.Builder
	d := document.Document{Title: "t", Episodes: []document.Episode{Episode(&a, transcript)}}
	if err := d.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	for where, shown := range map[string]string{"text": text, "page": page.String()} {
		if i := strings.IndexAny(shown, "\x1b\a\r\u202e\u009b"); i >= 0 {
			t.Errorf("the %s has %q", where, shown[i:min(len(shown), i+20)])
		}
		if !strings.Contains(shown, "red") || strings.ToValidUTF8(shown, "") != shown {
			t.Errorf("the %s lacks the output, or is not UTF-8", where)
		}
	}
	if strings.Contains(page.String(), "<script>alert") {
		t.Error("the page runs a script")
	}
	if len(text) > 8<<10 || !strings.Contains(text, "the end") {
		t.Errorf("%d bytes, want the end of the output", len(text))
	}
}
