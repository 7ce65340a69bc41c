package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteText(t *testing.T) {
	t.Parallel()
	r := []figure{
		figure{number: "1", what: "calls", unit: micros, value: 2165.4}.beside(52.42),
		figure{number: "1", what: "share", unit: share, value: 0.413}.atLeast(0.5),
		figure{number: "3", what: "first request", unit: seconds, value: 0.0794}.
			below(5).because("of %d trials", 7),
		figure{number: "3", what: "memory", unit: megabytes, value: 499.96}.below(500),
		figure{number: "5", what: "lost", value: 0}.zero(),
		figure{number: "5", what: "duplicated", value: 2}.zero(),
	}
	var b strings.Builder
	writeText(&b, r)
	want := `
                  value    bare client  target
1  calls          2165 µs  52.4 µs
1  share          41.3 %                ≥ 50 %    missed
3  first request  0.079 s               < 5 s     reached
3  memory         500 MB                < 500 MB  reached
5  lost           0                     = 0       reached
5  duplicated     2                     = 0       missed

3, first request: of 7 trials
`
	var got strings.Builder
	got.WriteString("\n")
	for line := range strings.Lines(b.String()) {
		got.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestMissedAims checks that a figure below its target ends the program with a special exit code.
func TestMissedAims(t *testing.T) {
	t.Parallel()
	slow := small(figure{number: "2f", what: "ideal ÷ wall time", unit: share, value: 0.02})
	const want = "missed: 2f ideal ÷ wall time is 2 %, want ≥ 50 %"
	if err := missed([]figure{slow}); err == nil || err.Error() != want {
		t.Errorf("missed() = %v, want %s", err, want)
	}
	slow.value = 0.5
	if err := missed([]figure{small(slow), {}}); err != nil {
		t.Errorf("missed() = %v, want nil", err)
	}
	if r := small(figure{number: "2c", what: "ideal ÷ wall time"}.atLeast(0.95)); r.aim != nil {
		t.Errorf("the small version of 2c has the target %v", r.aim)
	}
}
