package report_test

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"gotest.tools/v3/golden"
)

// levelOf returns the level of a factor in a cell.
func levelOf(c assay.Cell, factor string) string {
	return map[string]string{
		"variant": c.Variant, "severity": c.Severity, "difficulty": c.Difficulty,
		"task_type": c.TaskType, "reliability": assay.FormatReliability(c.Reliability),
	}[factor]
}

// several reports whether a part has flawed variants of several severities.
func several(part report.Part, trials []assay.Trial) bool {
	severities := make(map[string]bool)
	for _, trial := range trials {
		if has(part, trial.Cell) && strings.HasPrefix(trial.Variant, "flawed_") {
			severities[trial.Severity] = true
		}
	}
	return len(severities) > 1
}

// drawDesign draws parts over the cells of trials.
func drawDesign(t *rapid.T, trials []assay.Trial) report.Design {
	cells := make(map[assay.Cell]bool)
	var models []string
	for _, trial := range trials {
		cells[trial.Cell] = true
		if !slices.Contains(models, trial.Model) {
			models = append(models, trial.Model)
		}
	}
	d := report.Design{
		Categories: categories[:rapid.IntRange(0, len(categories)).Draw(t, "categories")],
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "parts") {
		part := report.Part{
			Name: fmt.Sprint("part ", i),
			Varies: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"task_type", "reliability", "difficulty", "severity", "variant"}), rapid.ID).
				Draw(t, "varies"),
			Models: rapid.SliceOfDistinct(rapid.SampledFrom(models), rapid.ID).Draw(t, "models"),
		}
		if salt := rapid.IntRange(0, 3).Draw(t, "salt"); salt > 0 {
			part.Has = func(c assay.Cell) bool { return len(fmt.Sprint(c))%3 != salt && c.Variant != "v0" }
		}
		d.Parts = append(d.Parts, part)
	}
	return d
}

// Every finished trial counts once in each part that has its cell, in the row of its model and the
// column of its level. Rates follow from counts.
func TestTrialsCountOnceInEachPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		trials, _ := drawTrials(t)
		d := drawDesign(t, trials)
		var done []assay.Trial
		for i, trial := range trials {
			if rapid.IntRange(0, 3).Draw(t, fmt.Sprint("done ", i)) > 0 {
				done = append(done, trial)
			}
		}
		attempts := play(done, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		table, err := d.Build("e", slices.Values(trials), all(attempts...))
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range d.Parts {
			checkPart(t, part, table.Parts[i], trials, attempts)
		}
		checkErrors(t, table, d.Categories, attempts)
		checkPilot(t, table, attempts)
	})
}

// slowShare computes a share, with the interval of [stat.Clustered], straight from attempts.
func slowShare(attempts []assay.Attempt, of, some func(*assay.Attempt) bool) report.Share {
	groups := make(map[assay.TaskID]stat.Group)
	var s report.Share
	for i := range attempts {
		a := &attempts[i]
		if !of(a) {
			continue
		}
		g := groups[a.Task]
		g.N++
		if some(a) {
			g.Full++
			s.Count++
		}
		groups[a.Task] = g
	}
	r := stat.Clustered(slices.Collect(maps.Values(groups)), 0.95)
	s.Rate, s.Interval = r.Rate, r.Interval
	return s
}

// same describes how two shares differ by more than rounding.
func same(got, want report.Share) string {
	return cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9))
}

// atLeast reports whether i contains other, except for rounding.
func atLeast(i, other stat.Interval) bool {
	return i.Low <= other.Low+1e-9 && i.High >= other.High-1e-9
}

func checkPart(
	t *rapid.T,
	part report.Part,
	got report.Pivot,
	trials []assay.Trial,
	attempts []assay.Attempt,
) {
	t.Helper()
	type key struct{ model, level string }
	planned, done, full := make(map[key]int), make(map[key]int), make(map[key]int)
	metrics := make(map[string]report.Metrics)
	split := got.Factor == "variant" && several(part, trials)
	level := func(c assay.Cell) string {
		if split && strings.HasPrefix(c.Variant, "flawed_") {
			return c.Variant + ", " + c.Severity
		}
		return levelOf(c, got.Factor)
	}
	for _, trial := range trials {
		if has(part, trial.Cell) {
			planned[key{trial.Model, level(trial.Cell)}]++
		}
	}
	for _, a := range attempts {
		if !has(part, a.Cell) {
			continue
		}
		k, m := key{a.Model, level(a.Cell)}, metrics[a.Model]
		done[k]++
		m.Done++
		switch a.Level {
		case assay.FullSuccess:
			full[k]++
			m.Full.Count++
			m.Weighted++
		case assay.PartialSuccess:
			m.Partial.Count++
			m.Weighted += 0.5
		}
		m.MeanTurns += float64(a.Turns)
		m.ToolCoverage += a.Coverage
		metrics[a.Model] = m
	}
	for _, r := range got.Rows {
		lowest, highest := 1.0, 0.0
		for i, c := range r.Cells {
			k := key{r.Model, c.Level}
			if c.Level != got.Levels[i] || c.Planned != planned[k] || c.Done != done[k] ||
				c.Full != full[k] {
				t.Fatalf(
					"%s has %+v, want %d of %d done, %d full", k, c, done[k], planned[k], full[k],
				)
			}
			if c.Rate != float64(c.Full)/float64(max(1, c.Done)) ||
				!atLeast(c.Interval, stat.Wilson(c.Full, c.Done, stat.Z95)) {
				t.Fatalf("the rate does not follow from its counts: %+v", c)
			}
			if c.Planned > 0 {
				lowest, highest = min(lowest, c.Rate), max(highest, c.Rate)
			}
			delete(planned, k)
		}
		unknown := slices.ContainsFunc(
			r.Cells,
			func(c report.PivotCell) bool { return c.Planned > 0 && c.Done == 0 },
		)
		if unknown != (r.Mean == nil) ||
			!unknown && (*r.Mean < lowest-1e-12 || *r.Mean > highest+1e-12) {
			t.Fatalf("the mean of %+v is %v", r.Cells, r.Mean)
		}
	}
	if len(planned) > 0 {
		t.Fatalf("no cell of the table has %v", planned)
	}
	for _, m := range got.Metrics {
		checkMetrics(t, m, metrics[m.Model])
		mine := func(a *assay.Attempt) bool { return a.Model == m.Model && has(part, a.Cell) }
		for what, s := range map[string][2]report.Share{
			"full":    {m.Full, slowShare(attempts, mine, func(a *assay.Attempt) bool { return a.Level == assay.FullSuccess })},
			"partial": {m.Partial, slowShare(attempts, mine, func(a *assay.Attempt) bool { return a.Level == assay.PartialSuccess })},
			"failure": {m.Failure, slowShare(attempts, mine, func(a *assay.Attempt) bool { return a.Level == assay.Failure })},
			"success": {m.Success, slowShare(attempts, mine, func(a *assay.Attempt) bool { return a.Level != assay.Failure })},
			"ordered": {m.Ordered, slowShare(attempts, mine, func(a *assay.Attempt) bool { return a.OrderCorrect })},
		} {
			if diff := same(s[0], s[1]); diff != "" {
				t.Fatalf("%s of %s (-want +got):\n%s", what, m.Model, diff)
			}
		}
	}
	if (got.Factor == "task_type" || got.Factor == "difficulty") != (len(got.Metrics) == len(got.Rows)) &&
		len(got.Rows) > 0 {
		t.Fatalf(
			"%d rows of metrics for %d models by %s", len(got.Metrics), len(got.Rows), got.Factor,
		)
	}
	checkNames(t, part, got)
}

// checkMetrics compares metrics with sums.
func checkMetrics(t *rapid.T, got, sum report.Metrics) {
	t.Helper()
	n := float64(max(1, sum.Done))
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"n", float64(got.Done), float64(sum.Done)},
		{"full", got.Full.Rate * n, float64(sum.Full.Count)},
		{"partial", got.Partial.Rate * n, float64(sum.Partial.Count)},
		{"failure", got.Failure.Rate * n, float64(sum.Done - sum.Full.Count - sum.Partial.Count)},
		{"success", got.Success.Rate * n, float64(sum.Full.Count + sum.Partial.Count)},
		{"weighted", got.Weighted * n, sum.Weighted},
		{"turns", got.MeanTurns * n, sum.MeanTurns},
		{"coverage", got.ToolCoverage * n, sum.ToolCoverage},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Fatalf("%s of %s is %v, want %v", c.what, got.Model, c.got, c.want)
		}
	}
}

// checkNames checks that the factor is the first one that varies, that rows are in the order of the
// part's models, and that each level occurs once.
func checkNames(t *rapid.T, part report.Part, got report.Pivot) {
	t.Helper()
	want := "task_type"
	for _, f := range []string{"reliability", "difficulty", "severity", "variant"} {
		if slices.Contains(part.Varies, f) {
			want = f
		}
	}
	if got.Name != part.Name || got.Factor != want {
		t.Fatalf("%q by %s, want %q by %s", got.Name, got.Factor, part.Name, want)
	}
	var models []string
	for _, r := range got.Rows {
		models = append(models, r.Model)
	}
	if len(part.Models) > 0 &&
		!slices.IsSortedFunc(
			models,
			func(a, b string) int { return slices.Index(part.Models, a) - slices.Index(part.Models, b) },
		) {
		t.Fatalf("rows %v, want the order of %v", models, part.Models)
	}
	if levels := slices.Sorted(slices.Values(got.Levels)); len(
		slices.Compact(levels),
	) != len(got.Levels) {
		t.Fatalf("levels %v", got.Levels)
	}
}

// checkErrors checks that each trial without full success has exactly one category.
func checkErrors(t *rapid.T, table *report.Table, categories []string, attempts []assay.Attempt) {
	t.Helper()
	if e := table.Errors; !slices.Equal(categories, e.Categories[:len(categories)]) ||
		!slices.IsSorted(e.Categories[len(categories):]) {
		t.Fatalf("categories %v, want first %v", e.Categories, categories)
	}
	done, full := make(map[string]int), make(map[string]int)
	for _, r := range table.Rows {
		done[r.Model] += r.Done
		full[r.Model] += r.Full
	}
	for _, r := range table.Errors.Rows {
		sum, rates := 0, 0.0
		for i, c := range r.Cells {
			if c.Category != table.Errors.Categories[i] ||
				c.Rate != float64(c.Count)/float64(max(1, r.Total)) {
				t.Fatalf("%+v of %d", c, r.Total)
			}
			failed := func(a *assay.Attempt) bool { return a.Model == r.Model && a.Level != assay.FullSuccess }
			if diff := same(c.Share, slowShare(attempts, failed, func(a *assay.Attempt) bool { return a.ErrorCategory == c.Category })); diff != "" {
				t.Fatalf("%s of %s (-want +got):\n%s", c.Category, r.Model, diff)
			}
			sum += c.Count
			rates += c.Rate
		}
		if sum != r.Total || r.Done != done[r.Model] || r.Total != r.Done-full[r.Model] ||
			r.Total > 0 && math.Abs(rates-1) > 1e-9 {
			t.Fatalf("%d in categories that add up to %v: %+v", sum, rates, r)
		}
	}
}

// checkPilot checks that the executor's verdict equals the level, because play makes it so.
func checkPilot(t *rapid.T, table *report.Table, attempts []assay.Attempt) {
	t.Helper()
	type key struct{ model, variant string }
	done, full := make(map[key]int), make(map[key]int)
	for _, r := range table.Rows {
		k := key{r.Model, r.Variant}
		done[k] += r.Done
		full[k] += r.Full
	}
	for _, r := range table.Pilot.Rows {
		k := key{r.Model, r.Variant}
		if r.Done != done[k] || r.Executor.Count != full[k] || r.Done == 0 {
			t.Fatalf("%+v, want %d of %d", r, full[k], done[k])
		}
		mine := func(a *assay.Attempt) bool { return a.Model == r.Model && a.Variant == r.Variant }
		if diff := same(r.Batch, slowShare(attempts, mine, func(a *assay.Attempt) bool { return a.Pilot.Batch == assay.FullSuccess })); diff != "" {
			t.Fatalf("batch of %v (-want +got):\n%s", k, diff)
		}
		delete(done, k)
	}
	for k, n := range done {
		if n > 0 {
			t.Fatalf("%v has %d outcomes and no row", k, n)
		}
	}
}

// The order of attempts only matters among attempts at the same trial.
func TestOrderOfAttemptsIsIrrelevant(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		trials, _ := drawTrials(t)
		d := drawDesign(t, trials)
		attempts := play(trials, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		for i := range rapid.IntRange(0, 5).Draw(t, "faults") {
			attempts = append(attempts, fault(trials[i%len(trials)], assay.Network))
		}
		build := func(attempts []assay.Attempt) *report.Table {
			table, err := d.Build("e", slices.Values(trials), all(attempts...))
			if err != nil {
				t.Fatal(err)
			}
			return table
		}
		want := build(attempts)
		if diff := cmp.Diff(want, build(rapid.Permutation(attempts).Draw(t, "order")), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Fatalf("another order (-want +got):\n%s", diff)
		}
	})
}

// rates gives the number of full successes among a hundred tasks of each cell.
type rates map[assay.Cell]int

func (r rates) build(t *testing.T, parts ...report.Part) *report.Table {
	t.Helper()
	var trials []assay.Trial
	var attempts []assay.Attempt
	for _, cell := range slices.SortedFunc(keys(r), func(a, b assay.Cell) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		for i := range 100 {
			trial := assay.NewTrial(
				cell, assay.TaskRef{ID: assay.TaskID(fmt.Sprint(i))}, assay.Setting{}, 1, 1,
			)
			trials = append(trials, trial)
			switch full := r[cell]; {
			case i < full:
				attempts = append(attempts, outcome(trial, assay.FullSuccess, 5))
			case full >= 0:
				attempts = append(attempts, outcome(trial, assay.Failure, 5))
			}
		}
	}
	table, err := report.Design{Parts: parts}.Build("e", slices.Values(trials), all(attempts...))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func keys(r rates) iter.Seq[assay.Cell] {
	return func(yield func(assay.Cell) bool) {
		for c := range r {
			if !yield(c) {
				return
			}
		}
	}
}

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
	for name, tc := range map[string]struct {
		rates rates
		part  report.Part
		want  string // levels, mean, optimal, flawed mean, difference, sensitivity, best
	}{
		"the index of the original's example": {
			rates{of("baseline", "easy", 0.8): 82, of("cot", "easy", 0.8): 88, of("optimal", "easy", 0.8): 85},
			variants("baseline", "cot", "optimal"), "[baseline cot optimal] 0.8500 – – – 0.0245 [cot]",
		},
		"the flawed mean is one more value": {
			rates{of("baseline", "easy", 0.8): 82, of("cot", "easy", 0.8): 88, of("optimal", "easy", 0.8): 85, of(drift, "easy", 0.8): 20, of(misuse, "easy", 0.8): 40},
			variants("baseline", "cot", "optimal"), "[baseline cot optimal] 0.8500 – 0.3000 – 0.2391 [cot]",
		},
		"flawed levels are one value, and two are best": {
			rates{of("optimal", "easy", 0.8): 50, of("baseline", "easy", 0.8): 60, of("cot", "easy", 0.8): 40, of(drift, "easy", 0.8): 80, of(misuse, "easy", 0.8): 40},
			variants("baseline", "cot", "optimal", drift, misuse),
			"[baseline cot optimal flawed_semantic_drift flawed_tool_misuse] 0.5400 – 0.6000 0.1000 0.0829 [baseline flawed]",
		},
		"optimal stands beside flaws": {
			rates{of("optimal", "easy", 0.8): 70, of("optimal", "hard", 0.8): 0, of("optimal", "easy", 0.6): 0, of(drift, "easy", 0.8): 50, of(misuse, "easy", 0.8): 60},
			variants(drift, misuse), "[flawed_semantic_drift flawed_tool_misuse] 0.5500 0.7000 0.5500 -0.1500 – []",
		},
		"it does not under other conditions": {
			rates{of("optimal", "easy", 0.9): 70, of("optimal", "hard", 0.8): 70, of(drift, "easy", 0.8): 50},
			variants(drift), "[flawed_semantic_drift] 0.5000 – 0.5000 – – []",
		},
		"nor under some of them": {
			rates{of("optimal", "easy", 0.9): 70, of(drift, "easy", 0.8): 50, of(drift, "easy", 0.9): 50},
			by("variant"), "[optimal flawed_semantic_drift] 0.6000 – 0.5000 -0.2000 – []",
		},
		"baseline and cot take optimal from elsewhere": {
			rates{of("baseline", "easy", 0.8): 82, of("cot", "easy", 0.8): 88, of("optimal", "easy", 0.8): 85},
			variants("baseline", "cot"), "[baseline cot] 0.8500 0.8500 – – 0.0245 [cot]",
		},
		"without an outcome nothing is derived": {
			rates{of("baseline", "easy", 0.8): 82, of("cot", "easy", 0.8): 88, of("optimal", "easy", 0.8): pending, of(drift, "easy", 0.8): 20},
			variants("baseline", "cot", "optimal", drift), "[baseline cot optimal flawed_semantic_drift] – – 0.2000 – – []",
		},
		"what is lost": {
			rates{of("cot", "easy", 0.6): 23, of("cot", "easy", 0.9): 71, of("cot", "easy", 0.75): 50},
			by("reliability"), "[0.9 0.75 0.6] 0.4800 – – 0.4800 – []",
		},
		"the last less the first": {
			rates{of("cot", "medium", 0.8): 15, of("cot", "very_easy", 0.8): 25, of("cot", "easy_biased", 0.8): 10},
			by("difficulty"), "[very_easy medium easy_biased] 0.1667 – – -0.1500 – []",
		},
		"severities": {
			rates{severe(drift, "severe"): 15, severe(drift, "light"): 55},
			by("severity"), "[light severe] 0.3500 – – -0.4000 – []",
		},
		"types of task have no contrast": {
			rates{of("cot", "easy", 0.8): 15}, by("task_type"), "[basic_task] 0.1500 – – – – []",
		},
	} {
		v := tc.rates.build(t, tc.part).Parts[0]
		r := v.Rows[0]
		var beside *float64
		if r.Optimal != nil {
			beside = &r.Optimal.Rate
		}
		got := fmt.Sprint(
			v.Levels, " ", value(r.Mean), " ", value(beside), " ", value(r.FlawedMean), " ",
			value(r.Difference), " ", value(r.Sensitivity), " ", r.Best,
		)
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// If no task can be finished within the turns, the best possible is 0, but it was measured.
func TestUnsolvableTasksAreMeasured(t *testing.T) {
	t.Parallel()
	m := trial("m", "cot", 0.8, "t")
	a := outcome(m, assay.Failure, 1)
	a.ScoreVersion = "assay-1.1"
	table := build(t, []assay.Trial{m}, a)
	if r := table.Rows[0]; value(r.Best) != "0.0000" || r.BestMeasured != 1 || r.OfBest != nil {
		t.Errorf(
			"best possible %s of %d, of best %s", value(r.Best), r.BestMeasured, value(r.OfBest),
		)
	}
	if got := text(t, table); !strings.Contains(got, "% of") {
		t.Errorf("the column is missing:\n%s", got)
	}
}

func text(t *testing.T, table *report.Table) string {
	t.Helper()
	var b strings.Builder
	if err := exhibit.WriteTable(&b, table, document.Terminal{}); err != nil {
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
	var trials []assay.Trial
	for _, severity := range []string{"severe", "light", "medium"} {
		for _, name := range []string{"flawed_tool_misuse", "flawed_missing_step", "cot"} {
			c := of(name, "easy", 0.8)
			if name != "cot" {
				c.Severity = severity
			}
			trials = append(
				trials,
				assay.NewTrial(c, assay.TaskRef{ID: assay.TaskID(severity)}, assay.Setting{}, 1, 1),
			)
		}
	}
	table, err := report.Design{Parts: []report.Part{{Varies: []string{"variant"}}}}.Build(
		"e", slices.Values(trials), all(),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"cot", "flawed_tool_misuse, light", "flawed_tool_misuse, medium", "flawed_tool_misuse, severe",
		"flawed_missing_step, light", "flawed_missing_step, medium", "flawed_missing_step, severe",
	}
	if diff := cmp.Diff(want, table.Parts[0].Levels); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
}

// Only outcomes that count contribute their prompts and rules.
func TestPromptsAndRulesComeFromOutcomes(t *testing.T) {
	t.Parallel()
	var trials []assay.Trial
	var attempts []assay.Attempt
	add := func(task, templates, version string, kind assay.FaultKind) {
		of := trial("m", "cot", 0.8, task)
		a := outcome(of, assay.FullSuccess, 3)
		if kind != "" {
			a = fault(of, kind)
		}
		a.Templates, a.ScoreVersion = templates, version
		trials, attempts = append(trials, of), append(attempts, a)
	}
	add("t1", "d993f258aa", "pilot-1", "")
	add("t2", "a fault's", "", assay.Network)
	if got := text(t, build(t, trials, attempts...)); strings.Contains(got, "pooled") {
		t.Errorf("a note without need:\n%s", got)
	}
	add("t3", "be60f21fbb", "assay-1.1", "")
	add("t4", "be60f21fbb", "pilot-1", "")
	late := attempts[0]
	late.Templates, late.ScoreVersion = "too late", "too late"
	table := build(t, trials, append(attempts, late)...)
	if diff := cmp.Diff([][]string{{"be60f21fbb", "d993f258aa"}, {"assay-1.1", "pilot-1"}}, [][]string{table.Templates, table.ScoreVersions}); diff != "" {
		t.Errorf("wordings and rules (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		"Outcomes of 2 wordings of the prompts are pooled: be60f21f…, d993f258…. Compare them with care.\n",
		"Outcomes judged by 2 versions of the rules are pooled: assay-1.1, pilot-1. `assay rescore` applies",
	} {
		if got := text(t, table); !strings.Contains(got, want) {
			t.Errorf("no note %q:\n%s", want, got)
		}
	}
}

// The version of the rules decides whether the best possible was measured. So a task that cannot be
// solved counts, and an old outcome does not.
func TestRulesDecideWhetherBestIsMeasured(t *testing.T) {
	t.Parallel()
	var trials []assay.Trial
	var attempts []assay.Attempt
	play := func(model, version string, best float64, level assay.Level) {
		trial := trial(model, "cot", 0.8, fmt.Sprint(len(trials)))
		a := outcome(trial, level, 3)
		a.Best, a.ScoreVersion = best, version
		trials, attempts = append(trials, trial), append(attempts, a)
	}
	play("new", "v2", 0.75, assay.FullSuccess)
	play("new", "v2", 0, assay.Failure)
	play("old", "pilot-1", 0, assay.FullSuccess)
	play("old", "", 0, assay.FullSuccess)
	play("both", "pilot-1", 0, assay.FullSuccess)
	play("both", "v2", 0.5, assay.Failure)
	play("hopeless", "v2", 0, assay.Failure)
	trials = append(trials, trial("pending", "cot", 0.8, "t"))
	want := "new 0.3750 (2) 1.3333, old – (0) –, both 0.5000 (1) 0.0000, hopeless 0.0000 (1) –, pending – (0) –"
	var got []string
	table := build(t, trials, attempts...)
	for _, r := range table.Rows {
		got = append(
			got,
			fmt.Sprintf("%s %s (%d) %s", r.Model, value(r.Best), r.BestMeasured, value(r.OfBest)),
		)
	}
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("best possible: %s, want %s", text, want)
	}
	var text strings.Builder
	if err := exhibit.WriteTable(&text, table, document.Terminal{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "leave out trials that older rules judged") {
		t.Errorf("the note on old outcomes is missing:\n%s", text.String())
	}
}

// Each episode with a loop counts once. Kinds are in the order of assay.LoopKinds.
func TestEpisodesCountByFirstLoop(t *testing.T) {
	t.Parallel()
	var trials []assay.Trial
	var attempts []assay.Attempt
	for i, kind := range []assay.LoopKind{"new", assay.ErrorLoop, "", assay.RepeatLoop, assay.ErrorLoop} {
		trials = append(trials, trial("m", "cot", 0.8, fmt.Sprint(i)))
		a := outcome(trials[i], assay.FullSuccess, 3)
		a.Loop = kind
		attempts = append(attempts, a)
	}
	want := []report.LoopCount{{assay.RepeatLoop, 1}, {assay.ErrorLoop, 2}, {"new", 1}}
	if diff := cmp.Diff(want, build(t, trials, attempts...).Loops); diff != "" {
		t.Errorf("loops (-want +got):\n%s", diff)
	}
}

// A part lists the variants and types it would have, even if no task of the type is left.
func TestPartsListTheirLeftOutTasks(t *testing.T) {
	t.Parallel()
	name := "flawed_missing_step"
	d := report.Design{
		LeftOut: []report.LeftOut{
			{name, "simple_task", 20, 20},
			{name, "data_pipeline", 1, 20},
			{"flawed_other", "basic_task", 3, 20},
		},
		Parts: []report.Part{
			{
				Name: "flaws",
				Has:  func(c assay.Cell) bool { return c.Variant == name && c.TaskType != "data_pipeline" },
			},
			{Name: "plain", Has: func(c assay.Cell) bool { return c.Variant == "cot" }},
		},
	}
	table, err := d.Build(
		"e", slices.Values([]assay.Trial{trial("m", name, 0.8, "t"), trial("m", "cot", 0.8, "t")}),
		all(),
	)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]report.LeftOut{d.LeftOut, d.LeftOut[:1], {}}, [][]report.LeftOut{table.LeftOut, table.Parts[0].LeftOut, table.Parts[1].LeftOut}); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}

// A single part has its own table only if its factor is not in the main table.
func TestSinglePartIsShownIfItAdds(t *testing.T) {
	t.Parallel()
	r := rates{of("cot", "easy", 0.8): 10, of("optimal", "hard", 0.7): 20}
	nothing := report.Part{Name: "nothing", Has: func(assay.Cell) bool { return false }}
	for name, tc := range map[string]struct {
		parts []report.Part
		want  bool
	}{
		"variant":              {[]report.Part{{Name: "part", Varies: []string{"variant"}}}, false},
		"reliability":          {[]report.Part{{Name: "part", Varies: []string{"reliability"}}}, false},
		"difficulty":           {[]report.Part{{Name: "part", Varies: []string{"difficulty"}}}, true},
		"one type":             {[]report.Part{{Name: "part"}}, false},
		"one of two":           {[]report.Part{{Name: "part", Varies: []string{"variant"}}, nothing}, true},
		"a part without cells": {[]report.Part{nothing, nothing}, false},
	} {
		var text strings.Builder
		if err := exhibit.WriteTable(&text, r.build(t, tc.parts...), document.Terminal{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text.String(), "Full success by"); got != tc.want {
			t.Errorf(
				"%s: there is a table of a part: %v, want %v\n%s", name, got, tc.want,
				text.String(),
			)
		}
	}
}

// An attempt leaves no memory behind. Maps grow by up to a byte an attempt, depending on their
// seeds. Keeping even one number for each attempt would take more than eight bytes.
func TestMemoryDoesNotGrowWithAttempts(t *testing.T) {
	d, trials := suite()
	attempts := play(trials, rand.New(rand.NewPCG(1, 2)))
	const times = 100
	takes := func(n int) (allocations, bytes float64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := d.Build("e", slices.Values(trials), repeated(attempts, n)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		allocations = float64(after.Mallocs - before.Mallocs)
		return allocations, float64(after.TotalAlloc - before.TotalAlloc)
	}
	takes(1) // warms up
	allocations, bytes := takes(1)
	moreAllocations, moreBytes := takes(times)
	more := float64(len(attempts) * (times - 1))
	if a, b := (moreAllocations-allocations)/more, (moreBytes-bytes)/more; a > 0.01 || b > 8 {
		t.Errorf("each of %v more attempts takes %.3f allocations and %.1f bytes", more, a, b)
	}
}

// repeated yields the attempts n times.
func repeated(attempts []assay.Attempt, n int) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		for range n {
			for _, a := range attempts {
				if !yield(a, nil) {
					return
				}
			}
		}
	}
}

// BenchmarkBuild builds the tables of a million trials of five models.
func BenchmarkBuild(b *testing.B) {
	d, few := suite()
	trials := func(yield func(assay.Trial) bool) {
		for i := range 1_000_000 {
			trial := few[i%len(few)]
			trial.ID = assay.TrialID(fmt.Sprintf("%032x", i))
			if !yield(trial) {
				return
			}
		}
	}
	played := play(few, rand.New(rand.NewPCG(1, 2)))
	attempts := func(yield func(assay.Attempt, error) bool) {
		i := 0
		for trial := range trials {
			a := played[i%len(few)]
			a.Trial = trial
			if i++; !yield(a, nil) {
				return
			}
		}
	}
	for b.Loop() {
		if _, err := d.Build("e", trials, attempts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/million")
}

// Tasks that a flaw does not apply to make no difference.
func TestDifferencesUseSharedTasks(t *testing.T) {
	t.Parallel()
	var s scene
	s.play("m", "optimal", 20, fails(2, 0))
	s.play("m", "flawed_missing_step", 20, fails(2, 0))
	s.trials = slices.Delete(s.trials, 20, 29) // keeps 11
	s.attempts = slices.Delete(s.attempts, 20, 29)
	table, err := report.Design{Parts: []report.Part{{Varies: []string{"variant"}}}}.Build(
		"e", slices.Values(s.trials), all(s.attempts...),
	)
	if err != nil {
		t.Fatal(err)
	}
	r := table.Parts[0].Rows[0]
	if value(r.Difference) != "0.0000" || r.Cells[0].Rate == r.Cells[1].Rate {
		t.Errorf("the difference is %s between %+v", value(r.Difference), r.Cells)
	}
}
