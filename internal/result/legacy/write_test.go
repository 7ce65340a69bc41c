package legacy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/legacy"
)

func all(attempts []assay.Attempt) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		for _, a := range attempts {
			if !yield(a, nil) {
				return
			}
		}
	}
}

func written(t testing.TB, attempts []assay.Attempt) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := legacy.WriteV3(&b, all(attempts)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// leafOf returns the fields of a leaf.
func leafOf(t testing.TB, a legacy.Aggregate) (fields map[string]float64) {
	t.Helper()
	if err := json.Unmarshal(a.Leaf, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

var day = time.Date(2026, 3, 4, 5, 6, 7, 89_000, time.FixedZone("", 3600))

// easy returns an easy cell of model m.
func easy(variant string) assay.Cell {
	return assay.Cell{
		Model: "m", Variant: variant, Difficulty: "easy", TaskType: "simple_task", Reliability: .8,
	}
}

func outcome(id string, cell assay.Cell, level assay.Level, category string) assay.Attempt {
	return assay.Attempt{
		Trial: assay.Trial{
			ID: assay.TrialID(id), Cell: cell,
			Setting: assay.Setting{World: "assay-1", Turns: 10},
		},
		Outcome:   assay.Outcome{Level: level, ErrorCategory: category, ScoreVersion: "assay-1.1"},
		StartedAt: day, FinishedAt: day.Add(time.Minute),
	}
}

// sample returns outcomes and faults of a few cells, always the same.
func sample(n int) []assay.Attempt {
	r := rand.New(rand.NewPCG(1, 2))
	var attempts []assay.Attempt
	for i := range n {
		cell := easy(assay.Variants[i/2%3])
		cell.Model = fmt.Sprint("m", 1+i%2)
		attempts = append(attempts, random(r.IntN, strconv.Itoa(i), cell))
	}
	return attempts
}

// random returns an attempt of a cell; pick returns a number below n.
func random(pick func(n int) int, id string, cell assay.Cell) assay.Attempt {
	a := outcome(id, cell, assay.Levels[pick(3)], "")
	if a.Level != assay.FullSuccess {
		a.ErrorCategory = assay.ErrorCategories[pick(len(assay.ErrorCategories))]
	}
	a.Outcome.Turns = pick(11)
	a.ExecutedTools = make([]string, pick(8))
	a.Coverage = float64(pick(4)) / 3
	a.Assisted = max(0, pick(6)-2)
	a.WorkingMS = int64(pick(100_000))
	a.StartedAt = day.Add(time.Duration(pick(1000)) * time.Second)
	a.FinishedAt = a.StartedAt.Add(time.Duration(pick(1000)) * time.Millisecond)
	if pick(4) == 0 {
		a.Pilot = &assay.PilotScores{
			Batch:         assay.Levels[pick(3)],
			WorkflowScore: float64(pick(93)) / 100, Phase2Score: float64(pick(101)) / 100,
			QualityScore: float64(pick(101)) / 100, FinalScore: float64(pick(101)) / 100,
		}
	}
	if a.Pilot == nil && a.Level == assay.FullSuccess ||
		a.Pilot != nil && a.Pilot.Batch == assay.FullSuccess {
		a.Coverage = 1
	}
	if pick(5) == 0 {
		a.Outcome, a.FaultKind = assay.Outcome{}, assay.FaultKinds[pick(len(assay.FaultKinds))]
	}
	return a
}

func drawAttempts(t *rapid.T) []assay.Attempt {
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
	n := rapid.IntRange(0, 60).Draw(t, "attempts")
	attempts := make([]assay.Attempt, n)
	for i := range attempts {
		variant := assay.Variants[pick(len(assay.Variants))]
		cell := assay.Cell{
			Model: []string{"m", `a "b"/c~d`, "ünï, <x>"}[pick(3)], Variant: variant,
			Difficulty: []string{"easy", "medium"}[pick(2)],
			TaskType: []string{
				"simple_task", "api_integration",
				"multi_stage_pipeline",
			}[pick(3)],
			Reliability: []float64{.9, .8, .7, .6}[pick(4)],
		}
		if _, flawed := assay.FlawOf(variant); flawed {
			cell.Severity = "medium"
		}
		attempts[i] = random(pick, strconv.Itoa(pick(max(1, n))),
			cell) // some trials occur several times
	}
	return attempts
}

// TestWrittenFilesHoldTheCounts checks that Read corrects nothing in written files, and that they
// contain the counts of a simple count.
func TestWrittenFilesHoldTheCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		attempts := drawAttempts(t)
		var b bytes.Buffer
		if _, err := legacy.WriteV3(&b, all(attempts)); err != nil {
			t.Fatal(err)
		}
		db, err := legacy.Read("db.json", bytes.NewReader(b.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		want := count(attempts)
		got := make(map[string]legacy.Counts)
		for _, a := range db.Aggregates {
			if c, ok := a.Counts(); ok && a.Corrected == nil {
				got[strings.Join([]string{a.Model, a.Variant, a.Rate, a.Difficulty, a.TaskType},
					"|")] = c
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("counts (-want +got):\n%s", diff)
		}
	})
}

// count counts first outcomes by cell.
func count(attempts []assay.Attempt) map[string]legacy.Counts {
	counts := make(map[string]legacy.Counts)
	done := make(map[assay.TrialID]bool)
	for _, a := range attempts {
		if a.Level == "" || done[a.ID] {
			continue
		}
		done[a.ID] = true
		level := a.Level
		if a.Pilot != nil {
			level = a.Pilot.Batch
		}
		one := legacy.Counts{Total: 1}
		switch level {
		case assay.FullSuccess:
			one.Success, one.Full = 1, 1
		case assay.PartialSuccess:
			one.Success, one.Partial, one.Errors = 1, 1, 1
		default:
			one.Failed, one.Errors = 1, 1
		}
		k := strings.Join([]string{
			a.Model, a.Variant, assay.FormatReliability(a.Reliability),
			a.Difficulty, a.TaskType,
		}, "|")
		c := counts[k]
		c.Add(one)
		counts[k] = c
	}
	return counts
}

// TestLeafFields compares the fields of a leaf with the original's.
func TestLeafFields(t *testing.T) {
	t.Parallel()
	want := strings.Split("total,success,partial,failed,success_rate,partial_rate,failure_rate,weighted_success_score,full_success_rate,partial_success_rate,"+
		"avg_execution_time,avg_turns,avg_tool_calls,tool_coverage_rate,avg_workflow_score,avg_phase2_score,avg_quality_score,avg_final_score,"+
		"total_errors,tool_call_format_errors,timeout_errors,dependency_errors,parameter_config_errors,tool_selection_errors,"+
		"sequence_order_errors,max_turns_errors,other_errors,"+
		"tool_selection_error_rate,parameter_error_rate,sequence_error_rate,dependency_error_rate,timeout_error_rate,format_error_rate,"+
		"max_turns_error_rate,other_error_rate,"+
		"assisted_failure,assisted_success,total_assisted_turns,tests_with_assistance,avg_assisted_turns,assisted_success_rate,assistance_rate,"+
		"full_success,partial_success", ",")
	if diff := cmp.Diff(want, legacy.LeafFields); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// TestLeafOfThree checks the file of a leaf of three outcomes.
func TestLeafOfThree(t *testing.T) {
	t.Parallel()
	cell := easy("flawed_missing_step")
	cell.Severity = "light"
	full := outcome("1", cell, assay.FullSuccess, "")
	full.WorkingMS, full.Outcome.Turns, full.Coverage, full.Assisted = 1500, 4, 1, 3
	full.ExecutedTools = []string{"a", "b"}
	partial := outcome("2", cell, assay.PartialSuccess, assay.CategoryMaxTurns)
	partial.WorkingMS, partial.Outcome.Turns, partial.Coverage = 2500, 10, .5
	partial.ExecutedTools = []string{"a"}
	failed := outcome("3", cell, assay.Failure, "no such category")
	failed.Outcome.Turns, failed.Assisted = 7, 1
	failed.FinishedAt = day.Add(time.Hour)
	fault := outcome("4", cell, "", "")
	fault.FaultKind = assay.FaultKinds[0]
	again := outcome("1", cell, assay.Failure, assay.CategoryTimeout)
	attempts := []assay.Attempt{fault, full, partial, failed, again}

	text := written(t, attempts)
	db := read(t, text)
	if len(db.Aggregates) != 1 {
		t.Fatalf("%d leaves, want one", len(db.Aggregates))
	}
	got := leafOf(t, db.Aggregates[0])
	maps.DeleteFunc(got, func(_ string, v float64) bool { return v == 0 })
	const third = 1. / 3
	want := map[string]float64{
		"total": 3, "success": 2, "partial": 1, "failed": 1, "full_success": 1, "partial_success": 1,
		"success_rate": 2 * third, "partial_rate": third, "failure_rate": third,
		"weighted_success_score": .5,
		"full_success_rate":      third, "partial_success_rate": third,
		"avg_execution_time": 4 * third, "avg_turns": 7, "avg_tool_calls": 1,
		"tool_coverage_rate": .5,
		"total_errors":       2, "max_turns_errors": 1, "other_errors": 1,
		"max_turns_error_rate": .5, "other_error_rate": .5,
		"assisted_failure": 1, "assisted_success": 1, "total_assisted_turns": 4,
		"tests_with_assistance": 2,
		"avg_assisted_turns":    2, "assisted_success_rate": .5, "assistance_rate": 2 * third,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leaf (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"group":   `"m_simple_task_flawed_missing_step_easy": {`,
		"flaw":    `"flaw_type": "missing_step"`,
		"flawed":  `"is_flawed": true`,
		"created": `"created_at": "2026-03-04T04:06:07.000089"`,
		"updated": `"last_updated": "2026-03-04T05:06:07.000089"`,
		"overall": `"total_full": 1`,
		"tests":   `"instances": []`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: the file does not contain %s:\n%s", name, want, text)
		}
	}
}

// TestBatchLevel checks that in the pilot world the level is the one that the
// original recorded, and that no category is invented.
func TestBatchLevel(t *testing.T) {
	t.Parallel()
	cell := easy("optimal")
	a := outcome("1", cell, assay.FullSuccess, "")
	a.Pilot = &assay.PilotScores{
		Executor: assay.FullSuccess, Batch: assay.PartialSuccess,
		WorkflowScore: .75, Phase2Score: .85, QualityScore: .5, FinalScore: .85,
	}
	b := outcome("2", cell, assay.Failure, assay.CategorySequenceOrder)
	b.Pilot = &assay.PilotScores{
		Executor: assay.Failure,
		Batch:    assay.FullSuccess, WorkflowScore: .25,
	}
	got := read(t, written(t, []assay.Attempt{a, b})).Aggregates[0]
	if want := (legacy.Counts{
		Total: 2, Success: 2, Full: 1, Partial: 1,
		Errors: 1,
	}); got.Stored != want {
		t.Errorf("counts %+v, want %+v", got.Stored, want)
	}
	leaf := leafOf(t, got)
	for name, want := range map[string]float64{
		"other_errors": 1, "sequence_order_errors": 0, "avg_execution_time": 0,
		"avg_workflow_score": .5, "avg_phase2_score": .425, "avg_quality_score": .25,
		"avg_final_score": .425,
	} {
		if leaf[name] != want {
			t.Errorf("%s is %v, want %v", name, leaf[name], want)
		}
	}
}

func TestWriteDeterministic(t *testing.T) {
	t.Parallel()
	attempts := sample(200)
	first := written(t, attempts)
	for range 5 {
		if written(t, attempts) != first {
			t.Fatal("the same attempts gave different files")
		}
	}
	db := read(t, first)
	if db.CreatedAt != "2026-03-04T04:06:07.000089" ||
		!strings.HasPrefix(db.LastUpdated, "2026-03-04T04:") || db.LastUpdated <= db.CreatedAt {
		t.Errorf("created %s, updated %s", db.CreatedAt, db.LastUpdated)
	}
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	source := func(yield func(assay.Attempt, error) bool) {
		if yield(sample(1)[0], nil) {
			yield(assay.Attempt{}, broken)
		}
	}
	var b bytes.Buffer
	if _, err := legacy.WriteV3(&b, source); !errors.Is(err, broken) || b.Len() > 0 {
		t.Errorf("WriteV3: error %v after %d bytes", err, b.Len())
	}
	full := failing{broken}
	if _, err := legacy.WriteV3(full, all(sample(500))); !errors.Is(err, broken) {
		t.Errorf("WriteV3 to a full disk: %v", err)
	}
	odd := sample(3)
	odd[1] = outcome("x", odd[1].Cell, assay.FullSuccess, "")
	odd[1].Coverage = 2
	_, err := legacy.WriteV3(&b, all(odd))
	if err == nil || !strings.Contains(err.Error(), "trial x") {
		t.Errorf("coverage 2: error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
