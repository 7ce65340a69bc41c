package main

import "testing"

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
