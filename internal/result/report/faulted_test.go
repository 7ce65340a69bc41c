package report_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

// Every fault counts with the most frequent detail of its kind. A trial is parked if the latest run
// parked it and no attempt settled it.
func TestFaultTally(t *testing.T) {
	t.Parallel()
	var tally report.FaultTally
	if text := tally.Sum().Text(); text != "" {
		t.Errorf("without attempts: %q", text)
	}
	for _, a := range []struct {
		id     assay.TrialID
		run    assay.RunID
		fault  assay.FaultKind
		detail string
		parked bool
		level  assay.Level
	}{
		{"a", "1", assay.ToolServer, "tool_server: it died", true, ""},
		{"a", "2", assay.ToolServer, "tool_server: HTTP 503\nmore", true, ""},
		{"b", "2", assay.ToolServer, "tool_server: HTTP 503", true, ""},
		{"b", "2", "", "", false, assay.Failure},
		{"c", "2", assay.Network, "", false, ""},
		{"d", "1", assay.Network, "", true, ""},
	} {
		attempt := assay.Attempt{Run: a.run, FaultKind: a.fault, FaultDetail: a.detail, Parked: a.parked}
		attempt.ID, attempt.Level = a.id, a.level
		tally.Add(&attempt, "2")
	}
	const want = "5 attempts ended in faults, which are not failures of a model: tool_server 3 (HTTP 503), " +
		"network 2; 1 trial is parked"
	if got := tally.Sum().Text(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
