package score_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

// TestReferencePoints checks the scores of a perfect run in the original.
func TestReferencePoints(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]assay.PilotScores{
		1: {
			WorkflowScore: .92, Phase2Score: (.85 + .804) / 2, QualityScore: .804,
			FinalScore: .827,
		},
		2: {WorkflowScore: .92, Phase2Score: .902, QualityScore: .804, FinalScore: .902},
		4: {WorkflowScore: .92, Phase2Score: .902, QualityScore: .804, FinalScore: .902},
	} {
		required := catalog.Names()[:n]
		tr := transcript(strings.Join(required, "+ ") + "+ !")
		p := judgePilot(catalog, task("basic_task", required...), tr).Pilot
		if !near(p.WorkflowScore, want.WorkflowScore) || !near(p.Phase2Score, want.Phase2Score) ||
			!near(p.QualityScore, want.QualityScore) || !near(p.FinalScore, want.FinalScore) {
			t.Errorf("%d steps: %+v, want %+v", n, *p, want)
		}
		if p.Batch != assay.FullSuccess || p.Executor != assay.FullSuccess {
			t.Errorf("%d steps: %+v", n, *p)
		}
	}
}

func TestPilotVerdicts(t *testing.T) {
	t.Parallel()
	const full, partial, failure = assay.FullSuccess, assay.PartialSuccess, assay.Failure
	for _, tc := range []struct {
		name, required, plan, calls string
		executor, paper, batch      assay.Level
	}{
		{"all three", "read post", "", "read+ post+ !", full, full, full},
		{"no claim", "read post", "", "read+ post+", full, partial, full},
		{"no output", "read parse", "", "read+ parse+ !", full, partial, full},
		{"output of another tool", "read parse", "", "read+ parse+ post+ !", full, full, full},
		{"output, wrong order", "read post", "", "post+ read+ !", partial, partial, partial},
		{
			"retries cost adherence", "read post", "",
			"read- read- read- read+ post- post- post+ !", full, full, partial,
		},
		{
			"half of the calls failed: 0.8 is enough", "read post", "",
			"read- read+ post- note- post+ note+ !", full, full, full,
		},
		{
			"obeying a flawed plan", "read note post", "note post", "note+ post+", partial,
			partial, full,
		},
		{
			"repairing a flawed plan", "read note post", "note post read shape",
			"read+ note+ post+ !", full, full, partial,
		},
		{"repeats", "read", "", "read+ read+ read+ read+ read+", full, partial, partial},
		{"nothing worked", "read", "", "read- read- !", failure, failure, failure},
		{"nothing", "read", "", "", failure, failure, failure},
		{"something foreign", "read", "", "note+", failure, failure, partial},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tr := transcript(tc.calls)
			if tc.plan != "" {
				tr.Plan = strings.Fields(tc.plan)
			}
			o := judgePilot(catalog, task("multi_stage_pipeline", strings.Fields(tc.required)...),
				tr)
			p := o.Pilot
			if p.Executor != tc.executor || p.Paper != tc.paper || p.Batch != tc.batch ||
				o.Level != tc.executor {
				t.Errorf("level %s, %+v; want %s, %s, %s",
					o.Level, *p, tc.executor, tc.paper, tc.batch)
			}
		})
	}
}

// written computes the scores as the description of the original states them, including floors that
// never apply.
func written(o assay.Outcome, plan []string) (workflow, achievement, quality, phase2 float64) {
	a := o.ExecutedTools
	if len(a) == 0 || len(plan) == 0 {
		return 0, 0, 0, 0
	}
	set := func(l []string) map[string]bool {
		m := map[string]bool{}
		for _, t := range l {
			m[t] = true
		}
		return m
	}
	both := 0.0
	for t := range set(plan) {
		if set(a)[t] {
			both++
		}
	}
	exact := 0.0
	if slices.Equal(plan, a) {
		exact = .2
	}
	workflow = .4*both/float64(len(set(plan))) + .3*float64(longest(plan, a))/float64(len(plan)) +
		.2*float64(len(a))/float64(o.ToolCalls) + .1*exact

	unique, total := float64(len(set(a))), float64(len(a))
	required := 0.0
	for _, r := range o.RequiredTools {
		if set(a)[r] {
			required += 1 / float64(len(o.RequiredTools))
		}
	}
	achievement = .5*1 + .3*min(1, unique/2) + .2*required
	efficiency := .8 * unique / total
	if total <= 2*unique {
		efficiency = min(1, 1.2*unique/total)
	}
	quality = .4*.8 + .3*efficiency + .2*workflow
	switch o.Level {
	case assay.FullSuccess:
		achievement, quality = max(achievement, .8), max(quality, .7)
	case assay.PartialSuccess:
		achievement = max(achievement, .5)
	default:
		achievement, quality = max(.2, .8*achievement), max(.2, .8*quality)
	}
	phase2 = .5*achievement + .5*quality
	return workflow, achievement, quality, phase2
}

func TestPilotScoresMatchDescription(t *testing.T) {
	t.Parallel()
	seen := map[[3]assay.Level]int{}
	check := func(t *rapid.T) {
		task := anyTask().Draw(t, "task")
		tr := anyTranscript(task).Draw(t, "transcript")
		o := judgePilot(catalog, task, &tr)
		p, plan := o.Pilot, tr.Plan
		if plan == nil {
			plan = task.Required
		}
		workflow, _, quality, phase2 := written(o, plan)
		if !near(p.WorkflowScore, workflow) || !near(p.QualityScore, quality) ||
			!near(p.Phase2Score, phase2) || p.FinalScore != p.Phase2Score {
			t.Fatalf("%+v, want %v, %v, %v", *p, workflow, quality, phase2)
		}
		share := func(v float64) bool { return v >= 0 && v <= 1 }
		if !share(p.WorkflowScore) || p.WorkflowScore > .92+1e-12 || !share(p.Phase2Score) ||
			!share(p.QualityScore) {
			t.Fatalf("outside its range: %+v", *p)
		}
		batch := assay.Failure
		switch at := func(v, least float64) bool { return v > least || near(v, least) }; {
		case at(workflow, .8) && at(phase2, .8):
			batch = assay.FullSuccess
		case at(workflow, .5) || at(phase2, .5):
			batch = assay.PartialSuccess
		}
		if p.Batch != batch || p.Executor != o.Level {
			t.Fatalf("level %s, %+v", o.Level, *p)
		}
		if p.Executor != assay.FullSuccess && p.Paper != p.Executor {
			t.Fatalf("below full success the paper and the executor must agree: %+v", *p)
		}
		seen[[3]assay.Level{p.Executor, p.Paper, p.Batch}]++
	}
	checkLaw(t, check)
	if len(seen) < 8 {
		t.Errorf("only %d combinations of verdicts: %v", len(seen), seen)
	}
}
