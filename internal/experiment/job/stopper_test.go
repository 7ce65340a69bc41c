package job_test

import (
	"fmt"
	"slices"
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

// trialIn returns a trial of a cell.
func trialIn(c assay.Cell) *assay.Trial {
	return &assay.Trial{ID: assay.TrialID(c.Model + c.Variant), Cell: c}
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
			g.Spend(trialIn(spent), assay.Usage{InputTokens: 60, OutputTokens: 39}, 0.99, assay.Lost{})
			if f := g.Allow(spent); f != nil {
				t.Errorf("Allow = %v before the budget is spent", f)
			}

			g.Spend(trialIn(spent), assay.Usage{OutputTokens: 1}, 0.01, assay.Lost{})
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

// settledAt returns an attempt with an outcome that took some tokens.
func settledAt(tokens int) *assay.Attempt {
	return &assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure}, Spend: assay.NewSpend(assay.Usage{InputTokens: tokens}, 0)}
}

// A budget that is small beside what could be in flight must not be spent on trials that are all cut
// off: trials of an unknown cost settle, whatever the forecast says, unless it is too low by more than
// a factor of four.
func TestSmallBudgetSettlesTrials(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const budget, calls = 10_000, 10
		forecast := rapid.IntRange(200, 2*budget).Draw(t, "forecast")
		each := rapid.IntRange(forecast/8, 4*forecast).Draw(t, "tokens of a trial") / calls
		g := job.NewStopper(plan.Budgets{Budget: plan.Budget{Tokens: budget}}, plan.StopRules{})
		c := cell("a", "cot")
		g.Expect("a", 0, forecast, 0)
		var flying []*assay.Trial
		done, settled, spent, most := make(map[assay.TrialID]int), 0, 0, 0
		for n := 0; ; {
			for len(flying) < 40 {
				if reason, _ := g.Skip(c); reason != "" || g.Waits(c) {
					break
				}
				n++
				trial := &assay.Trial{ID: assay.TrialID(fmt.Sprint(n)), Cell: c}
				g.Begin(trial)
				flying = append(flying, trial)
			}
			most = max(most, len(flying))
			if len(flying) == 0 {
				break
			}
			i := rapid.IntRange(0, len(flying)-1).Draw(t, "who")
			trial, attempt := flying[i], (*assay.Attempt)(nil)
			if g.Allow(c) == nil {
				g.Spend(trial, assay.Usage{InputTokens: each}, 0, assay.Lost{})
				spent += each
				if done[trial.ID]++; done[trial.ID] < calls {
					continue
				}
				settled++
				attempt = settledAt(calls * each)
			}
			g.End(trial, attempt)
			flying = slices.Delete(flying, i, i+1)
		}
		if enough := budget / max(1, calls*each); settled < min(enough, 1) || settled < enough/2 {
			t.Errorf("%d trials of %d tokens settled, %d in flight at most", settled, calls*each, most)
		}
		if spent >= budget+each {
			t.Errorf("%d tokens were spent", spent)
		}
	})
}

// TestBudgetWaits checks that trials wait for those in flight while the budget may not suffice for
// them, that the first one never waits, and that nothing is left that would suffice for another one.
func TestBudgetWaits(t *testing.T) {
	t.Parallel()
	g := job.NewStopper(plan.Budgets{PerModel: plan.Budget{Tokens: 1000}}, plan.StopRules{})
	c := cell("a", "cot")
	begin := func(id string) *assay.Trial {
		trial := &assay.Trial{ID: assay.TrialID(id), Cell: c}
		if reason, _ := g.Skip(c); reason != "" || g.Waits(c) {
			return nil
		}
		g.Begin(trial)
		return trial
	}
	g.Expect("a", 0, 2000, 0)
	first := begin("1")
	if first == nil || begin("2") != nil {
		t.Fatal("not exactly one of two trials begins")
	}
	g.Spend(first, assay.Usage{InputTokens: 200}, 0, assay.Lost{})
	g.End(first, settledAt(200))
	g.Expect("a", 30, 200, 0)
	n := 0
	for begin(fmt.Sprint("more", n)) != nil {
		n++
	}
	if reason, _ := g.Skip(c); n != 3 || reason != "" || !g.Waits(c) {
		t.Errorf("%d more of 200 tokens are in flight, want 3 and one that waits; Skip: %q", n, reason)
	}
	if other := cell("b", "cot"); g.Waits(other) {
		t.Error("another model waits, too")
	}
	for i := range n {
		trial := &assay.Trial{ID: assay.TrialID(fmt.Sprint("more", i)), Cell: c}
		g.Spend(trial, assay.Usage{InputTokens: 200}, 0, assay.Lost{})
		g.End(trial, settledAt(200))
	}
	if begin("last") == nil {
		t.Error("200 tokens are left for a trial of 200, but it does not begin")
	}
}

// TestCutTrialsMakeTheMeanDearer checks that what trials have cost that were cut off counts: they are the dear ones
// more often, and a mean without them would let too many of their kind begin.
func TestCutTrialsMakeTheMeanDearer(t *testing.T) {
	t.Parallel()
	g := job.NewStopper(plan.Budgets{Budget: plan.Budget{Tokens: 10_000}}, plan.StopRules{})
	c := cell("a", "cot")
	fly := func(id string, tokens int) *assay.Trial {
		trial := &assay.Trial{ID: assay.TrialID(id), Cell: c}
		g.Begin(trial)
		g.Spend(trial, assay.Usage{InputTokens: tokens}, 0, assay.Lost{})
		return trial
	}
	g.Expect("a", 100, 100, 0)
	g.End(fly("cut", 4_950), nil) // 14,950 tokens for 100 outcomes
	n := 0
	for ; !g.Waits(c); n++ {
		fly(fmt.Sprint("in flight ", n), 0)
	}
	if n < 30 || n > 33 {
		t.Errorf("%d trials are in flight for the 5,050 tokens that are left, want them to need about 150 each", n)
	}
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
				g.Spend(trialIn(c), assay.Usage{InputTokens: n}, float64(n), assay.Lost{})
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
		g.Spend(trialIn(c), assay.Usage{InputTokens: 900}, .15, assay.Lost{})
		if all := g.Exhausted(); len(all) > 0 {
			t.Errorf("%s: %v before a budget is spent", name, all)
		}
		g.Spend(trialIn(c), assay.Usage{InputTokens: 100}, .02, lost)
		if all := g.Exhausted(); len(all) > 0 {
			t.Errorf("%s: %v before a trial is stopped", name, all)
		}
		stop(g, c)
		g.Spend(trialIn(c), assay.Usage{InputTokens: 100}, .01, lost)
		const want = "the budget of the run is spent: $0.1800 plus up to $0.0600 for 6 requests whose " +
			"replies were lost, of $0.2"
		if all := g.Exhausted(); len(all) != 1 || all[0].String() != want {
			t.Errorf("%s: %v, want %s", name, all, want)
		}
		if short, spent := g.Short(3, 7); short != 7 || !strings.HasPrefix(spent, "$0.1800 plus up to $0.0600 for 6") {
			t.Errorf("%s: room for all but %d trials: %s", name, short, spent)
		}

		g.Spend(trialIn(c), assay.Usage{InputTokens: 4000}, 12, assay.Lost{})
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
	g.Begin(trialIn(cell("a", "cot")))
	g.Spend(trialIn(cell("a", "cot")), assay.Usage{InputTokens: 600}, 0, assay.Lost{})
	g.End(trialIn(cell("a", "cot")), settledAt(600))
	g.Skip(cell("a", "cot"))
	g.Spend(trialIn(cell("b", "cot")), assay.Usage{}, 3, assay.Lost{})
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
