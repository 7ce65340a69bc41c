package main

import (
	"math"
	"strings"
	"testing"
)

// TestLevels checks a smaller table: alarms stay below 6 %, failures of equal sides below 1 %, and
// intervals hold the truth in at least 93 %. The bounds are wider by three standard errors.
func TestLevels(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: simulates hundreds of experiments")
	}
	const draws = 60
	for i, f := range []field{
		{taskPopulation{20, 20}, 3}, {taskPopulation{60, 15}, 1}, {taskPopulation{20, 6}, unequal},
	} {
		c, err := f.count(draws, uint64(i))
		if err != nil {
			t.Fatal(err)
		}
		if len(c) != len(figures) {
			t.Fatalf("%d figures, want %d", len(c), len(figures))
		}
		for _, name := range figures {
			least, most := bounds(name)
			share := total(c[name]).percent() / 100
			slack := 3 * math.Sqrt(.06*.94/draws)
			if share < least-slack || share > most+slack {
				t.Errorf("%+v: %s in %.3f of %d draws", f, name, share, draws)
			}
		}
	}
}

func bounds(name string) (least, most float64) {
	switch {
	case strings.HasPrefix(name, holds):
		return .93, 1
	case strings.HasPrefix(name, gate+"equal"):
		return 0, .01
	}
	return 0, .06
}

// TestWrite checks the shares and their range in the table.
func TestWrite(t *testing.T) {
	t.Parallel()
	columns := make([]counts, len(populations))
	for i := range columns {
		columns[i] = make(counts)
		for _, name := range figures {
			columns[i][name] = []drawTally{{1, 100}, {5, 100}}
		}
	}
	var text strings.Builder
	if err := write(&text, columns); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if len(lines) != 2+len(figures) || !strings.Contains(lines[2], " 3.0 (1.0–5.0) |") {
		t.Errorf("%s", text.String())
	}
}
