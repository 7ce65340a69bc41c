package report_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
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

// trial returns a trial of a model in a variant, at a reliability.
func trial(model, variant string, reliability float64, task string) assay.Trial {
	cell := assay.Cell{
		Model: model, Variant: variant, Difficulty: "easy", TaskType: "basic_task",
		Reliability: reliability,
	}
	return assay.NewTrial(
		cell, assay.TaskRef{ID: assay.TaskID(task)}, assay.Setting{World: "pilot"}, 1, 1,
	)
}

func outcome(t assay.Trial, level assay.Level, turns int) assay.Attempt {
	return assay.Attempt{
		Trial: t, Experiment: "e", Outcome: assay.Outcome{Level: level, Turns: turns},
		Spend: assay.Spend{CostUSD: 0.25},
	}
}

func fault(t assay.Trial, kind assay.FaultKind) assay.Attempt {
	return assay.Attempt{Trial: t, Experiment: "e", FaultKind: kind, Spend: assay.Spend{CostUSD: 0.25}}
}

// all yields attempts the way a store does.
func all(attempts ...assay.Attempt) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		for _, a := range attempts {
			if !yield(a, nil) {
				return
			}
		}
	}
}

func build(t testing.TB, planned []assay.Trial, attempts ...assay.Attempt) *report.Table {
	t.Helper()
	table, err := report.Build("e", slices.Values(planned), all(attempts...))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// mixed returns an unfinished experiment with two models. One of them has only faults.
func mixed() ([]assay.Trial, []assay.Attempt) {
	var trials []assay.Trial
	for _, model := range []string{"model-b", "a"} {
		for _, reliability := range []float64{0.9, 0.75} {
			for i := range 4 {
				trials = append(trials, trial(model, "baseline", reliability, fmt.Sprint("t", i)))
			}
		}
	}
	b := trials[:8]
	return trials, []assay.Attempt{
		fault(b[0], assay.RateLimited), outcome(b[0], assay.FullSuccess, 4),
		outcome(b[1], assay.PartialSuccess, 10), fault(b[2], assay.Timeout),
		fault(b[2], assay.Timeout), outcome(b[3], assay.Failure, 7),
		outcome(b[4], assay.FullSuccess, 3), fault(trials[8], assay.Identity),
	}
}

func TestRowsCountOutcomesAndFaults(t *testing.T) {
	t.Parallel()
	trials, attempts := mixed()
	got := build(t, trials, attempts...)
	third, unknown := 1.0/3, stat.Interval{Low: 0, High: 1}
	oneOfThree := stat.Wilson(1, 3, stat.Z95)
	line := func(model string, reliability float64) row {
		return row{
			Model: model, Variant: "baseline", Difficulty: "easy", Reliability: reliability,
			Planned: 4, DesignEffect: 1,
			FullInterval: unknown, PartialInterval: unknown, FailureInterval: unknown,
		}
	}
	mixed, full := line("model-b", 0.9), line("model-b", 0.75)
	faulty, pending := line("a", 0.9), line("a", 0.75)
	mixed.Done, mixed.Faults, mixed.Full, mixed.Partial, mixed.Failed = 3, 3, 1, 1, 1
	mixed.FullRate, mixed.PartialRate, mixed.FailureRate = third, third, third
	mixed.FullInterval, mixed.PartialInterval = oneOfThree, oneOfThree
	mixed.FailureInterval, mixed.MeanTurns, mixed.CostUSD = oneOfThree, 7, 1.5
	full.Done, full.Full, full.FullRate, full.MeanTurns, full.CostUSD = 1, 1, 1, 3, 0.25
	full.FullInterval = stat.Wilson(1, 1, stat.Z95)
	full.PartialInterval = stat.Wilson(0, 1, stat.Z95)
	full.FailureInterval = stat.Wilson(0, 1, stat.Z95)
	faulty.Faults, faulty.CostUSD = 1, 0.25
	want := &report.Table{
		Experiment: "e", Planned: 16, Done: 4, Averaged: []string{},
		Population: report.Population{Tasks: 3, Sequences: 3, Cluster: stat.ByTask},
		Met: assay.FaultCount{Ended: map[assay.FaultKind]int{
			assay.Identity: 1, assay.RateLimited: 1, assay.Timeout: 2,
		}, Retried: map[assay.FaultKind]int{}},
		Templates: []string{""}, ScoreVersions: []string{""},
	}
	others := cmpopts.IgnoreFields(report.Table{}, "Rows", "Parts", "Errors", "Loops", "Pilot", "LeftOut")
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12), others); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	lines := []row{full, mixed, pending, faulty}
	if diff := cmp.Diff(lines, rows[row](got.Rows), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// A fault of any kind changes no rate. An interrupted attempt is no fault.
func TestFaultIsNeverFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range assay.FaultKinds {
		trials := []assay.Trial{trial("m", "cot", 0.8, "t1"), trial("m", "cot", 0.8, "t2")}
		parked := fault(trials[1], kind)
		parked.Parked = true
		done, failed := outcome(trials[0], assay.FullSuccess, 2), fault(trials[1], kind)
		r := rows[row](build(t, trials, done, failed, parked).Rows)[0]
		faults := 2
		if kind == assay.Interrupted {
			faults = 0
		}
		if r.Failed != 0 || r.FailureRate != 0 || r.FullRate != 1 || r.Done != 1 || r.Faults != faults {
			t.Errorf("%s: %+v", kind, r)
		}
	}
}

func TestAttemptsCountByTrial(t *testing.T) {
	t.Parallel()
	mine, other := trial("m", "cot", 0.8, "t1"), trial("m", "cot", 0.8, "t2")
	shared := outcome(mine, assay.PartialSuccess, 5)
	shared.Experiment = "another"
	strange, fault := outcome(other, assay.Failure, 9), fault(other, assay.Server)
	r := rows[row](build(t, []assay.Trial{mine}, strange, fault, shared).Rows)[0]
	if r.Partial != 1 || r.Done != 1 || r.Failed != 0 || r.Faults != 0 || r.MeanTurns != 5 ||
		r.CostUSD != 0.25 {
		t.Errorf("a trial that another experiment settled, beside one that was not planned: %+v", r)
	}
}

func TestFirstOutcomeSettlesTrial(t *testing.T) {
	t.Parallel()
	m := trial("m", "cot", 0.8, "t1")
	first, later := outcome(m, assay.Failure, 3), outcome(m, assay.FullSuccess, 9)
	r := rows[row](build(t, []assay.Trial{m}, first, later, fault(m, assay.Network)).Rows)[0]
	if r.Done != 1 || r.Failed != 1 || r.Full != 0 || r.MeanTurns != 3 || r.Faults != 1 ||
		r.CostUSD != 0.75 {
		t.Errorf("two outcomes of one trial: %+v", r)
	}
}

func TestErrorsOfAttemptsAreReturned(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk")
	table, err := report.Build(
		"e",
		slices.Values([]assay.Trial{}),
		func(yield func(assay.Attempt, error) bool) {
			yield(assay.Attempt{}, broken)
		},
	)
	if !errors.Is(err, broken) || table != nil {
		t.Errorf("Build = %v, %v, want the error of the attempts", table, err)
	}
}

// The lists of an empty table are [], not null.
func TestEmptyTableHasNoNull(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(build(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"experiment":"e","rows":[],"averaged_over":[],"planned":0,"done":0,"population":{"tasks":0,"sequences":0,"cluster":"task"},"skipped":0,"met":{"faults":{},"retried":{}},` +
		`"templates":[],"score_versions":[],"parts":[],"errors":{"causes":[],"rows":[]},"loops":[],"pilot":{"rows":[],"averaged_over":[]},` +
		`"left_out":[]}`
	if got := string(b); got != want {
		t.Errorf("an empty table is %s, want %s", got, want)
	}
}

var variantNames = []string{"v0", "flawed_v1", "flawed_v2"}

// drawTrials draws the product of levels of all factors. It returns the factors that rows average
// over.
func drawTrials(t *rapid.T) (trials []assay.Trial, averaged []string) {
	levels := func(name string, most int) int { return rapid.IntRange(1, most).Draw(t, name) }
	models, variants, rates := levels("models", 2), levels("variants", 3), levels("rates", 2)
	types, difficulties := levels("types", 3), levels("difficulties", 2)
	severities := levels("severities", 2)
	tasks, repeats := levels("tasks", 2), levels("repeats", 2)
	for i := range models * variants * rates * types * difficulties * severities * tasks * repeats {
		next := func(n int) int { level := i % n; i /= n; return level }
		cell := assay.Cell{
			Model: fmt.Sprint("m", next(models)), Variant: variantNames[next(variants)],
			Reliability: float64(next(rates)) / 2, TaskType: fmt.Sprint("t", next(types)),
			Difficulty: fmt.Sprint("d", next(difficulties)),
			Severity:   fmt.Sprint("s", next(severities)),
		}
		ref := assay.TaskRef{ID: assay.TaskID(fmt.Sprint("task", next(tasks)))}
		trials = append(trials, assay.NewTrial(cell, ref, assay.Setting{}, 1, 1+next(repeats)))
	}
	averaged = []string{}
	for _, f := range []struct {
		name   string
		levels int
	}{{"task_type", types}, {"repeat", repeats}} {
		if f.levels > 1 {
			averaged = append(averaged, f.name)
		}
	}
	return trials, averaged
}

func TestRowsAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		planned, averaged := drawTrials(t)
		strangers := []assay.Trial{
			trial("m0", "v0", 0, "unplanned"),
			trial("stranger", "v0", 0, "unplanned"),
		}
		attempts := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) assay.Attempt {
			of := rapid.SampledFrom(append(strangers, planned...)).Draw(t, "trial")
			if rapid.Bool().Draw(t, "fault") {
				return fault(of, rapid.SampledFrom(assay.FaultKinds).Draw(t, "kind"))
			}
			a := outcome(
				of, rapid.SampledFrom(assay.Levels).Draw(t, "level"),
				rapid.IntRange(1, 10).Draw(t, "turns"),
			)
			a.Superseded = rapid.Bool().Draw(t, "superseded")
			return a
		}), 0, 200).Draw(t, "attempts")
		table, err := report.Build("e", slices.Values(planned), all(attempts...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(averaged, table.Averaged); diff != "" {
			t.Fatalf("averaged over (-want +got):\n%s", diff)
		}
		checkRows(t, table, planned, attempts)
	})
}

// checkRows counts again, the slow way.
func checkRows(t *rapid.T, table *report.Table, planned []assay.Trial, attempts []assay.Attempt) {
	sum := row{}
	for _, r := range rows[row](table.Rows) {
		if r.Full+r.Partial+r.Failed != r.Done || r.Done > r.Planned || r.Planned == 0 {
			t.Fatalf("impossible counts: %+v", r)
		}
		if rates := r.FullRate + r.PartialRate + r.FailureRate; math.Abs(rates-1) > 1e-12 &&
			(r.Done > 0 || rates != 0) {
			t.Fatalf("rates add up to %v: %+v", rates, r)
		}
		if r.FullInterval.Low > r.FullRate || r.FullInterval.High < r.FullRate {
			t.Fatalf("the interval %v does not hold the rate %v", r.FullInterval, r.FullRate)
		}
		sum.Planned += r.Planned
		sum.Done += r.Done
		sum.Faults += r.Faults
		sum.CostUSD += r.CostUSD
	}
	ids := make(map[assay.TrialID]bool)
	for _, trial := range planned {
		ids[trial.ID] = true
	}
	want, settled := row{}, make(map[assay.TrialID]bool)
	for _, a := range attempts {
		switch {
		case !ids[a.ID]:
			continue
		case a.OnlyCosts():
		case a.Settles():
			settled[a.ID] = true
		default:
			want.Faults++
		}
		want.CostUSD += a.CostUSD
	}
	want.Planned, want.Done = len(planned), len(settled)
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Fatalf("sums over the rows (-want +got):\n%s", diff)
	}
	if table.Planned != sum.Planned || table.Done != sum.Done {
		t.Fatalf(
			"table says %d of %d, its rows %d of %d", table.Done, table.Planned, sum.Done,
			sum.Planned,
		)
	}
}

// The first trial of a row decides its place.
func TestRowsKeepPlannedOrder(t *testing.T) {
	t.Parallel()
	z, a := trial("z", "cot", 0.8, "t1"), trial("a", "cot", 0.8, "t1")
	var names []string
	for _, r := range build(t, []assay.Trial{z, a, trial("z", "cot", 0.8, "t2")}).Rows.Rows {
		names = append(names, r.Model)
	}
	if got := strings.Join(names, " "); got != "z a" {
		t.Errorf("rows are of %s, want z a", got)
	}
}

// TestEffectsAndData checks the measures of calls over a model's outcomes, without faults.
func TestEffectsAndData(t *testing.T) {
	t.Parallel()
	var x scene
	for i, o := range []assay.Outcome{
		{Precision: 1},
		{Precision: .5, UnwantedEffects: 3, Broken: "filter"},
		{Precision: .5, Broken: "parser"},
		{Precision: 0, Broken: "parser"},
	} {
		a := x.try(of(assay.Optimal, "easy", .8), fmt.Sprint(i), 1, assay.Setting{}, false)
		a.Precision, a.UnwantedEffects, a.Broken = o.Precision, o.UnwantedEffects, o.Broken
	}
	s := rows[effort](x.analyze(t, report.Beside{}).Effort)[0]
	if s.Precision != .5 || s.Unwanted.Count != 1 || s.WrongData.Count != 3 || s.WrongDataAt != "parser" {
		t.Errorf("precision %v, unwanted %+v, broken %+v at %s", s.Precision, s.Unwanted, s.WrongData,
			s.WrongDataAt)
	}
}

// TestExposure checks that the faults of tools of all outcomes are added up.
func TestExposure(t *testing.T) {
	t.Parallel()
	exposures := func(scheduledAndMet ...[2]int) []exposure {
		var s scene
		for i, n := range scheduledAndMet {
			a := s.try(of(assay.Optimal, "easy", .8), fmt.Sprint(i), 1, assay.Setting{}, i%2 > 0)
			a.FaultsScheduled, a.FaultsMet = n[0], n[1]
		}
		return rows[exposure](s.analyze(t, report.Beside{}).Exposures)
	}
	if got := exposures([2]int{}); len(got) != 0 {
		t.Errorf("without a scheduled fault there is %+v", got)
	}
	got := exposures([2]int{2, 2}, [2]int{3, 1}, [2]int{1, 1}, [2]int{4, 0}, [2]int{})[0]
	if got.Scheduled != 10 || got.Met != 4 || got.Done != 5 {
		t.Errorf("%+v", got)
	}
}
