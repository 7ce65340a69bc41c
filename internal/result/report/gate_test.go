package report_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
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
		if c.name == "few tasks" || c.name == "a little worse" {
			g.AddPower()
		}
		fmt.Fprintf(&text, "== %s\n", c.name)
		for _, p := range sections.Gate(g, sections.GateCommands{Show: "assay show %s", Plan: "assay gate … --plan"}).Summary {
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

// The size that a plan advises passes 80 of 100 equal candidates, whose rates and luck the plan does
// not know; and it multiplies.
func TestAdvisedSizesPass(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: simulates 300 gates")
	}
	t.Parallel()
	const baselines, gates = 5, 20
	for i, c := range []struct {
		tasks, repeats int
		question       string
		margin         float64
		rate           func(task int) float64
	}{
		{30, 8, report.Similar, .1, func(int) float64 { return .95 }},
		{30, 4, report.These, .1, func(task int) float64 { return []float64{1, .9, .6}[task%3] }},
		{40, 4, report.Similar, .1, func(task int) float64 { return []float64{1, 1, .7}[task%3] }},
	} {
		r := rand.New(rand.NewPCG(46, uint64(i)))
		drawn := func(tasks, repeats int) version {
			outcomes := make(map[[2]int]bool)
			for task := range tasks {
				for k := range repeats {
					outcomes[[2]int{task, k}] = r.Float64() < c.rate(task)
				}
			}
			return version{tasks, repeats, func(task, k int) bool { return outcomes[[2]int{task, k}] }}
		}
		terms := report.Terms{Tasks: c.question, Margin: c.margin, Look: report.Looks(1)[0]}
		passed := 0
		for range baselines {
			p, err := report.PlanGate("main", stat.ByTask, terms,
				all(drawn(c.tasks, c.repeats).attempts("m")...))
			if err != nil {
				t.Fatal(err)
			}
			if first := p.Sizes[0]; first.Trials != c.tasks*c.repeats || first.Repeats != c.repeats {
				t.Errorf("%d tasks of %d trials: %+v", c.tasks, c.repeats, first)
			}
			if p.Advised < 0 {
				t.Fatalf("nothing is advised: %+v", p)
			}
			size := p.Sizes[p.Advised]
			for range gates {
				x, err := report.Compare("main", "next", stat.ByTask,
					all(drawn(size.Tasks, size.Repeats).attempts("m@v1")...),
					all(drawn(size.Tasks, size.Repeats).attempts("m@v2")...))
				if err != nil {
					t.Fatal(err)
				}
				g, err := x.Gate(terms)
				if err != nil {
					t.Fatal(err)
				}
				if g.Verdict == report.Pass {
					passed++
				}
			}
		}
		share := float64(passed) / (baselines * gates)
		t.Logf("%s, %d × %d: %.3f pass", c.question, c.tasks, c.repeats, share)
		if share < .8 { // .84 to .92 of 200
			t.Errorf("%s, %d × %d: %.3f of equal candidates pass with the advised size", c.question,
				c.tasks, c.repeats, share)
		}
	}
	_, err := report.PlanGate("main", stat.Auto, report.Terms{Tasks: report.Similar, Margin: .05}, all())
	if !errors.Is(err, report.ErrNoTrials) {
		t.Errorf("no trials: %v", err)
	}
}

// A baseline that never succeeds has nothing to lose, and few tasks cannot rule out a small loss,
// whatever the repeats.
func TestGatesThatCannotPass(t *testing.T) {
	t.Parallel()
	always := func(int, int) bool { return true }
	never := func(int, int) bool { return false }
	hopeless := version{52, 3, never}
	g := gateOf(t, hopeless, hopeless, 156, 0)
	if g.Verdict != report.Inconclusive || !g.Similar.CannotLose || !g.These.CannotLose {
		t.Errorf("0 of 156 against 0 of 156: %s", g.Verdict)
	}
	flawless := version{30, 16, always}
	g = gateOf(t, flawless, flawless, 480, 0)
	if g.Verdict != report.Inconclusive || math.Abs(g.Similar.Least-.095) > .001 ||
		g.Similar.Needed != 59 || g.These.Verdict != report.Pass {
		t.Errorf("480 of 480 on 30 tasks: %+v and %+v", g.Similar, g.These)
	}
	flawless = version{60, 8, always}
	g = gateOf(t, flawless, flawless, 480, 0)
	if g.Verdict != report.Pass || g.These.Verdict != report.Pass {
		t.Errorf("480 of 480 on 60 tasks: %+v and %+v", g.Similar, g.These)
	}
}

// Trials that were worked on again because they failed don't turn a fail into a pass: their first
// outcomes count. If those are missing, the verdict is refused unless it is allowed.
func TestRetriesKeepTheVerdict(t *testing.T) {
	t.Parallel()
	was := version{60, 4, func(int, int) bool { return true }}
	now := was.but(20).attempts("m@v2")
	var again []assay.Attempt
	for i, a := range now {
		if a.Level != assay.FullSuccess {
			now[i].Superseded = true
			a.Round, a.Number, a.Level = 1, 2, assay.FullSuccess
			again = append(again, a)
		}
	}
	judge := func(attempts []assay.Attempt, allow ...string) (*report.Gate, error) {
		c, err := report.Compare("main", "next", stat.ByTask, all(was.attempts("m@v1")...), all(attempts...))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CheckAlike(allow); err != nil {
			return nil, err
		}
		return c.Gate(report.Terms{Tasks: report.Similar, Margin: .05, Look: report.Looks(1)[0]})
	}
	for _, attempts := range [][]assay.Attempt{slices.Concat(now, again), slices.Concat(again, now)} {
		g, err := judge(attempts)
		if err != nil || g.Verdict != report.Fail || g.B.Replayed != 80 || g.B.Late != 0 {
			t.Errorf("%+v, %v", g.B, err)
		}
		texts := fmt.Sprint(sections.Gate(g, sections.GateCommands{Show: "%s"}).Summary)
		if !strings.Contains(texts, "80 trials of next were worked on again. Their first outcomes count") {
			t.Errorf("%s", texts)
		}
	}
	late := slices.DeleteFunc(slices.Concat(now, again), func(a assay.Attempt) bool { return a.Superseded })
	if _, err := judge(late); !errors.Is(err, report.ErrUnlike) || !strings.Contains(err.Error(), "--allow retries") {
		t.Errorf("without the first outcomes: %v", err)
	}
	if g, err := judge(late, report.Retries); err != nil || g.Verdict != report.Pass {
		t.Errorf("allowed: %v", err)
	}
}
