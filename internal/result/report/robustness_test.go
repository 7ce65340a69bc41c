package report_test

import (
	"math"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

func robustnessOf(t *testing.T, a *report.Analysis, m *report.Measure) report.Value {
	t.Helper()
	if len(a.Robustness.All()) != 1 {
		t.Fatalf("%+v", a.Robustness)
	}
	return a.Robustness.Rows[0].Get(m)
}

// TestRobustnessIsTheShareKept has a model that succeeds at eight of eight tasks under plain conditions
// and at fewer under each other one. What differs in two things from plain conditions is compared with what differs
// in one of them.
func TestRobustnessIsTheShareKept(t *testing.T) {
	t.Parallel()
	plain := cellOf("m", "easy", 1)
	with := func(change func(*assay.Cell)) assay.Cell {
		c := plain
		change(&c)
		return c
	}
	failing := func(faults string) func(*assay.Cell) {
		return func(c *assay.Cell) { c.Reliability, c.Faults = .8, faults }
	}
	var s scene
	for i := range 8 {
		of := string(rune(0x61 + i))
		for _, tried := range []struct {
			cell assay.Cell
			full int
		}{
			{plain, 8},
			{with(func(c *assay.Cell) { c.Phrasing = assay.Casual }), 6},
			{with(func(c *assay.Cell) { c.Phrasing = assay.Typed }), 2},
			{with(func(c *assay.Cell) { c.Interface = assay.Severe }), 3},
			{with(failing("")), 7}, // before=1
			{with(failing("throttled=1")), 5},
			{with(failing("down=1")), 1},
			{with(failing("down=0.5,stale=0.5")), 0}, // of two classes
			{with(failing("injected=1")), 8},         // of none
			{with(func(c *assay.Cell) { c.Phrasing, c.Interface = assay.Casual, assay.Severe }), 0},
		} {
			s.try(tried.cell, of, 1, assay.Setting{}, i < tried.full)
		}
	}
	a := s.analyze(t, report.Beside{})
	for m, want := range map[*report.Measure]float64{
		report.KeptPhrasings: 8. / 19, report.KeptInterfaces: 3. / 14, report.KeptTools: 21. / 40,
		report.KeptExplicit: 6. / 8, report.KeptDown: 1. / 8, report.PublishedPrompt: 8. / 16, report.PublishedEnvironment: 3. / 8,
		report.PublishedFault: 21. / 40,
	} {
		v := robustnessOf(t, a, m)
		if !v.Known || math.Abs(v.Number-want) > 1e-12 {
			t.Errorf("%s = %+v, want %v", m.Key, v, want)
		}
		if i := v.Interval; i != nil && (v.N != 8 || i.Low > want || i.High < want || i.High > 1.5) {
			t.Errorf("%s = %+v, with the interval %+v", m.Key, v, *i)
		}
	}
	for _, m := range []*report.Measure{report.KeptImplicit, report.KeptMistaken, report.KeptPlans} {
		if v := robustnessOf(t, a, m); v.Known {
			t.Errorf("%s = %+v without such a condition", m.Key, v)
		}
	}
}

// TestModelsAreRankedUnderPlainConditions has one model that other words and interfaces spoil. Its rate on the
// first screen is about plain ones.
func TestModelsAreRankedUnderPlainConditions(t *testing.T) {
	t.Parallel()
	var s scene
	for i := range 8 {
		for _, phrasing := range []string{"", assay.Casual} {
			for _, in := range []string{"", assay.Severe} {
				for _, model := range []string{"m", "n"} {
					c := cellOf(model, "easy", 1)
					c.Phrasing, c.Interface = phrasing, in
					s.try(c, string(rune('a'+i)), 1, assay.Setting{}, model == "m" && phrasing+in == "" || model == "n" && i < 4)
				}
			}
		}
	}
	a := s.analyze(t, report.Beside{})
	if want := "the right plan, plain words, own interfaces and reliable tools"; a.Condition != want {
		t.Errorf("the condition is %q, want %q", a.Condition, want)
	}
	for model, want := range map[string]float64{"m": 1, "n": .5} {
		if got := a.Standing(model); got.Success.Rate != want || got.Ranked != 8 || got.Common != 32 {
			t.Errorf("%s: %+v, want %v of 8 trials", model, got, want)
		}
	}
}

// TestDropsCountEveryMix has reliable tools and two kinds of failing ones. Both count in what they cost, in the
// table by reliability and on the first screen. Reliable tools of a mix are the partners of that mix.
func TestDropsCountEveryMix(t *testing.T) {
	t.Parallel()
	for _, reliable := range [][]string{{""}, {"", "down=1"}} {
		var s scene
		for i := range 8 {
			for _, mix := range reliable {
				c := cellOf("m", "easy", 1)
				c.Faults = mix
				s.try(c, string(rune('a'+i)), 1, assay.Setting{}, mix == "" || i < 4)
			}
			for mix, full := range map[string]int{"": 8, "down=1": 2} {
				c := cellOf("m", "easy", .8)
				c.Faults = mix
				s.try(c, string(rune('a'+i)), 1, assay.Setting{}, i < full)
			}
		}
		want, down := 3./8, 2./8 // of 8 + 8 successes, 8 + 2 are left
		if len(reliable) > 1 {
			want, down = 1./8, 2./4 // of 8 + 4
		}
		a := s.analyze(t, report.Beside{})
		if got := robustnessOf(t, a, report.KeptDown); math.Abs(got.Number-down) > 1e-12 {
			t.Errorf("%q: %v is left if a tool is down, want %v", reliable, got.Number, down)
		}
		if got := a.ByReliability.Rows[0].Difference; got == nil || math.Abs(*got-want) > 1e-12 {
			t.Errorf("%q: the drop is %v, want %v", reliable, got, want)
		}
		if got := -a.Standing("m").FailingTools.Difference; math.Abs(got-want) > 1e-12 {
			t.Errorf("%q: failing tools cost %v, want %v", reliable, got, want)
		}
	}
}
