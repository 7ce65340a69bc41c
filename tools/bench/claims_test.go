package main

import (
	"math"
	"strings"
	"testing"
)

// TestExactInterval compares with R's binom.test.
func TestExactInterval(t *testing.T) {
	t.Parallel()
	for counts, want := range map[tallied][2]float64{
		{0, 10}:   {0, .3084971},
		{10, 10}:  {.6915029, 1},
		{5, 10}:   {.1870860, .8129140},
		{27, 200}: {.0909, .1903},
	} {
		low, high := counts.interval()
		if math.Abs(low-want[0]) > 1e-4 || math.Abs(high-want[1]) > 1e-4 {
			t.Errorf("%d of %d: %.7f to %.7f, want %v", counts.hits, counts.of, low, high, want)
		}
	}
}

// TestClaimsAreMeasured checks that comparisons and reports of small studies have figures, and that
// each counts all of its draws.
func TestClaimsAreMeasured(t *testing.T) {
	t.Parallel()
	report, _ := readReport(t, program(t, "--quick", "--only", "7", "--json"))
	draws := map[string]string{
		"20 tasks, one condition": "of 2,", "all": "of 8,", "50 sequences of 400 tasks": "of 4,",
		"20 tasks of 3 repeats": "of 4,", "false alarms": "of 10,",
	}
	for _, r := range report.Rows {
		if r.Value < 0 || r.Value > 1 {
			t.Errorf("%s: %v", r.What, r.Value)
		}
		for what, want := range draws {
			if strings.Contains(r.What, what) && strings.Contains(r.What, want) {
				delete(draws, what)
			}
		}
	}
	if len(draws) > 0 || len(report.Rows) != 4+7+9+3 {
		t.Errorf("%d rows, which lack %v: %+v", len(report.Rows), draws, report.Rows)
	}
}
