package job_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

func cell(model, variant string) assay.Cell {
	return assay.Cell{
		Model: model, Variant: variant,
		Difficulty: "easy", TaskType: "simple_task", Reliability: 0.8,
	}
}

// TestSpentBudgetStopsItsScopeOnly checks the budgets of a run, a model and a cell: a spent one
// stops the next request of its own trials and of no others.
func TestSpentBudgetStopsItsScopeOnly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		budgets plan.Budgets
		stopped []assay.Cell
		open    []assay.Cell
		reason  string
	}{
		{
			"run",
			plan.Budgets{Budget: plan.Budget{Tokens: 100}},
			[]assay.Cell{cell("a", "cot"), cell("b", "cot")},
			nil, "the budget of the run is spent (100 tokens)",
		},
		{
			"model",
			plan.Budgets{PerModel: plan.Budget{USD: 1}},
			[]assay.Cell{cell("a", "cot"), cell("a", "baseline")},
			[]assay.Cell{cell("b", "cot")},
			"the budget of a is spent ($1)",
		},
		{
			"cell",
			plan.Budgets{PerCell: plan.Budget{USD: 2, Tokens: 100}},
			[]assay.Cell{cell("a", "cot")},
			[]assay.Cell{cell("a", "baseline")},
			"the budget of a cell of a is spent ($2, 100 tokens)",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := job.NewStopper(tc.budgets, plan.StopRules{})
			spent := cell("a", "cot")
			g.Spend(spent, assay.Usage{InputTokens: 60, OutputTokens: 39}, 0.99, assay.Lost{})
			if f := g.Allow(spent); f != nil {
				t.Errorf("Allow = %v before the budget is spent", f)
			}

			g.Spend(spent, assay.Usage{OutputTokens: 1}, 0.01, assay.Lost{})
			for _, c := range tc.stopped {
				f := g.Allow(c)
				if f == nil || f.Kind != assay.Interrupted || f.Detail != tc.reason {
					t.Errorf("Allow = %v, want an interruption: %s", f, tc.reason)
				}
				if reason, rule := g.Skip(c); reason != tc.reason || rule {
					t.Errorf("Skip = %q, %v; want %q, false", reason, rule, tc.reason)
				}
			}
			for _, c := range tc.open {
				if reason, _ := g.Skip(c); g.Allow(c) != nil || reason != "" {
					t.Errorf("%+v is stopped too: %s", c, reason)
				}
			}
		})
	}
}

// TestBudgetIsKeptForEpisodesInFlight checks that a trial does not start if the episodes in
// flight will probably need the rest of the budget.
func TestBudgetIsKeptForEpisodesInFlight(t *testing.T) {
	t.Parallel()
	g := job.NewStopper(plan.Budgets{Budget: plan.Budget{Tokens: 1000}}, plan.StopRules{})
	c := cell("a", "cot")
	g.Begin(c)
	g.Spend(c, assay.Usage{InputTokens: 200}, 0, assay.Lost{})
	g.End(c) // one episode takes 200 tokens
	for n := range 10 {
		if reason, _ := g.Skip(c); reason != "" {
			if n != 4 {
				t.Errorf("%d more episodes started, want 4: %s", n, reason)
			}
			return
		}
		g.Begin(c)
	}
	t.Error("ten more episodes started")
}

// TestStopRulesStopOnceAndCountSkips checks that a rule reports its stop once and counts the
// trials that are skipped because of it.
func TestStopRulesStopOnceAndCountSkips(t *testing.T) {
	t.Parallel()
	g := job.NewStopper(plan.Budgets{}, plan.StopRules{
		Hopeless:  &plan.StopRule{After: 20, Below: 0.2, Per: plan.PerCell},
		Malformed: &plan.StopRule{After: 20, Above: 0.8, Per: plan.PerModel},
	})
	for i := range 25 {
		stops := g.Outcome(cell("a", "cot"), assay.Failure, false)
		if got := len(stops) > 0; got != (i == 19) {
			t.Errorf("after %d failures: stops %v", i+1, stops)
		}
		g.Outcome(cell("a", "baseline"), assay.FullSuccess, false)
		g.Outcome(cell("b", "cot"), assay.PartialSuccess, true)
	}
	for _, c := range []assay.Cell{cell("a", "cot"), cell("b", "cot"), cell("b", "baseline")} {
		if reason, rule := g.Skip(c); reason == "" || !rule {
			t.Errorf("%+v is not stopped", c)
		}
	}
	if reason, _ := g.Skip(cell("a", "baseline")); reason != "" {
		t.Errorf("a cell that succeeds is stopped: %s", reason)
	}

	const hopeless = " stopped early: full success is below 20 % with 95 % confidence " +
		"after 20 trials"
	const malformed = " stopped early: 20 of 20 outcomes made no valid call, more than 80 %"
	want := map[string]int{ // skipped trials
		"a cot easy simple_task 0.8" + hopeless: 1,
		"b" + malformed:                         2,
		"b cot easy simple_task 0.8" + hopeless: 0, // its model was stopped first
	}
	got := make(map[string]int)
	for _, s := range g.Stops() {
		got[s.String()] = s.Skipped
		if s.Outcomes != 20 {
			t.Errorf("%s: %d outcomes, want 20", s, s.Outcomes)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" || len(g.Stops()) != 3 {
		t.Errorf("stops %v (-want +got):\n%s", slices.Collect(maps.Keys(got)), diff)
	}
}

// TestStopperStopsOnlyWhatIsSpent checks that a stopper without budgets and rules never stops a
// trial, and that a budget allows requests exactly until it is spent.
func TestStopperStopsOnlyWhatIsSpent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 500).Draw(t, "budget")
		open := job.NewStopper(plan.Budgets{}, plan.StopRules{})
		bound := job.NewStopper(plan.Budgets{Budget: plan.Budget{Tokens: limit}}, plan.StopRules{})
		spent := 0
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 100)).Draw(t, "spent") {
			c := cell(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "model"), "cot")
			for _, g := range []*job.Stopper{open, bound} {
				g.Spend(c, assay.Usage{InputTokens: n}, float64(n), assay.Lost{})
				g.Outcome(c, assay.Failure, true)
			}
			spent += n
			if reason, _ := open.Skip(c); reason != "" || open.Allow(c) != nil {
				t.Fatalf("stopped without a budget: %s", reason)
			}
			if allowed := bound.Allow(c) == nil; allowed != (spent < limit) {
				t.Fatalf("allowed = %v after %d of %d tokens", allowed, spent, limit)
			}
		}
	})
}
