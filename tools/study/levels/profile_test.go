package main

import (
	"testing"

	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/report"
)

// TestProfileOfAKnownModel plays studies whose answers follow from the name of their model:
// hurt_by_phrasing=0.25 leaves three quarters of its successes, and hurt_by_interface=0.2 four fifths. Faults
// that are implicit and permanent are in tools of one's own only.
func TestProfileOfAKnownModel(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: plays the suite in two worlds")
	}
	t.Parallel()
	dir := t.TempDir()
	own, err := ownLibrary(dir)
	if err != nil {
		t.Fatal(err)
	}
	for world, text := range map[string]string{"assay-1": string(plan.SuiteFile("profile")), "own": own} {
		t.Run(world, func(t *testing.T) {
			t.Parallel()
			s := &profileStudy{text: text, dir: t.TempDir()}
			values, err := s.play(t.Context(), 1, "20")
			if err != nil {
				t.Fatal(err)
			}
			for m, want := range map[*report.Measure]float64{report.KeptPhrasings: .75, report.KeptInterfaces: .8} {
				v := values[m]
				if v.Interval == nil || v.Interval.Low > want || v.Interval.High < want || v.Interval.High-v.Interval.Low > .5 {
					t.Errorf("%s: %+v with the interval %+v, want %v", m.Heads[0], v.Number, v.Interval, want)
				}
			}
			for _, m := range profileMeasures() {
				_, known := values[m]
				split := m == report.TaskVariance || m == report.LuckVariance || m == report.ModelVariance || m == report.ConsistentReplay
				if missing := split || m == report.KeptMistaken && world != "own"; known == missing {
					t.Errorf("%s is known: %t", m.Heads[0], known)
				}
			}
		})
	}
}
