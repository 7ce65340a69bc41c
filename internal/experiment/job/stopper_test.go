package job_test

import (
	"strings"
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

// TestStopRulesStopOnce checks that a rule reports its stop once, and stops the trials of its cell or
// model.
func TestStopRulesStopOnce(t *testing.T) {
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
	want := []string{
		"a cot easy simple_task 0.8" + hopeless, "b" + malformed, "b cot easy simple_task 0.8" + hopeless,
	}
	var got []string
	for _, s := range g.Stops() {
		got = append(got, s.String())
		if s.Outcomes != 20 {
			t.Errorf("%s: %d outcomes, want 20", s, s.Outcomes)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stops (-want +got):\n%s", diff)
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

// TestExhaustedBudgetsHaveTheFiguresOfTheEnd checks that each budget which stops a trial is named,
// whether the trial did not start or was in flight, and that its parts add up to what is spent when
// the run has ended.
func TestExhaustedBudgetsHaveTheFiguresOfTheEnd(t *testing.T) {
	t.Parallel()
	budgets := plan.Budgets{
		Budget: plan.Budget{USD: .2}, PerModel: plan.Budget{Tokens: 5000}, PerCell: plan.Budget{USD: 10},
	}
	lost := assay.Lost{Requests: 3, Tokens: 100, USD: .03}
	for name, stop := range map[string]func(g *job.Stopper, c assay.Cell){
		"in flight": func(g *job.Stopper, c assay.Cell) { g.Interrupted(c) },
		"not started": func(g *job.Stopper, c assay.Cell) {
			if reason, rule := g.Skip(c); rule || reason != "the budget of the run is spent ($0.2)" {
				t.Errorf("Skip = %q, %v", reason, rule)
			}
		},
	} {
		g, c := job.NewStopper(budgets, plan.StopRules{}), cell("a", "cot")
		g.Interrupted(c) // by the user
		g.Spend(c, assay.Usage{InputTokens: 900}, .15, assay.Lost{})
		if all := g.Exhausted(); len(all) > 0 {
			t.Errorf("%s: %v before a budget is spent", name, all)
		}
		g.Spend(c, assay.Usage{InputTokens: 100}, .02, lost)
		if all := g.Exhausted(); len(all) > 0 {
			t.Errorf("%s: %v before a trial is stopped", name, all)
		}
		stop(g, c)
		g.Spend(c, assay.Usage{InputTokens: 100}, .01, lost)
		const want = "the budget of the run is spent: $0.1800 plus up to $0.0600 for 6 requests whose " +
			"replies were lost, of $0.2"
		if all := g.Exhausted(); len(all) != 1 || all[0].String() != want {
			t.Errorf("%s: %v, want %s", name, all, want)
		}
		if short, spent := g.Short(3, 7); short != 7 || !strings.HasPrefix(spent, "$0.1800 plus up to $0.0600 for 6") {
			t.Errorf("%s: room for all but %d trials: %s", name, short, spent)
		}

		g.Spend(c, assay.Usage{InputTokens: 4000}, 12, assay.Lost{})
		g.Interrupted(cell("b", "cot")) // by the budget of the run
		g.Skip(c)
		if all := g.Exhausted(); len(all) != 1 {
			t.Errorf("%s: %v, want the budget that was asked first", name, all)
		}
	}
}

// TestExhaustedBudgetsOfCells checks that budgets of models and cells are named with their scopes.
func TestExhaustedBudgetsOfCells(t *testing.T) {
	t.Parallel()
	g := job.NewStopper(plan.Budgets{
		PerModel: plan.Budget{Tokens: 1000}, PerCell: plan.Budget{USD: 2},
	}, plan.StopRules{})
	g.Begin(cell("a", "cot"))
	g.Spend(cell("a", "cot"), assay.Usage{InputTokens: 600}, 0, assay.Lost{})
	g.End(cell("a", "cot"))
	g.Skip(cell("a", "cot"))
	g.Spend(cell("b", "cot"), assay.Usage{}, 3, assay.Lost{})
	g.Skip(cell("b", "cot"))
	var got []string
	for _, e := range g.Exhausted() {
		got = append(got, e.String())
	}
	want := []string{
		"the budget of a has no room for another trial: 600 of 1000 tokens",
		"the budget of b cot easy simple_task 0.8 is spent: $3.00 of $2",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
