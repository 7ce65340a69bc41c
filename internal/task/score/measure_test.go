package score_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world"
)

// measureLaws checks the laws that the measures obey in every world.
func measureLaws(t *rapid.T, tr *assay.Transcript, o *assay.Outcome) {
	shares := []float64{o.Coverage, o.Adherence, o.Efficiency, o.Best}
	if (o.GivenAdherence == nil) != (tr.Plan == nil) {
		t.Fatalf("plan %v, adherence %v", tr.Plan, o.GivenAdherence)
	}
	if o.GivenAdherence != nil {
		shares = append(shares, *o.GivenAdherence)
		if (*o.GivenAdherence == 1) != slices.Equal(tr.Plan, o.ExecutedTools) {
			t.Fatalf("adherence of %v to %v is %v", o.ExecutedTools, tr.Plan, *o.GivenAdherence)
		}
	}
	for _, v := range shares {
		if !(v >= 0 && v <= 1) {
			t.Fatalf("%v is outside [0,1]: %+v", v, o)
		}
	}
	turns := map[int]bool{}
	for _, c := range tr.Calls {
		turns[c.Turn] = true
	}
	if o.Extra != len(tr.Calls)-len(turns) {
		t.Fatalf("%d extra calls of %d in %d turns", o.Extra, len(tr.Calls), len(turns))
	}
	if o.Mistakes+o.Failures+len(o.ExecutedTools) != o.ToolCalls || o.Recovered > o.Failures {
		t.Fatalf("%d mistakes, %d failures, %d recovered, %d successes of %d calls",
			o.Mistakes, o.Failures, o.Recovered, len(o.ExecutedTools), o.ToolCalls)
	}
	if o.Wasted < o.Mistakes || o.Wasted > o.ToolCalls || o.ToolCalls == 0 && o.Efficiency != 0 ||
		o.ToolCalls > 0 && !near(o.Efficiency, 1-float64(o.Wasted)/float64(o.ToolCalls)) {
		t.Fatalf("%d mistakes, %d of %d calls wasted, efficiency %v",
			o.Mistakes, o.Wasted, o.ToolCalls, o.Efficiency)
	}
	var first assay.LoopRecord
	if len(tr.Loops) > 0 {
		first = tr.Loops[0]
	}
	if o.Loop != first.Kind || o.LoopTurn != first.Began {
		t.Fatalf("loops %v give %q from turn %d", tr.Loops, o.Loop, o.LoopTurn)
	}
}

// TestAdherenceToOwnPlan checks that the task's own plan includes dependencies in assay-1 but not
// in pilot.
func TestAdherenceToOwnPlan(t *testing.T) {
	t.Parallel()
	tr, shape := transcript("read+ parse+ shape+"), task("basic_task", "shape")
	tr.Plan = []string{"shape", "parse"}
	if o := judgeAssay1(catalog, shape, tr); o.Adherence != 1 || *o.GivenAdherence != 1./3 {
		t.Errorf("assay-1: %v and %v, want 1 and 1/3", o.Adherence, *o.GivenAdherence)
	}
	if o := judgePilot(catalog, shape, tr); !near(o.Adherence, 1./3) || *o.GivenAdherence != 1./3 {
		t.Errorf("pilot: %v and %v, want 1/3 and 1/3", o.Adherence, *o.GivenAdherence)
	}
}

// TestPlanWithoutSteps checks that an empty list of steps counts as no plan.
func TestPlanWithoutSteps(t *testing.T) {
	t.Parallel()
	tr := transcript("read+")
	tr.Plan = []string{}
	if o := judgeAssay1(catalog, task("basic_task", "read"), tr); o.GivenAdherence != nil {
		t.Errorf("adherence to a plan without steps = %v, want nil", *o.GivenAdherence)
	}
}

// longest returns the length of the longest common subsequence by its definition.
func longest(a, b []string) int {
	if len(a) == 0 {
		return 0
	}
	n := longest(a[1:], b)
	if i := slices.Index(b, a[0]); i >= 0 {
		n = max(n, 1+longest(a[1:], b[i+1:]))
	}
	return n
}

// TestAdherenceIsTheLongestCommonSubsequence checks adherence of the calls that succeeded.
func TestAdherenceIsTheLongestCommonSubsequence(t *testing.T) {
	t.Parallel()
	tools := rapid.SampledFrom(catalog.Names()[:3])
	rapid.Check(t, func(t *rapid.T) {
		plan := rapid.SliceOfN(tools, 1, 8).Draw(t, "plan")
		var made, calls []string
		for _, tool := range rapid.SliceOfN(tools, 0, 8).Draw(t, "calls") {
			how := rapid.SampledFrom([]string{"+", "+", "+", "-", "<"}).Draw(t, "how")
			if calls = append(calls, tool+how); how == "+" {
				made = append(made, tool)
			}
		}
		tr := transcript(strings.Join(calls, " "))
		tr.Plan = plan
		got := *judgeAssay1(catalog, task("basic_task", "read"), tr).GivenAdherence
		want := float64(longest(plan, made)) / float64(max(len(plan), len(made)))
		if got != want {
			t.Fatalf("adherence of %v to %v is %v, want %v", calls, plan, got, want)
		}
	})
}

func TestWasted(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, required, calls string
		assay1, pilot         int
	}{
		{"nothing", "read", "", 0, 0},
		{"the plan", "read parse", "read+ parse+", 0, 0},
		{"bad luck", "read parse", "read- read- read+ parse- parse+", 0, 0},
		{"inserted dependencies", "shape", "read+ parse+ shape+", 0, 0},
		{"bad luck with a dependency", "shape", "read- read+ parse- parse+ shape+", 0, 0},
		{"a dependency well before it is needed", "note shape", "read+ note+ parse+ shape+", 0, 0},
		{"a foreign tool", "read parse", "read+ note+ parse+ post-", 2, 2},
		{"again", "read parse", "read+ read+ parse+ parse- read-", 3, 3},
		{"a dependency again", "shape", "read+ read+ parse+ read- shape+", 2, 2},
		{"after the end", "read", "read+ read+ parse+ note+", 3, 3},
		{"a required tool too early", "read note", "note+ read+", 1, 1},
		{"and again in its place", "read note", "note+ read+ note+", 1, 2},
		{"bad luck too early", "read note", "note- read+ note+", 1, 1},
		{"mistakes", "read parse", "parse< read? read+ parse+", 2, 2},
		// parse depends on read, which is required after it. assay-1 wants read twice. In pilot
		// only its first success counts.
		{"a dependency that is required later", "parse read", "read+ parse+ read+", 0, 2},
		{
			"a dependency that is required later, twice", "parse read",
			"read+ read+ parse+ read+", 1, 3,
		},
		// shape needs parse, which has its own place before it.
		{
			"a dependency that comes in its place", "note parse shape",
			"read+ parse+ note+ parse+ shape+", 1, 2,
		},
		// In pilot, parse can succeed without read, which is useless afterwards.
		{"a dependency that no remaining tool needs", "shape", "parse+ read+ shape+", 1, 1},
		{"a dependency of a tool that is done", "note parse", "parse+ read+ note+", 1, 2},
	} {
		tr, required := transcript(tc.calls), strings.Fields(tc.required)
		for name, judged := range map[string]struct {
			got  assay.Outcome
			want int
		}{
			world.Assay1Name: {
				judgeAssay1(catalog, task("basic_task", required...), tr), tc.assay1,
			},
			world.PilotName: {judgePilot(catalog, task("basic_task", required...), tr), tc.pilot},
		} {
			efficiency := 0.0
			if n := len(tr.Calls); n > 0 {
				efficiency = 1 - float64(judged.want)/float64(n)
			}
			if judged.got.Wasted != judged.want || !near(judged.got.Efficiency, efficiency) {
				t.Errorf("%s, %s: %d wasted, efficiency %v; want %d, %v",
					tc.name, name, judged.got.Wasted, judged.got.Efficiency, judged.want, efficiency)
			}
		}
	}
}

// TestCounts checks the counts of failures, mistakes and recoveries.
func TestCounts(t *testing.T) {
	t.Parallel()
	tr := transcript("read-,read?,note- . parse<,read-,read+ ~ note-,post+,read-")
	tr.Loops = []assay.LoopRecord{
		{Kind: assay.ErrorLoop, Began: 3, Noticed: 5},
		{Kind: assay.RepeatLoop, Began: 1, Noticed: 6},
	}
	for _, o := range []assay.Outcome{
		judgeAssay1(catalog, task("basic_task", "read"), tr),
		judgePilot(catalog, task("basic_task", "read"), tr),
	} {
		if o.Mistakes != 2 || o.Failures != 5 || o.Recovered != 2 || o.Extra != 6 ||
			o.Assisted != 1 || o.Turns != 5 || o.ToolCalls != 9 {
			t.Errorf("%s: %+v", o.ScoreVersion, o)
		}
		if o.Loop != assay.ErrorLoop || o.LoopTurn != 3 {
			t.Errorf("%s: loop %s from turn %d", o.ScoreVersion, o.Loop, o.LoopTurn)
		}
	}
}

// anyTools draws a catalog without cycles and some required tools.
func anyTools(t *rapid.T) (*assay.Catalog, []string) {
	tools := make([]assay.Tool, 6)
	var names []string
	for i := range tools {
		tools[i].Name = fmt.Sprint("t", i)
		if i > 0 {
			earlier := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, min(i, 2), rapid.ID)
			tools[i].Dependencies = earlier.Draw(t, "dependencies")
		}
		names = append(names, tools[i].Name)
	}
	n := rapid.IntRange(1, 4).Draw(t, "n")
	if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
		return assay.NewCatalog(tools), rapid.SliceOfN(rapid.SampledFrom(names), n, n).Draw(t, "required")
	}
	return assay.NewCatalog(tools), rapid.Permutation(names).Draw(t, "required")[:n]
}

// A game treats a task of assay-1 as a search for the shortest way to its end.
type game struct {
	catalog  *assay.Catalog
	required []string
	known    map[position]int
}

// position is the number of required tools done in order, and the bit set of tools that have
// succeeded.
type position struct{ next, done int }

func (g *game) bit(tool string) int { return 1 << slices.Index(g.catalog.Names(), tool) }

func (g *game) open(p position, tool assay.Tool) bool {
	missing := func(d string) bool { return p.done&g.bit(d) == 0 }
	return !slices.ContainsFunc(tool.Dependencies, missing)
}

func (g *game) after(p position, tool string) position {
	if p.next < len(g.required) && g.required[p.next] == tool {
		p.next++
	}
	p.done |= g.bit(tool)
	return p
}

// left returns the minimum number of calls that complete the task.
func (g *game) left(p position) int {
	if p.next == len(g.required) {
		return 0
	}
	if n, ok := g.known[p]; ok {
		return n
	}
	best := 1 << 20
	for _, tool := range g.catalog.All() {
		if q := g.after(p, tool.Name); q != p && g.open(p, tool) {
			best = min(best, 1+g.left(q))
		}
	}
	g.known[p] = best
	return best
}

// TestWastedCallsShortenNothing checks that in assay-1 exactly these calls are wasted: mistakes,
// and calls whose success does not bring the end closer. The minimum number of calls equals the
// length of the plan.
func TestWastedCallsShortenNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tools, required := anyTools(t)
		g := &game{tools, required, map[position]int{}}
		if plan := policy.Sequence(tools, required); g.left(position{}) != len(plan) {
			t.Fatalf("the shortest way for %v has %d calls, but the plan is %v",
				required, g.left(position{}), plan)
		}
		var (
			at     position
			words  []string
			wasted int
		)
		for range rapid.IntRange(0, 15).Draw(t, "calls") {
			tool, _ := tools.Tool(rapid.SampledFrom(tools.Names()).Draw(t, "tool"))
			how := "<"
			if g.open(at, tool) {
				how = rapid.SampledFrom([]string{"+", "+", "-", "?"}).Draw(t, "how")
			}
			words = append(words, tool.Name+how)
			q := g.after(at, tool.Name)
			if how == "<" || how == "?" || g.left(q) == g.left(at) {
				wasted++
			}
			if how == "+" {
				at = q
			}
		}
		tr := transcript(strings.Join(words, " "))
		o := judgeAssay1(tools, task("basic_task", required...), tr)
		if o.Wasted != wasted {
			t.Fatalf("%v for %v: %d wasted, want %d", words, required, o.Wasted, wasted)
		}
		if full := g.left(at) == 0; full != o.OrderCorrect {
			t.Fatalf("%v for %v: order correct %v", words, required, o.OrderCorrect)
		}
	})
}

// TestThePlanWastesNothing plays each world's own plan.
func TestThePlanWastesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tools, required := anyTools(t)
		play := func(plan []string) *assay.Transcript {
			tr := transcript(strings.Join(plan, "+ ") + "+ !")
			tr.Plan = plan
			return tr
		}
		perfect := func(o assay.Outcome) bool {
			return o.Level == assay.FullSuccess && o.Adherence == 1 && *o.GivenAdherence == 1 &&
				o.Wasted == 0 && o.Efficiency == 1 && o.Coverage == 1
		}
		inserted := play(policy.Sequence(tools, required))
		if o := judgeAssay1(tools, task("basic_task", required...), inserted); !perfect(o) {
			t.Fatalf("assay-1: %+v", o)
		}
		required = slices.Compact(slices.Sorted(slices.Values(required)))
		if o := judgePilot(tools, task("basic_task", required...), play(required)); !perfect(o) {
			t.Fatalf("pilot: %+v", o)
		}
	})
}

// TestPilotWants compares the calls wasted in pilot with their definition.
func TestPilotWants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tools, required := anyTools(t)
		done := map[string]bool{}
		// reaches reports whether tool is a dependency of name, without a detour over tools that
		// are done or required.
		var reaches func(name, tool string) bool
		reaches = func(name, tool string) bool {
			spec, _ := tools.Tool(name)
			return slices.ContainsFunc(spec.Dependencies, func(d string) bool {
				return !done[d] && !slices.Contains(required, d) && (d == tool || reaches(d, tool))
			})
		}
		wants := func(tool string) bool {
			next := slices.IndexFunc(required, func(r string) bool { return !done[r] })
			if next >= 0 && required[next] == tool {
				return true
			}
			return slices.ContainsFunc(required, func(r string) bool {
				return !done[r] && reaches(r, tool)
			})
		}
		var words []string
		wasted := 0
		for range rapid.IntRange(0, 12).Draw(t, "calls") {
			tool := rapid.SampledFrom(tools.Names()).Draw(t, "tool")
			ok := rapid.Bool().Draw(t, "ok")
			if !wants(tool) {
				wasted++
			}
			done[tool] = done[tool] || ok
			words = append(words, tool+map[bool]string{true: "+", false: "-"}[ok])
		}
		tr := transcript(strings.Join(words, " "))
		if o := judgePilot(tools, task("basic_task", required...), tr); o.Wasted != wasted {
			t.Fatalf("%v for %v: %d wasted, want %d", words, required, o.Wasted, wasted)
		}
	})
}

// TestOrderDoesNotMatter checks that coverage and the counts of calls do not depend on order.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		task := anyTask().Draw(t, "task")
		tr := anyAssay1(task).Draw(t, "transcript")
		counts := func(o assay.Outcome) string {
			return fmt.Sprint(o.Coverage, o.Mistakes, o.Failures, o.ToolCalls, o.Extra)
		}
		mixed := tr
		mixed.Calls = rapid.Permutation(tr.Calls).Draw(t, "mixed")
		for i := range mixed.Calls {
			mixed.Calls[i].Turn = tr.Calls[i].Turn
		}
		for _, judge := range []judging{judgeAssay1, judgePilot} {
			a, b := counts(judge(catalog, task, &tr)), counts(judge(catalog, task, &mixed))
			if a != b {
				t.Fatalf("counts are %s, but %s in another order", a, b)
			}
		}
	})
}
