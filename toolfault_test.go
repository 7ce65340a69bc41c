package assay_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// TestFaultMixRoundTrips checks that each mix has one spelling, and that a mix of the default kind
// alone is the empty one, so that its trials are the same as without a mix.
func TestFaultMixRoundTrips(t *testing.T) {
	t.Parallel()
	for text, mix := range map[string]assay.FaultMix{
		"":                         {},
		"after=0.25,before=0.75":   {assay.FaultBefore: .75, assay.FaultAfter: .25, assay.FaultSlow: 0},
		"after=1":                  {assay.FaultAfter: 1},
		"slow=0.1,wrong_shape=0.9": {assay.FaultWrongShape: .9, assay.FaultSlow: .1},
	} {
		read, err := assay.ParseFaultMix(text)
		if err != nil || mix.Check() != nil || mix.String() != text || read.String() != text {
			t.Errorf("%v is %q, which is read as %v, %v; want %q", mix, mix, read, err, text)
		}
	}
	if got := (assay.FaultMix{assay.FaultBefore: 1}).String(); got != "" {
		t.Errorf("a mix of before alone is %q", got)
	}
}

func TestFaultMixCheck(t *testing.T) {
	t.Parallel()
	for want, mix := range map[string]assay.FaultMix{
		`unknown kind of fault "late"`: {"late": 1},
		"outside [0,1]":                {assay.FaultAfter: -.5, assay.FaultBefore: 1.5},
		"is NaN, outside [0,1]":        {assay.FaultAfter: math.NaN()},
		"add up to 0.9 instead of 1":   {assay.FaultAfter: .5, assay.FaultBefore: .4},
	} {
		if err := mix.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", mix, err, want)
		}
	}
}

// TestFaultMixKind checks that each kind gets its share of the places, in the order of the names.
func TestFaultMixKind(t *testing.T) {
	t.Parallel()
	mix := assay.FaultMix{assay.FaultBefore: .5, assay.FaultAfter: .25, assay.FaultStale: .25}
	for place, want := range map[float64]assay.ToolFault{
		0: assay.FaultAfter, .2499: assay.FaultAfter, .25: assay.FaultBefore,
		.7499: assay.FaultBefore, .75: assay.FaultStale, math.Nextafter(1, 0): assay.FaultStale,
	} {
		if got := mix.Kind(place); got != want {
			t.Errorf("%v is %s, want %s", place, got, want)
		}
	}
	if got := (assay.FaultMix{}).Kind(.5); got != assay.FaultBefore {
		t.Errorf("an empty mix has %s", got)
	}
	if got := mix.Happens(); got != .25 {
		t.Errorf("calls happen at %v of the faults, want 0.25", got)
	}
}

// TestToolFaultsAreDocumented checks that the page about worlds has a row for each kind.
func TestToolFaultsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/worlds.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range assay.ToolFaultRules {
		happens := "no"
		if r.Happens {
			happens = "yes"
		}
		if row := "\n| `" + string(r.Kind) + "` | " + r.Class() + " | " + happens + " | "; !strings.Contains(string(page), row) {
			t.Errorf("docs/worlds.md has no row %q", row)
		}
	}
}
