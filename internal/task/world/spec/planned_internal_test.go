package spec

import (
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// The own plan of an agent names tools as whole words, whatever is around them.
func TestToolsThatAPlanNames(t *testing.T) {
	t.Parallel()
	for steps, want := range map[string]string{
		"":                                  "",
		"look around; do it":                "",
		"call fetch_page, then send.":       "fetch_page send",
		"`fetch_page`(url)/parse→send_all":  "fetch_page parse",
		"send (again: send)":                "send send",
		"prefetch_page; parses; sending; é": "",
		"first extra, then required":        "extra required",
		"mcp__assay__send, assay.send":      "send",
	} {
		tr := &assay.Transcript{
			Plan:  []string{"fetch_page", "parse", "send"},
			Calls: []assay.CallRecord{{Tool: "extra"}},
			Agent: &assay.AgentRecord{Plan: strings.Split(steps, ";")},
		}
		if got := planned(tr, []string{"required"}); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q names %q, want %q", steps, got, want)
		}
	}
}
