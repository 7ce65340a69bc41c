package report_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A version of a model succeeds on some of n tasks, each of which it tries a few times.
type version struct {
	tasks, repeats int
	full           func(task, repeat int) bool
}

func (v version) attempts(model string) (out []assay.Attempt) {
	for task := range v.tasks {
		for repeat := range v.repeats {
			t := assay.NewTrial(
				assay.Cell{
					Model: model, Variant: assay.Optimal, Difficulty: "easy",
					TaskType: "basic_task", Reliability: .8,
				},
				assay.TaskRef{ID: assay.TaskID(fmt.Sprint("t", task)), Digest: "d"},
				assay.Setting{World: "assay-1"}, 1, repeat)
			a := assay.Attempt{Trial: t, Templates: "p1"}
			a.Level, a.ScoreVersion = assay.Failure, "s1"
			if v.full(task, repeat) {
				a.Level = assay.FullSuccess
			}
			out = append(out, a)
		}
	}
	return out
}

// but returns a version that fails on the first n tasks besides.
func (v version) but(n int) version {
	was := v.full
	v.full = func(task, repeat int) bool { return task >= n && was(task, repeat) }
	return v
}

// The verdicts of ten pairs of versions, at a margin of 5 points.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	most := func(task, repeat int) bool { return (task*7+repeat*3)%10 != 0 } // 90 %
	half := func(task, repeat int) bool { return (task+repeat)%2 == 0 }
	always := func(int, int) bool { return true }
	never := func(int, int) bool { return false }
	big, small := version{200, 3, most}, version{12, 1, most}
	var text strings.Builder
	for _, c := range []struct {
		name     string
		was, now version
		planned  int
		pending  int
	}{
		{"the same outcomes", big, big, 600, 0},
		{"better", version{200, 3, half}, big, 600, 0},
		{"a little worse", big, big.but(2), 600, 0},
		{"worse by about the margin", big, big.but(10), 600, 0},
		{"much worse", big, big.but(60), 600, 0},
		{"few tasks", small, small.but(1), 12, 0},
		{"always right", version{100, 1, always}, version{100, 1, always}, 100, 0},
		{"always wrong since", version{100, 1, always}, version{100, 1, never}, 100, 0},
		{"unequal repeats", big, version{200, 1, most}, 200, 0},
		{"a tenth pending", big, version{180, 3, most}, 600, 60},
	} {
		g := gateOf(t, c.was, c.now, c.planned, c.pending)
		fmt.Fprintf(&text, "== %s\n", c.name)
		for _, p := range exhibit.Gate(g, "assay show %s").Summary {
			fmt.Fprintf(&text, "%s: %s\n", p.Label, p.Text)
		}
	}
	golden.Assert(t, text.String(), "gate.txt")
}

func gateOf(t *testing.T, was, now version, planned, pending int) *report.Gate {
	t.Helper()
	c, err := report.Compare("main", "next", stat.ByTask,
		all(was.attempts("m@v1")...), all(now.attempts("m@v2")...))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckAlike(nil); err != nil {
		t.Fatal(err)
	}
	c.B.Planned, c.B.Pending = planned, pending
	g, err := c.Gate(report.Terms{Tasks: report.Similar, Margin: .05, Look: report.Looks(1)[0]})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Sides with different prompts, judges, worlds or texts of tasks are refused by name.
func TestUnlikeSidesAreRefused(t *testing.T) {
	t.Parallel()
	right := func(int, int) bool { return true }
	for name, change := range map[string]func(*assay.Attempt){
		report.Prompts: func(a *assay.Attempt) { a.Templates = "p2" },
		report.Judges:  func(a *assay.Attempt) { a.ScoreVersion = "s2" },
		report.Worlds:  func(a *assay.Attempt) { a.World = "pilot" },
		report.Tasks: func(a *assay.Attempt) {
			if a.Task == "t0" {
				a.TaskDigest = "other"
			}
		},
	} {
		now := version{5, 1, right}.attempts("m@v2")
		for i := range now {
			change(&now[i])
		}
		c, err := report.Compare("main", "next", stat.ByTask,
			all(version{5, 1, right}.attempts("m@v1")...), all(now...))
		if err != nil {
			t.Fatal(err)
		}
		err = c.CheckAlike(nil)
		if !errors.Is(err, report.ErrUnlike) || !strings.Contains(err.Error(), "--allow "+name+" ") {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.CheckAlike([]string{name}); err != nil {
			t.Errorf("%s, allowed: %v", name, err)
		}
	}
}

// A plan needs fewer repeats for a wider margin, and no number helps if each task is decided.
func TestGatePlans(t *testing.T) {
	t.Parallel()
	mixed := version{40, 4, func(task, repeat int) bool { return (task+repeat)%4 != 0 }}
	plan := func(v version, margin float64) *report.GatePlan {
		p, err := report.PlanGate("main", stat.ByTask, report.Similar, margin, all(v.attempts("m")...))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	narrow, wide := plan(mixed, .05), plan(mixed, .1)
	last := func(p *report.GatePlan) report.GateSize { return p.Sizes[len(p.Sizes)-1] }
	if !narrow.Enough || !wide.Enough || last(narrow).Repeats <= last(wide).Repeats {
		t.Errorf("repeats: %+v and %+v", last(narrow), last(wide))
	}
	for _, p := range []*report.GatePlan{narrow, wide} {
		if s := last(p); s.Power < .8 || s.Found > p.Margin+1e-6 || s.Trials != 40*s.Repeats {
			t.Errorf("the last size is not enough: %+v", s)
		}
	}
	few := plan(version{8, 2, func(task, _ int) bool { return task != 0 }}, .01)
	if few.Enough || few.TasksNeeded < 100 {
		t.Errorf("8 tasks find 1 point: %+v", few)
	}
	_, err := report.PlanGate("main", stat.Auto, report.Similar, .05, all())
	if !errors.Is(err, report.ErrNoTrials) {
		t.Errorf("no trials: %v", err)
	}
}
