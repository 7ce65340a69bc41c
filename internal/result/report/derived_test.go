package report_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
)

// rates gives the number of full successes among a hundred tasks of each cell.
type rates map[assay.Cell]int

func (r rates) build(t *testing.T, parts ...report.Part) *report.Table {
	t.Helper()
	var s scene
	byText := func(a, b assay.Cell) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }
	for _, cell := range slices.SortedFunc(maps.Keys(r), byText) {
		for i := range 100 {
			a := s.try(cell, fmt.Sprint(i), 1, assay.Setting{}, i < r[cell])
			a.ScoreVersion, a.Outcome.Turns = "", 5
		}
		if r[cell] == pending {
			s.attempts = s.attempts[:len(s.attempts)-100]
		}
	}
	return s.build(t, report.Design{Parts: parts})
}

func (s *scene) build(t *testing.T, d report.Design) *report.Table {
	t.Helper()
	table, err := d.Build("e", slices.Values(s.trials), all(s.attempts...))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// byVariant has a single part.
var byVariant = report.Design{Parts: []report.Part{{Varies: []string{"variant"}}}}

// pending marks a cell without any outcome.
const pending = -1

func of(variant, difficulty string, reliability float64) assay.Cell {
	return assay.Cell{
		Model: "m", Variant: variant, Difficulty: difficulty, TaskType: "basic_task",
		Reliability: reliability,
	}
}

func value(p *float64) string {
	if p == nil {
		return "–"
	}
	return fmt.Sprintf("%.4f", *p)
}

// The expected values are computed by hand.
func TestDerivedFiguresFollowFromRates(t *testing.T) {
	t.Parallel()
	variants := func(names ...string) report.Part {
		return report.Part{Varies: []string{"task_type", "variant"}, Has: func(c assay.Cell) bool {
			return slices.Contains(names, c.Variant) && c.Difficulty == "easy" &&
				c.Reliability == 0.8
		}}
	}
	by := func(factor string) report.Part { return report.Part{Varies: []string{factor}} }
	drift, misuse := "flawed_semantic_drift", "flawed_tool_misuse"
	severe := func(name, severity string) assay.Cell {
		c := of(name, "easy", 0.8)
		c.Severity = severity
		return c
	}
	easy := func(name string) assay.Cell { return of(name, "easy", 0.8) }
	plain := rates{easy("baseline"): 82, easy("cot"): 88, easy("optimal"): 85}
	for name, tc := range map[string]struct {
		rates rates
		part  report.Part
		want  string // levels, mean, optimal, flawed mean, difference, sensitivity, best
	}{
		"the index of the original's example": {
			plain, variants("baseline", "cot", "optimal"),
			"[baseline cot optimal] 0.8500 – – – 0.0245 [cot]",
		},
		"the flawed mean is one more value": {
			rates{
				easy("baseline"): 82, easy("cot"): 88, easy("optimal"): 85,
				easy(drift): 20, easy(misuse): 40,
			},
			variants("baseline", "cot", "optimal"),
			"[baseline cot optimal] 0.8500 – 0.3000 – 0.2391 [cot]",
		},
		"flawed levels are one value, and two are best": {
			rates{
				easy("optimal"): 50, easy("baseline"): 60, easy("cot"): 40,
				easy(drift): 80, easy(misuse): 40,
			},
			variants("baseline", "cot", "optimal", drift, misuse),
			"[baseline cot optimal flawed_tool_misuse flawed_semantic_drift] " +
				"0.5400 – 0.6000 0.1000 0.0829 [baseline flawed]",
		},
		"flaws borrow optimal from other parts": {
			rates{
				easy("optimal"): 70, of("optimal", "hard", 0.8): 0, of("optimal", "easy", 0.6): 0,
				easy(drift): 50, easy(misuse): 60,
			},
			variants(drift, misuse),
			"[flawed_tool_misuse flawed_semantic_drift] 0.5500 0.7000 0.5500 -0.1500 – []",
		},
		"optimal under other conditions is not borrowed": {
			rates{
				of("optimal", "easy", 0.9): 70, of("optimal", "hard", 0.8): 70, easy(drift): 50,
			},
			variants(drift), "[flawed_semantic_drift] 0.5000 – 0.5000 – – []",
		},
		"optimal under some conditions": {
			rates{
				of("optimal", "easy", 0.9): 70, easy(drift): 50, of(drift, "easy", 0.9): 50,
			},
			by("variant"), "[optimal flawed_semantic_drift] 0.6000 – 0.5000 -0.2000 – []",
		},
		"baseline and cot borrow optimal": {
			plain, variants("baseline", "cot"), "[baseline cot] 0.8500 0.8500 – – 0.0245 [cot]",
		},
		"without an outcome nothing is derived": {
			rates{
				easy("baseline"): 82, easy("cot"): 88, easy("optimal"): pending, easy(drift): 20,
			},
			variants("baseline", "cot", "optimal", drift),
			"[baseline cot optimal flawed_semantic_drift] – – 0.2000 – – []",
		},
		"reliabilities show the loss": {
			rates{
				of("cot", "easy", 0.6): 23, of("cot", "easy", 0.9): 71, of("cot", "easy", 0.75): 50,
			},
			by("reliability"), "[0.9 0.75 0.6] 0.4800 – – 0.4800 – []",
		},
		"difficulties show the last minus the first": {
			rates{
				of("cot", "medium", 0.8): 15, of("cot", "very_easy", 0.8): 25,
				of("cot", "easy_biased", 0.8): 10,
			},
			by("difficulty"), "[very_easy medium easy_biased] 0.1667 – – -0.1500 – []",
		},
		"severities show the last minus the first": {
			rates{severe(drift, "severe"): 15, severe(drift, "light"): 55},
			by("severity"), "[light severe] 0.3500 – – -0.4000 – []",
		},
		"task types have no contrast": {
			rates{easy("cot"): 15}, by("task_type"), "[basic_task] 0.1500 – – – – []",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := tc.rates.build(t, tc.part).Parts[0]
			r := v.Rows[0]
			var optimal *float64
			if r.Optimal != nil {
				optimal = &r.Optimal.Rate
			}
			got := fmt.Sprint(v.Levels, " ", value(r.Mean), " ", value(optimal), " ",
				value(r.FlawedMean), " ", value(r.Difference), " ",
				value(r.Sensitivity), " ", r.Best)
			if got != tc.want {
				t.Errorf("derived %s, want %s", got, tc.want)
			}
		})
	}
}

// If no task can be finished within the turns, the best possible is 0, but it was measured.
func TestUnsolvableTasksAreMeasured(t *testing.T) {
	t.Parallel()
	m := trial("m", "cot", 0.8, "t")
	a := outcome(m, assay.Failure, 1)
	a.ScoreVersion = "assay-1.1"
	table := build(t, []assay.Trial{m}, a)
	if r := rows[row](table.Rows)[0]; value(r.Best) != "0.0000" || r.BestMeasured != 1 || r.OfBest != nil {
		t.Errorf(
			"best possible %s of %d, of best %s", value(r.Best), r.BestMeasured, value(r.OfBest),
		)
	}
}

// text returns the report of a table as text.
func text(t *testing.T, table *report.Table) string {
	t.Helper()
	var b strings.Builder
	d := sections.Report(&report.Analysis{Table: table})
	if err := d.WriteText(&b, document.Terminal{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Severities are separate rows and levels, mildest first.
func TestSeveritiesAreSeparate(t *testing.T) {
	t.Parallel()
	r := rates{of("optimal", "easy", 0.8): 70}
	for i, flaw := range flaws[:4] {
		for k, severity := range []string{"severe", "medium", "light"} {
			c := of(flaw, "easy", 0.8)
			c.Severity = severity
			r[c] = 20 + 10*k + i
		}
	}
	part := report.Part{
		Name: "flaws", Varies: []string{"variant", "severity"},
		Has: func(c assay.Cell) bool { return c.Variant != "optimal" },
	}
	plain := report.Part{
		Name: "plain", Varies: []string{"variant"},
		Has: func(c assay.Cell) bool { return c.Variant == "optimal" },
	}
	table := r.build(t, part, plain)
	golden.Assert(t, text(t, table), "severities.txt")
	own, borrowed := table.Parts[0].Rows[0], table.Parts[1].Rows[0]
	if value(own.FlawedMean) != "0.3150" || value(own.Difference) != "-0.3850" ||
		value(borrowed.FlawedMean) != "0.3150" {
		t.Errorf(
			"flawed mean %s, less optimal %s, beside optimal %s", value(own.FlawedMean),
			value(own.Difference), value(borrowed.FlawedMean),
		)
	}
}

// Severities are in order whatever the plan's order. Flaws keep the plan's order and follow the
// plain variants.
func TestSeveritiesAreInOrder(t *testing.T) {
	t.Parallel()
	var s scene
	for _, severity := range []string{"severe", "light", "medium"} {
		for _, name := range []string{"flawed_tool_misuse", "flawed_missing_step", "cot"} {
			c := of(name, "easy", 0.8)
			if name != "cot" {
				c.Severity = severity
			}
			s.try(c, severity, 1, assay.Setting{}, false)
		}
	}
	s.attempts = nil
	table := s.build(t, byVariant)
	want := []string{
		"cot",
		"flawed_tool_misuse, light", "flawed_tool_misuse, medium", "flawed_tool_misuse, severe",
		"flawed_missing_step, light", "flawed_missing_step, medium", "flawed_missing_step, severe",
	}
	if diff := cmp.Diff(want, table.Parts[0].Levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

// Tasks that a flaw does not apply to make no difference.
func TestDifferencesUseSharedTasks(t *testing.T) {
	t.Parallel()
	var s scene
	s.play("m", "optimal", 20, fails(2, 0))
	s.play("m", "flawed_missing_step", 20, fails(2, 0))
	s.trials = slices.Delete(s.trials, 20, 29) // keeps 11
	s.attempts = slices.Delete(s.attempts, 20, 29)
	r := s.build(t, byVariant).Parts[0].Rows[0]
	if value(r.Difference) != "0.0000" || r.Cells[0].Rate == r.Cells[1].Rate {
		t.Errorf("the difference is %s between %+v", value(r.Difference), r.Cells)
	}
}

// TestFlawsAreComparedUnderOneAuthority checks that a flawed plan is compared with the right plan about
// which the prompt says the same, in the standings and in the tables of differences.
func TestFlawsAreComparedUnderOneAuthority(t *testing.T) {
	t.Parallel()
	var s scene
	for variant, decide := range map[string]func(int, *assay.Attempt){
		"optimal": fails(20, -1), "flawed_missing_step": fails(2, 0), // it loses half
		"optimal:follow": fails(2, 0), "flawed_missing_step:follow": fails(2, 0), // it loses nothing
	} {
		s.play("m", variant, 20, decide)
	}
	x := s.analyze(t, report.Beside{})
	want := map[string]float64{"flawed_missing_step": -.5, "flawed_missing_step:follow": 0}
	for _, k := range x.Standings[0].FlawedPlan.Kinds {
		if k.Difference != want[k.Level] || k.Tasks != 20 {
			t.Errorf("%s differs by %v on %d tasks, want %v", k.Level, k.Difference, k.Tasks, want[k.Level])
		}
		delete(want, k.Level)
	}
	if len(want) > 0 {
		t.Errorf("no costs of %v", want)
	}
	for _, p := range x.Variants {
		flawed, right := report.IsFlawed(p.B), strings.HasPrefix(p.A, "optimal")
		_, a := assay.PlainOf(p.A)
		if _, b := assay.PlainOf(p.B); flawed && right && a != b {
			t.Errorf("%s is compared with %s", p.B, p.A)
		}
	}
}

// TestFlawedMeanIsOfHarm checks that the flawed mean and its difference from optimal leave out
// outcomes whose flaw hurts no agent that follows the plan, but that rates do not.
func TestFlawedMeanIsOfHarm(t *testing.T) {
	t.Parallel()
	drift, redundant := "flawed_semantic_drift", "flawed_redundant_operations"
	var s scene
	for variant, full := range map[string]int{"optimal": 8, drift: 2, redundant: 9} {
		for i := range 10 {
			s.try(of(variant, "easy", .8), fmt.Sprint(i), 1, assay.Setting{}, i < full)
		}
	}
	for _, tc := range []struct {
		harmful string // the tasks that repeated steps hurt
		want    string // flawed mean, difference from optimal, harmless outcomes
	}{
		{"0123456789", "0.5500 -0.2500 0"},
		{"01234", "0.6000 -0.4500 5"},
		{"", "0.2000 -0.6000 10"},
	} {
		d := report.Design{
			Parts: []report.Part{{Varies: []string{"variant"}}},
			Hurts: func(t *assay.Trial) bool {
				return t.Variant == drift || strings.Contains(tc.harmful, string(t.Task))
			},
		}
		r := s.build(t, d).Parts[0].Rows[0]
		got := fmt.Sprint(value(r.FlawedMean), " ", value(r.Difference), " ", r.Harmless)
		if got != tc.want {
			t.Errorf("harmful %q: %s, want %s", tc.harmful, got, tc.want)
		}
		if redundantRate := r.Cells[1].Rate + r.Cells[2].Rate; math.Abs(redundantRate-1.1) > 1e-9 {
			t.Errorf("the rates of the flawed levels add up to %v, want 1.1", redundantRate)
		}
	}
}
