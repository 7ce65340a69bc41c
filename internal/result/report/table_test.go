package report_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/google/go-cmp/cmp"
)

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
	want := [][]string{{"be60f21fbb", "d993f258aa"}, {"assay-1.1", "pilot-1"}}
	if diff := cmp.Diff(want, [][]string{table.Templates, table.ScoreVersions}); diff != "" {
		t.Errorf("wordings and rules (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		"Outcomes of 2 wordings of the prompts are pooled: be60f21f…, d993f258…. Compare them " +
			"with care.\n",
		"Outcomes judged by 2 versions of the rules are pooled: assay-1.1, pilot-1. " +
			"`assay store rescore`",
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
	var s scene
	play := func(model, version string, best float64, level assay.Level) {
		a := s.try(cellOf(model, "easy", .8), fmt.Sprint(len(s.trials)), 1, assay.Setting{},
			level == assay.FullSuccess)
		a.Best, a.ScoreVersion = best, version
	}
	play("new", "v2", 0.75, assay.FullSuccess)
	play("new", "v2", 0, assay.Failure)
	play("old", "pilot-1", 0, assay.FullSuccess)
	play("old", "", 0, assay.FullSuccess)
	play("both", "pilot-1", 0, assay.FullSuccess)
	play("both", "v2", 0.5, assay.Failure)
	play("hopeless", "v2", 0, assay.Failure)
	s.trials = append(s.trials, trial("pending", "cot", 0.8, "t"))
	want := "new 0.3750 (2) 1.0000, old – (0) –, both 0.5000 (1) 0.0000, " +
		"hopeless 0.0000 (1) –, pending – (0) –"
	var got []string
	table := s.build(t, report.Design{})
	for _, r := range rows[row](table.Rows) {
		got = append(
			got,
			fmt.Sprintf("%s %s (%d) %s", r.Model, value(r.Best), r.BestMeasured, value(r.OfBest)),
		)
	}
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("best possible: %s, want %s", text, want)
	}
	if got := text(t, table); !strings.Contains(strings.Join(strings.Fields(got), " "), "those that older rules judged") {
		t.Errorf("the note on old outcomes is missing:\n%s", got)
	}
}

// Each episode with a loop counts once. Kinds are in the order of assay.LoopKinds.
func TestEpisodesCountByFirstLoop(t *testing.T) {
	t.Parallel()
	var s scene
	kinds := []assay.LoopKind{"new", assay.ErrorLoop, "", assay.RepeatLoop, assay.ErrorLoop}
	for i, kind := range kinds {
		s.try(cellOf("m", "easy", .8), fmt.Sprint(i), 1, assay.Setting{}, true).Loop = kind
	}
	want := []report.LoopCount{{assay.RepeatLoop, 1}, {assay.ErrorLoop, 2}, {"new", 1}}
	if diff := cmp.Diff(want, s.build(t, report.Design{}).Loops); diff != "" {
		t.Errorf("loops (-want +got):\n%s", diff)
	}
}

// A part lists the variants and types it would have, even if no task of the type is left.
func TestPartsListTheirLeftOutTasks(t *testing.T) {
	t.Parallel()
	name := "flawed_missing_step"
	d := report.Design{
		LeftOut: []report.LeftOut{
			{Variant: name, Severity: assay.Severe, TaskType: "simple_task", Tasks: 20, Of: 20},
			{Variant: name, Severity: assay.Severe, TaskType: "data_pipeline", Tasks: 1, Of: 20},
			{Variant: "flawed_other", Severity: assay.Severe, TaskType: "basic_task", Tasks: 3, Of: 20},
		},
		Parts: []report.Part{
			{
				Name: "flaws",
				Has: func(c assay.Cell) bool {
					return c.Variant == name && c.TaskType != "data_pipeline"
				},
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
	want := [][]report.LeftOut{d.LeftOut, d.LeftOut[:1], {}}
	got := [][]report.LeftOut{table.LeftOut, table.Parts[0].LeftOut, table.Parts[1].LeftOut}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
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
