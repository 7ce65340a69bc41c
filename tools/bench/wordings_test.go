package main

import (
	"testing"

	"github.com/assay-eval/assay"
)

// TestEveryDifficultyCanBeRead checks that at every difficulty a reader knows more about a task's
// tools than a blind one, and that each difficulty leaves more open than the one before.
func TestEveryDifficultyCanBeRead(t *testing.T) {
	t.Parallel()
	rows, err := new(bench).wordings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const figures = 6
	last := 0.0
	for i, difficulty := range assay.Difficulties {
		of := rows[figures*i:]
		open, blind := of[0].Value, of[1].Value
		t.Logf("%-10s %.2f bits are open, %.2f for a blind reader", difficulty, open, blind)
		if open <= last {
			t.Errorf("%s leaves %.2f bits open, the difficulty before %.2f", difficulty, open, last)
		}
		last = open
		if open > blind-.5 || of[2].Value < of[3].Value+.15 || of[4].Value < 2*of[5].Value {
			t.Errorf("%s: a reader has %+v", difficulty, of[:figures])
		}
	}
}
