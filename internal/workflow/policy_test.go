package workflow_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/workflow"
	"github.com/assay-eval/assay/internal/world"
)

// pilotData reads the 2025 original's tools and its 630 tasks, grouped by type.
func pilotData(t *testing.T) (*assay.Catalog, map[string][][]string) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "data", "pilot")
	read := func(name string, into any) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Skipf("the original's data is not here: %v", err)
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
	}
	var registry map[string]assay.Tool
	read("tool_registry.json", &registry)
	var tools []assay.Tool
	for _, tool := range registry {
		tools = append(tools, tool)
	}
	var library struct {
		Tasks []struct {
			Type     string   `json:"task_type"`
			Required []string `json:"required_tools"`
		}
	}
	read("task_library_630.json", &library)
	byType := make(map[string][][]string)
	for _, task := range library.Tasks {
		byType[task.Type] = append(byType[task.Type], task.Required)
	}
	return assay.NewCatalog(tools), byType
}

// TestPublishedBounds holds the planner to the figures that two independent
// implementations agreed on: the mean over the five task types of the
// probability of full success, in order and optimal.
func TestPublishedBounds(t *testing.T) {
	t.Parallel()
	catalog, byType := pilotData(t)
	type figures map[float64][2]float64
	for _, tc := range []struct {
		name    string
		calls   int
		noEarly bool
		want    figures
	}{
		{"10 calls", 10, false, figures{.9: {.830, .971}, .8: {.773, .924}, .7: {.694, .840}, .6: {.590, .715}}},
		{"10 calls without early stop", 10, true, figures{.9: {.867, .979}, .8: {.814, .936}, .7: {.740, .860}, .6: {.640, .744}}},
		{"9 calls without early stop", 9, true, figures{.9: {.835, .963}, .8: {.773, .903}, .7: {.689, .807}, .6: {.582, .677}}},
		{"7 calls without early stop", 7, true, figures{.9: {.738, .886}, .8: {.655, .781}, .7: {.554, .650}, .6: {.440, .504}}},
	} {
		for reliability, want := range tc.want {
			for i, inOrder := range []bool{true, false} {
				got := 0.0
				for _, lists := range byType {
					got += meanSuccess(catalog, lists, workflow.Problem{
						Reliability: reliability, Calls: tc.calls, InOrder: inOrder, NoEarlyStop: tc.noEarly,
					}) / float64(len(byType))
				}
				if math.Abs(got-want[i]) > .001 {
					t.Errorf("%s, reliability %v, in order %v: success %.4f, want %.3f", tc.name, reliability, inOrder, got, want[i])
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
			got := meanSuccess(catalog, byType[typ], workflow.Problem{Reliability: .8, Calls: 10, InOrder: inOrder, NoEarlyStop: true})
			if math.Abs(got-want[i]) > .001 {
				t.Errorf("%s in order %v: success %.4f, want %.3f", typ, inOrder, got, want[i])
			}
		}
	}
}

func meanSuccess(catalog *assay.Catalog, lists [][]string, p workflow.Problem) float64 {
	sum := 0.0
	for _, required := range lists {
		p.Required = required
		sum += workflow.Solve(catalog, p).Success()
	}
	return sum / float64(len(lists))
}

// TestPolicyEarnsItsValue follows the policy through simulated luck: the share
// of successes is the value that the solution claims.
func TestPolicyEarnsItsValue(t *testing.T) {
	t.Parallel()
	catalog := chain()
	problem := workflow.Problem{Required: []string{"c", "e"}, Reliability: .7, Calls: 8}
	policy := workflow.Solve(catalog, problem)
	const n = 20000
	won := 0
	for seed := range uint64(n) {
		w := world.NewPilot(catalog, assay.Trial{Cell: assay.Cell{Reliability: .7}, Seed: seed})
		if follow(t, policy, w, problem) {
			won++
		}
	}
	want := policy.Success()
	got := float64(won) / n
	if sigma := math.Sqrt(want * (1 - want) / n); math.Abs(got-want) > 4*sigma {
		t.Errorf("success of %d trials = %.4f, want %.4f ± %.4f", n, got, want, 4*sigma)
	}
}

func follow(t *testing.T, policy *workflow.Policy, w *world.Pilot, problem workflow.Problem) bool {
	t.Helper()
	var calls []workflow.Call
	for turn := range problem.Calls {
		tool := policy.Next(calls)
		if tool == "" {
			break
		}
		rec, err := w.Call(turn, tool, "{}")
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, workflow.Call{Tool: tool, OK: rec.OK})
		if _, stop := w.Stop(); stop {
			break
		}
	}
	return w.Worked(problem.Required)
}

// chain is a catalog in which b needs a, c needs b, and d and e need nothing.
func chain() *assay.Catalog {
	return assay.NewCatalog([]assay.Tool{
		{Name: "a"},
		{Name: "b", Dependencies: []string{"a"}},
		{Name: "c", Dependencies: []string{"b"}},
		{Name: "d"},
		{Name: "e"},
	})
}

func TestPolicyLaws(t *testing.T) {
	t.Parallel()
	catalog := chain()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.Permutation(catalog.Names()).Draw(t, "names")
		required := names[:rapid.IntRange(1, len(names)).Draw(t, "n")]
		p := workflow.Problem{
			Required:    required,
			Reliability: rapid.Float64Range(0, 1).Draw(t, "reliability"),
			Calls:       rapid.IntRange(0, 8).Draw(t, "calls"),
		}
		best := workflow.Solve(catalog, p).Success()
		more, ordered := p, p
		more.Calls++
		ordered.InOrder = true
		if v := workflow.Solve(catalog, more).Success(); v < best-1e-9 {
			t.Errorf("one more call lowers success from %v to %v", best, v)
		}
		if v := workflow.Solve(catalog, ordered).Success(); v > best+1e-9 {
			t.Errorf("in order %v beats the optimum %v", v, best)
		}
		if best < 0 || best > 1 || p.Calls < len(required) && best != 0 {
			t.Errorf("success %v with %d calls for %d tools", best, p.Calls, len(required))
		}
	})
}

func TestMissingIsTransitive(t *testing.T) {
	t.Parallel()
	if got, want := workflow.Missing(chain(), []string{"c", "d"}), []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("Missing() = %v, want %v", got, want)
	}
}
