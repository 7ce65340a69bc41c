package report_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
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
	var d report.Design
	factors := rapid.SampledFrom([]string{
		"task_type", "reliability", "difficulty", "severity", "variant",
	})
	for i := range rapid.IntRange(0, 3).Draw(t, "parts") {
		part := report.Part{
			Name:   fmt.Sprint("part ", i),
			Varies: rapid.SliceOfDistinct(factors, rapid.ID).Draw(t, "varies"),
			Models: rapid.SliceOfDistinct(rapid.SampledFrom(models), rapid.ID).Draw(t, "models"),
		}
		if salt := rapid.IntRange(0, 3).Draw(t, "salt"); salt > 0 {
			part.Has = func(c assay.Cell) bool {
				return len(fmt.Sprint(c))%3 != salt && c.Variant != "v0"
			}
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
		checkErrors(t, table, attempts)
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
	got.Of = want.Of // unknown after JSON
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
	sums := make(map[string]metrics)
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
		k, m := key{a.Model, level(a.Cell)}, sums[a.Model]
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
		sums[a.Model] = m
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
	for _, m := range mainOf(got) {
		checkMetrics(t, m, sums[m.Model])
		mine := func(a *assay.Attempt) bool { return a.Model == m.Model && has(part, a.Cell) }
		level := func(is func(assay.Level) bool) report.Share {
			return slowShare(attempts, mine, func(a *assay.Attempt) bool { return is(a.Level) })
		}
		for what, s := range map[string][2]report.Share{
			"full":    {m.Full, level(func(l assay.Level) bool { return l == assay.FullSuccess })},
			"partial": {m.Partial, level(func(l assay.Level) bool { return l == assay.PartialSuccess })},
			"failure": {m.Failure, level(func(l assay.Level) bool { return l == assay.Failure })},
			"success": {m.Success, level(func(l assay.Level) bool { return l != assay.Failure })},
			"ordered": {m.Ordered, slowShare(attempts, mine,
				func(a *assay.Attempt) bool { return a.OrderCorrect })},
		} {
			if diff := same(s[0], s[1]); diff != "" {
				t.Fatalf("%s of %s (-want +got):\n%s", what, m.Model, diff)
			}
		}
	}
	if (got.Factor == "task_type" || got.Factor == "difficulty") != (len(mainOf(got)) == len(got.Rows)) &&
		len(got.Rows) > 0 {
		t.Fatalf(
			"%d rows of metrics for %d models by %s", len(mainOf(got)), len(got.Rows), got.Factor,
		)
	}
	checkNames(t, part, got)
}

// mainOf returns the main measures of a part, which it may lack.
func mainOf(p report.Pivot) []metrics {
	if p.Metrics == nil {
		return nil
	}
	return rows[metrics](p.Metrics)
}

// checkMetrics compares metrics with sums.
func checkMetrics(t *rapid.T, got, sum metrics) {
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
			func(a, b string) int {
				return slices.Index(part.Models, a) - slices.Index(part.Models, b)
			},
		) {
		t.Fatalf("rows %v, want the order of %v", models, part.Models)
	}
	if levels := slices.Sorted(slices.Values(got.Levels)); len(
		slices.Compact(levels),
	) != len(got.Levels) {
		t.Fatalf("levels %v", got.Levels)
	}
}

// checkErrors checks that each trial without full success has exactly one cause.
func checkErrors(t *rapid.T, table *report.Table, attempts []assay.Attempt) {
	t.Helper()
	done, full := make(map[string]int), make(map[string]int)
	for _, r := range rows[row](table.Rows) {
		done[r.Model] += r.Done
		full[r.Model] += r.Full
	}
	for _, r := range table.Errors.Rows {
		sum, rates := 0, 0.0
		for i, c := range r.Cells {
			if c.Cause != table.Errors.Causes[i] ||
				c.Rate != float64(c.Count)/float64(max(1, r.Total)) {
				t.Fatalf("%+v of %d", c, r.Total)
			}
			want := slowShare(attempts,
				func(a *assay.Attempt) bool {
					return a.Model == r.Model && a.Level != assay.FullSuccess
				},
				func(a *assay.Attempt) bool { return a.Cause == c.Cause })
			if diff := same(c.Share, want); diff != "" {
				t.Fatalf("%s of %s (-want +got):\n%s", c.Cause, r.Model, diff)
			}
			sum += c.Count
			rates += c.Rate
		}
		if sum != r.Total || r.Done != done[r.Model] || r.Total != r.Done-full[r.Model] ||
			r.Total > 0 && math.Abs(rates-1) > 1e-9 {
			t.Fatalf("%d in causes that add up to %v: %+v", sum, rates, r)
		}
	}
}

// checkPilot checks that the executor's verdict equals the level, because play makes it so.
func checkPilot(t *rapid.T, table *report.Table, attempts []assay.Attempt) {
	t.Helper()
	type key struct{ model, variant string }
	done, full := make(map[key]int), make(map[key]int)
	for _, r := range rows[row](table.Rows) {
		k := key{r.Model, r.Variant}
		done[k] += r.Done
		full[k] += r.Full
	}
	for _, r := range rows[pilotRow](table.Pilot.Rows) {
		k := key{r.Model, r.Variant}
		if r.Done != done[k] || r.Executor.Count != full[k] || r.Done == 0 {
			t.Fatalf("%+v, want %d of %d", r, full[k], done[k])
		}
		mine := func(a *assay.Attempt) bool { return a.Model == r.Model && a.Variant == r.Variant }
		want := slowShare(attempts, mine,
			func(a *assay.Attempt) bool { return a.Pilot.Batch == assay.FullSuccess })
		if diff := same(r.Batch, want); diff != "" {
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
		got := build(rapid.Permutation(attempts).Draw(t, "order"))
		if diff := cmp.Diff(plain(want), plain(got), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Fatalf("another order (-want +got):\n%s", diff)
		}
	})
}
