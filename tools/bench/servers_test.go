package main

import (
	"os"
	"strings"
	"testing"
)

// TestAgentsAreMeasured checks that the agent makes the same calls in each way, and that a foreign
// agent costs more than the built-in episode. Where servers of others are installed, it checks that
// a run leaves nothing.
func TestAgentsAreMeasured(t *testing.T) {
	t.Parallel()
	report, _ := readReport(t, program(t, "--quick", "--only", "8,9", "--json"))
	rows := 5
	if os.Getenv(serversVariable) != "" {
		rows = 8
	}
	if len(report.Rows) != rows {
		t.Errorf("%d rows, want %d: %+v", len(report.Rows), rows, report.Rows)
	}
	for _, r := range report.Rows {
		switch {
		case r.Number == "8" && !(r.Value > 0 && *r.Limit > 0):
			t.Errorf("%s: %v beside %v", r.What, r.Value, *r.Limit)
		case r.Number == "9" && r.Value != 0:
			t.Errorf("%s: %v (%s)", r.What, r.Value, r.Note)
		case strings.HasSuffix(r.What, "another fault") && strings.HasPrefix(r.Note, "of 0 "):
			t.Errorf("the model and the agent share no call: %s", r.Note)
		}
	}
}
