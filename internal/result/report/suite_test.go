package report_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"gotest.tools/v3/golden"
)

var flaws = []string{
	"flawed_sequence_disorder", "flawed_tool_misuse", "flawed_parameter_error",
	"flawed_missing_step",
	"flawed_redundant_operations", "flawed_logical_inconsistency", "flawed_semantic_drift",
}

// suite returns an experiment of five parts that share cells. Its plan and the tables have
// different orders.
func suite() (report.Design, []assay.Trial) {
	models := []string{"gpt-4o-mini", "gemini-2.5-flash-06-17", "qwen2.5-7b-instruct"}
	plan := func(
		name string, variants, difficulties []string, rates []float64, varies ...string,
	) report.Part {
		return report.Part{
			Name:   name,
			Varies: append(varies, "task_type"),
			Has: func(c assay.Cell) bool {
				return slices.Contains(variants, c.Variant) &&
					slices.Contains(difficulties, c.Difficulty) &&
					slices.Contains(rates, c.Reliability)
			},
		}
	}
	easy, usual := []string{"easy"}, []float64{0.8}
	d := report.Design{
		LeftOut: []report.LeftOut{
			{Variant: "flawed_missing_step", TaskType: "simple_task", Tasks: 2, Of: 4},
			{Variant: "flawed_missing_step", TaskType: "basic_task", Tasks: 1, Of: 4},
			{Variant: "flawed_semantic_drift", TaskType: "basic_task", Tasks: 1, Of: 4},
			{Variant: "flawed_tool_misuse", TaskType: "basic_task", Tasks: 0, Of: 4},
		},
		Parts: []report.Part{
			plan("baseline", []string{"optimal"}, easy, usual),
			plan(
				"scale", []string{"optimal"}, []string{"very_easy", "medium"}, usual, "difficulty",
			),
			plan("flaws", flaws, easy, usual, "variant"),
			plan(
				"reliability", []string{"optimal"}, easy, []float64{0.9, 0.8, 0.7, 0.6},
				"reliability",
			),
			plan("prompts", []string{"baseline", "cot", "optimal"}, easy, usual, "variant"),
		},
	}
	d.Parts[1].Models = models[2:]
	var trials []assay.Trial
	for _, model := range models {
		for _, taskType := range slices.Backward(assay.TaskTypes) {
			for _, reliability := range []float64{0.6, 0.7, 0.8, 0.9} {
				for _, variant := range append([]string{"optimal", "cot", "baseline"}, flaws...) {
					for _, difficulty := range []string{"medium", "easy", "very_easy"} {
						cell := assay.Cell{
							Model: model, Variant: variant, Difficulty: difficulty,
							TaskType: taskType, Reliability: reliability,
						}
						if slices.Contains(flaws, variant) {
							cell.Severity = "severe"
						}
						trials = append(trials, tasks(d, cell)...)
					}
				}
			}
		}
	}
	return d, trials
}

// tasks returns a cell's trials if a part has the cell: four tasks, minus those that are left out.
func tasks(d report.Design, c assay.Cell) []assay.Trial {
	if !slices.ContainsFunc(d.Parts, func(p report.Part) bool { return has(p, c) }) {
		return nil
	}
	n := 4
	for _, l := range d.LeftOut {
		if l.Variant == c.Variant && l.TaskType == c.TaskType {
			n -= l.Tasks
		}
	}
	var trials []assay.Trial
	for i := range n {
		trials = append(
			trials,
			assay.NewTrial(
				c, assay.TaskRef{ID: assay.TaskID(fmt.Sprint(c.TaskType, i))},
				assay.Setting{World: "pilot"}, 1, 1,
			),
		)
	}
	return trials
}

// has implements the documentation of [report.Part].
func has(p report.Part, c assay.Cell) bool {
	return (len(p.Models) == 0 || slices.Contains(p.Models, c.Model)) && (p.Has == nil || p.Has(c))
}

// play draws an outcome for each trial.
func play(trials []assay.Trial, rng *rand.Rand) []assay.Attempt {
	var attempts []assay.Attempt
	for _, t := range trials {
		a := outcome(t, assay.FullSuccess, 3+rng.IntN(8))
		if rng.Float64() > t.Reliability-float64(len(t.Model)%7)/10 {
			a.Level = assay.Levels[1+rng.IntN(2)]
			a.Cause = assay.Causes[rng.IntN(len(assay.Causes))]
		}
		a.Coverage, a.ScoreVersion, a.Best = rng.Float64(), "pilot-2", t.Reliability*0.9
		a.OrderCorrect = a.Level == assay.FullSuccess || a.Coverage > 0.8
		if rng.IntN(20) == 0 {
			a.Loop, a.LoopTurn = assay.LoopKinds[rng.IntN(len(assay.LoopKinds))], 2
		}
		level := func() assay.Level { return assay.Levels[rng.IntN(len(assay.Levels))] }
		a.Pilot = &assay.PilotScores{Executor: a.Level, Paper: level(), Batch: level()}
		attempts = append(attempts, a)
	}
	return attempts
}

func TestSuiteFitsTerminal(t *testing.T) {
	t.Parallel()
	d, trials := suite()
	attempts := play(trials, rand.New(rand.NewPCG(1, 2)))
	attempts = slices.DeleteFunc(
		attempts,
		func(a assay.Attempt) bool { // empties one level and thins another
			return a.Model == "gemini-2.5-flash-06-17" && a.Reliability == 0.9 ||
				a.Difficulty == "very_easy" && a.TaskType != "simple_task"
		},
	)
	table, err := d.Build("suite", slices.Values(trials), all(attempts...))
	if err != nil {
		t.Fatal(err)
	}
	shown := text(t, table)
	golden.Assert(t, shown, "suite.txt")
	for line := range strings.Lines(shown) {
		if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > document.Screen {
			t.Errorf("a line is %d wide: %s", w, line)
		}
	}
	object, err := json.MarshalIndent(table.Parts[2:], "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, string(object)+"\n", "suite.json")
}
