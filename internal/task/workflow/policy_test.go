//go:build !race

package workflow_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestPublishedBounds compares the planner with figures on which two independent implementations
// agreed: the probability of full success, averaged over the five task types, in order and optimal.
// They only made calls that the task needs. If five failures end an episode, a call of an easy tool
// after four of them makes the optimum up to half a point higher.
func TestPublishedBounds(t *testing.T) {
	t.Parallel()
	catalog, tasks := pilotData(t)
	byType := make(map[string][]assay.Task)
	for _, task := range tasks {
		byType[task.Type] = append(byType[task.Type], task)
	}
	type figures map[float64][2]float64
	for _, tc := range []struct {
		name    string
		calls   int
		noEarly bool
		want    figures
	}{
		{
			"10 calls", 10, false,
			figures{.9: {.830, .971}, .8: {.773, .924}, .7: {.694, .840}, .6: {.590, .715}},
		},
		{
			"10 calls without early stop", 10, true,
			figures{.9: {.867, .979}, .8: {.814, .936}, .7: {.740, .860}, .6: {.640, .744}},
		},
		{
			"9 calls without early stop", 9, true,
			figures{.9: {.835, .963}, .8: {.773, .903}, .7: {.689, .807}, .6: {.582, .677}},
		},
		{
			"7 calls without early stop", 7, true,
			figures{.9: {.738, .886}, .8: {.655, .781}, .7: {.554, .650}, .6: {.440, .504}},
		},
	} {
		for reliability, want := range tc.want {
			for i, inOrder := range []bool{true, false} {
				got := 0.0
				for _, tasks := range byType {
					got += meanSuccess(catalog, tasks, workflow.Problem{
						World: world.PilotName, Reliability: reliability, Calls: tc.calls,
						InOrder: inOrder, NoEarlyStop: tc.noEarly,
					}) / float64(len(byType))
				}
				which := fmt.Sprintf("%s, reliability %v, in order %v", tc.name, reliability,
					inOrder)
				t.Logf("%s: %.4f", which, got)
				above := .001
				if !inOrder && !tc.noEarly {
					above = .005
				}
				if got < want[i]-.001 || got > want[i]+above {
					t.Errorf("%s: success %.4f, want %.3f", which, got, want[i])
				}
			}
		}
	}
	byTypeWant := map[string][2]float64{
		"basic_task": {.993, .997}, "api_integration": {.849, .935}, "data_pipeline": {.852, .965},
		"simple_task": {.841, .986}, "multi_stage_pipeline": {.536, .799},
	}
	for typ, want := range byTypeWant {
		for i, inOrder := range []bool{true, false} {
			got := meanSuccess(catalog, byType[typ], workflow.Problem{
				World: world.PilotName, Reliability: .8, Calls: 10, InOrder: inOrder,
				NoEarlyStop: true,
			})
			t.Logf("%s, in order %v: %.4f", typ, inOrder, got)
			if math.Abs(got-want[i]) > .001 {
				t.Errorf("%s in order %v: success %.4f, want %.3f", typ, inOrder, got, want[i])
			}
		}
	}
}

// meanSuccess returns the mean probability of full success. It solves tasks with equal required
// tools once.
func meanSuccess(catalog *assay.Catalog, tasks []assay.Task, p workflow.Problem) float64 {
	known := make(map[string]float64)
	sum := 0.0
	for _, task := range tasks {
		key := strings.Join(task.Required, " ")
		if _, ok := known[key]; !ok {
			p.Required = task.Required
			known[key] = workflow.Solve(catalog, p).Success()
		}
		sum += known[key]
	}
	return sum / float64(len(tasks))
}

// TestPolicyEarnsItsValue follows the policy through simulated luck. The success rate and the mean
// number of calls must match the solution.
func TestPolicyEarnsItsValue(t *testing.T) {
	t.Parallel()
	one, two := chain(), doubled(chain(), "c", "e")
	for _, tc := range []struct {
		set     assay.Setting
		faults  string
		catalog *assay.Catalog
	}{
		{assay.Setting{World: world.PilotName, Turns: 8}, "", one},
		{assay.Setting{World: world.Assay1Name, Turns: 9}, "", one},
		{assay.Setting{World: world.Assay1Name, Turns: 9, Persistence: .4}, "", one},
		{assay.Setting{World: world.Assay1Name, Turns: 9, Persistence: .8, Burst: .7}, "", one},
		{assay.Setting{World: world.Assay1Name, Turns: 9}, "down=1", one},
		{assay.Setting{World: world.Assay1Name, Turns: 9}, "throttled=1", one},
		{assay.Setting{World: world.Assay1Name, Turns: 12}, "after=0.1,before=0.3,down=0.2,throttled=0.4", one},
		{assay.Setting{World: world.Assay1Name, Turns: 9}, "", two},
		{assay.Setting{World: world.Assay1Name, Turns: 9, Persistence: .8}, "", two},
		{assay.Setting{World: world.Assay1Name, Turns: 9, Persistence: .8, Burst: .7}, "", two},
		{assay.Setting{World: world.Assay1Name, Turns: 9}, "down=1", two},
		{assay.Setting{World: world.Assay1Name, Turns: 9}, "throttled=1", two},
		{assay.Setting{World: world.Assay1Name, Turns: 12}, "after=0.1,before=0.3,down=0.2,throttled=0.4", two},
	} {
		catalog := tc.catalog
		set := tc.set
		task := assay.Task{Required: []string{"c", "e", "b"}}
		trial := assay.Trial{Cell: assay.Cell{Reliability: .7, Faults: tc.faults}, Setting: set}
		policy := workflow.Solve(catalog, workflow.ProblemOf(&trial, task.Required))
		n := 5000.0
		if testing.Short() {
			n = 1000
		}
		won, calls := 0.0, 0.0
		for seed := range uint64(n) {
			trial.Seed = seed
			w := world.Begin(t.Context(), catalog, &trial, &task)
			follow(t, policy, w)
			calls += float64(len(w.Calls())) / n
			if fullSuccess(catalog, set.World, task.Required, w) {
				won += 1. / n
			}
		}
		want := policy.Success()
		if sigma := math.Sqrt(want * (1 - want) / n); math.Abs(won-want) > 4*sigma {
			t.Errorf("%+v, %s: success of %v trials = %.4f, want %.4f ± %.4f",
				tc.set, tc.faults, n, won, want, 4*sigma)
		}
		// The number of calls is between 0 and 9, so its standard deviation is at most 4.5.
		if want := policy.Expected(); math.Abs(calls-want) > 4*4.5/math.Sqrt(n) {
			t.Errorf("%+v, %s: mean calls of %v trials = %.3f, want %.3f", tc.set, tc.faults, n, calls, want)
		}
	}
}

// doubled returns a catalog in which some tools have a second one that does the same.
func doubled(catalog *assay.Catalog, names ...string) *assay.Catalog {
	tools := slices.Clone(catalog.All())
	for _, name := range names {
		tool, _ := catalog.Tool(name)
		tool.Name, tool.StandsFor = name+"2", name
		tools = append(tools, tool)
	}
	return assay.NewCatalog(tools)
}

// TestSecondToolsRaiseTheCeilingOfOutages checks by how much a second tool helps where tools are down, and
// that it is worth nothing where they are not, unless failures last.
func TestSecondToolsRaiseTheCeilingOfOutages(t *testing.T) {
	t.Parallel()
	one := assay.NewCatalog([]assay.Tool{{Name: "a"}})
	two := doubled(one, "a")
	for _, tc := range []struct {
		faults      string
		persistence float64
		calls       int
		want, more  float64
	}{
		{"down=1", 0, 1, .7, .7},
		{"down=1", 0, 9, .7, .7 + .3*.7},
		{"before=0.5,down=0.5", 0, 2, .7 + .15*.7, .7 + .3*.7},
		{"", 0, 2, .7 + .3*.7, .7 + .3*.7},
		{"", .5, 2, .7 + .3*.35, .7 + .3*.7},
	} {
		trial := assay.Trial{
			Cell: assay.Cell{Reliability: .7, Faults: tc.faults},
			Setting: assay.Setting{
				World: world.Assay1Name, Turns: tc.calls + 1, Calls: tc.calls, Persistence: tc.persistence,
			},
		}
		problem := workflow.ProblemOf(&trial, []string{"a"})
		want, more := workflow.Solve(one, problem).Success(), workflow.Solve(two, problem).Success()
		if math.Abs(want-tc.want) > 1e-12 || math.Abs(more-tc.more) > 1e-12 {
			t.Errorf("%+v: success %v, and %v with a second tool", tc, want, more)
		}
	}
}

func follow(t *testing.T, policy *workflow.Policy, w world.World) {
	t.Helper()
	for turn := 0; ; turn++ {
		var calls []workflow.Call
		for _, c := range w.Calls() {
			calls = append(calls, workflow.Call{
				Tool: c.Tool, OK: c.Happened(), Fault: c.Met() != "", Mistake: c.Mistake,
				Down: c.Met() == assay.FaultDown, Wait: c.Wait,
			})
		}
		tool := policy.Next(calls)
		if tool == "" {
			return
		}
		rec, err := w.Call(turn, tool, "{}")
		if err != nil || rec.Mistake {
			t.Fatalf("the policy's call of %s: %v %s", tool, err, rec.Error)
		}
		if _, stop := w.Stop(); stop {
			return
		}
	}
}

// fullSuccess judges calls by a world's rules.
func fullSuccess(catalog *assay.Catalog, worldName string, required []string, w world.World) bool {
	if worldName == world.PilotName {
		var first []string
		for _, tool := range w.Succeeded() {
			if slices.Contains(required, tool) {
				first = append(first, tool)
			}
		}
		return slices.Equal(first, required)
	}
	var worked []string
	for _, c := range w.Calls() {
		if c.Happened() {
			worked = append(worked, catalog.Work(c.Tool))
		}
	}
	return inOrder(required, worked)
}

func anyProblem(t *rapid.T, catalog *assay.Catalog) workflow.Problem {
	chance := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, .5, 1}))
	p := workflow.Problem{
		World:       rapid.SampledFrom(world.Simulated).Draw(t, "world"),
		Required:    anyRequired(t, catalog, 6),
		Reliability: chance.Draw(t, "reliability"),
		Calls:       rapid.IntRange(0, 8).Draw(t, "calls"),
	}
	if rapid.Bool().Draw(t, "lasting") {
		p.Persistence = chance.Draw(t, "persistence")
	}
	if rapid.Bool().Draw(t, "clustering") {
		p.Burst = chance.Draw(t, "burst")
	}
	return p
}

func TestPolicyLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		catalog := anyCatalog(t, 6)
		p := anyProblem(t, catalog)
		policy := workflow.Solve(catalog, p)
		best := policy.Success()
		more, ordered, patient := p, p, p
		more.Calls++
		ordered.InOrder = true
		patient.NoEarlyStop = true
		if v := workflow.Solve(catalog, more).Success(); v < best-1e-9 {
			t.Errorf("one more call lowers success from %v to %v", best, v)
		}
		if v := workflow.Solve(catalog, ordered).Success(); v > best+1e-9 {
			t.Errorf("in order %v beats the optimum %v", v, best)
		}
		if v := workflow.Solve(catalog, patient).Success(); v < best-1e-9 {
			t.Errorf("without early stop %v is below %v", v, best)
		}
		if best < 0 || best > 1+1e-9 || p.Calls < len(p.Required) && best != 0 {
			t.Errorf("success %v with %d calls for %d tools", best, p.Calls, len(p.Required))
		}
		e, least, most := policy.Expected(), best*float64(len(p.Required)), float64(p.Calls)
		if e < 0 || e > most+1e-9 || e < least-1e-9 {
			t.Errorf("%v of %d calls expected, with success %v and %d tools",
				e, p.Calls, best, len(p.Required))
		}
		linear := policy.Linear()
		if len(linear) > p.Calls || len(linear) < p.Calls && !inOrder(p.Required, linear) {
			t.Errorf("the linear plan %v of %d calls does not run %v", linear, p.Calls, p.Required)
		}
		history := make([]workflow.Call, len(linear))
		for i, tool := range linear {
			if got := policy.Next(history[:i]); got != tool {
				t.Errorf("after %d calls of the linear plan %v comes %q", i, linear, got)
			}
			history[i] = workflow.Call{Tool: tool, OK: true}
		}
	})
}

// TestNextTakesAnyHistory checks that a mistake costs only a call, and that any tool can occur in
// the history.
func TestNextTakesAnyHistory(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		catalog := anyCatalog(t, 6)
		p := anyProblem(t, catalog)
		names := append(catalog.Names(), "unknown")
		history := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) workflow.Call {
			tool := rapid.SampledFrom(names).Draw(t, "tool")
			return workflow.Call{Tool: tool, OK: rapid.Bool().Draw(t, "ok")}
		}), 0, 8).Draw(t, "history")
		fewer := p
		fewer.Calls--
		at := rapid.IntRange(0, len(history)).Draw(t, "at")
		refused := workflow.Call{Tool: rapid.SampledFrom(names).Draw(t, "tool"), Mistake: true}
		got := workflow.Solve(catalog, p).Next(slices.Insert(slices.Clone(history), at, refused))
		if want := workflow.Solve(catalog, fewer).Next(history); got != want {
			t.Errorf("after %v and a mistake comes %q, but with one call less %q",
				history, got, want)
		}
		if len(history) >= p.Calls && workflow.Solve(catalog, p).Next(history) != "" {
			t.Errorf("the policy makes another call after %d of %d", len(history), p.Calls)
		}
	})
}

// TestBounds checks that a bound is the solution of the problem that the trial poses.
func TestBounds(t *testing.T) {
	t.Parallel()
	catalog := chain()
	bounds := workflow.NewBounds(catalog)
	required := []string{"c", "e"}
	set := assay.Setting{Turns: 7, Persistence: .3, Burst: .2}
	want := map[string]workflow.Problem{
		world.PilotName: {World: world.PilotName, Required: required, Reliability: .8, Calls: 7},
		world.Assay1Name: {
			World: world.Assay1Name, Required: required, Reliability: .8, Calls: 6,
			Persistence: .3, Burst: .2,
		},
	}
	for _, name := range world.Simulated {
		set.World = name
		trial := &assay.Trial{Cell: assay.Cell{Reliability: .8}, Setting: set}
		if diff := cmp.Diff(want[name], workflow.ProblemOf(trial, required)); diff != "" {
			t.Error(diff)
		}
		best := workflow.Solve(catalog, want[name]).Success()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 50 {
					if got := bounds.Best(trial, required); got != best {
						t.Errorf("%s: bound %v, want %v", name, got, best)
					}
				}
			})
		}
		wg.Wait()
	}
	set = assay.Setting{World: world.Assay1Name}
	trial := &assay.Trial{Cell: assay.Cell{Reliability: 1}, Setting: set}
	if best := bounds.Best(trial, required); best != 0 {
		t.Errorf("bound without turns = %v, want 0", best)
	}
}

// TestCallsAreTheBudget checks that a limit of calls decides the ceiling, and replies do not.
func TestCallsAreTheBudget(t *testing.T) {
	t.Parallel()
	for _, name := range world.Simulated {
		for _, turns := range []int{8, 15, 200} {
			trial := &assay.Trial{Setting: assay.Setting{World: name, Turns: turns, Calls: 7}}
			if got := workflow.ProblemOf(trial, []string{"c"}).Calls; got != 7 {
				t.Errorf("%s, %d turns: the best policy has %d calls, want 7", name, turns, got)
			}
		}
	}
}

// TestHopelessProblems checks that a task has no chance if one of its tools can never be called.
func TestHopelessProblems(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{
		{Name: "a", Dependencies: []string{"b"}},
		{Name: "b", Dependencies: []string{"a"}},
		{Name: "c", Dependencies: []string{"gone"}},
	})
	for _, required := range [][]string{{"a"}, {"c"}, {"gone"}} {
		p := workflow.Problem{World: world.Assay1Name, Required: required, Reliability: 1, Calls: 9}
		policy := workflow.Solve(catalog, p)
		if policy.Success() != 0 || policy.Next(nil) != "" {
			t.Errorf("%v: success %v, first call %q", required, policy.Success(), policy.Next(nil))
		}
	}
}

func TestMissingIsTransitive(t *testing.T) {
	t.Parallel()
	got, want := policy.Missing(chain(), []string{"c", "d"}), []string{"a", "b"}
	if !slices.Equal(got, want) {
		t.Errorf("Missing() = %v, want %v", got, want)
	}
}
