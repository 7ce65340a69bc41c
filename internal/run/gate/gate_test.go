package gate_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/gate"
)

func cell(model, variant string) assay.Cell {
	return assay.Cell{Model: model, Variant: variant, Difficulty: "easy", TaskType: "simple_task", Reliability: 0.8}
}

// TestBudgets: each of run, model and cell has its own; a spent one stops the
// next request of its trials, and of no others.
func TestBudgets(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		budgets gate.Budgets
		stopped []assay.Cell
		open    []assay.Cell
		says    string
	}{
		{
			"run",
			gate.Budgets{Budget: gate.Budget{Tokens: 100}},
			[]assay.Cell{cell("a", "cot"), cell("b", "cot")},
			nil, "the budget of the run is spent (100 tokens)",
		},
		{
			"model",
			gate.Budgets{PerModel: gate.Budget{USD: 1}},
			[]assay.Cell{cell("a", "cot"), cell("a", "baseline")},
			[]assay.Cell{cell("b", "cot")},
			"the budget of a is spent ($1)",
		},
		{
			"cell",
			gate.Budgets{PerCell: gate.Budget{USD: 2, Tokens: 100}},
			[]assay.Cell{cell("a", "cot")},
			[]assay.Cell{cell("a", "baseline")},
			"the budget of a cell of a is spent ($2, 100 tokens)",
		},
	} {
		g := gate.New(tc.budgets, gate.StopRules{})
		spent := cell("a", "cot")
		g.Spend(spent, assay.Usage{InputTokens: 60, OutputTokens: 39}, 0.99)
		if f := g.Allow(spent); f != nil {
			t.Errorf("%s: %v before the budget is spent", tc.name, f)
		}
		g.Spend(spent, assay.Usage{OutputTokens: 1}, 0.01)
		for _, c := range tc.stopped {
			f := g.Allow(c)
			if f == nil || f.Kind != assay.Interrupted || !strings.Contains(f.Detail, tc.says) {
				t.Errorf("%s: Allow = %v, want an interruption: %s", tc.name, f, tc.says)
			}
			if why, rule := g.Skip(c); why != tc.says || rule {
				t.Errorf("%s: Skip = %q by a rule %v, want %q", tc.name, why, rule, tc.says)
			}
		}
		for _, c := range tc.open {
			if why, _ := g.Skip(c); g.Allow(c) != nil || why != "" {
				t.Errorf("%s: %+v is stopped too: %s", tc.name, c, why)
			}
		}
	}
}

// TestBudgetIsKeptForEpisodesInFlight: a trial is not started when those in
// flight will probably use up what is left.
func TestBudgetIsKeptForEpisodesInFlight(t *testing.T) {
	t.Parallel()
	g := gate.New(gate.Budgets{Budget: gate.Budget{Tokens: 1000}}, gate.StopRules{})
	c := cell("a", "cot")
	g.Begin(c)
	g.Spend(c, assay.Usage{InputTokens: 200}, 0)
	g.End(c) // an episode takes 200 tokens
	for n := range 10 {
		if why, _ := g.Skip(c); why != "" {
			if n != 4 {
				t.Errorf("%d more episodes were let in, want 4: %s", n, why)
			}
			return
		}
		g.Begin(c)
	}
	t.Error("ten more episodes were let in")
}

// TestStopRules: a rule gives up what it counts, says so once, and counts what
// is skipped because of it.
func TestStopRules(t *testing.T) {
	t.Parallel()
	g := gate.New(gate.Budgets{}, gate.StopRules{
		Hopeless:  &gate.StopRule{After: 20, Below: 0.2, Per: gate.PerCell},
		Malformed: &gate.StopRule{After: 20, Above: 0.8, Per: gate.PerModel},
	})
	for i := range 25 {
		stops := g.Outcome(cell("a", "cot"), assay.Failure, "other")
		if got := len(stops) > 0; got != (i == 19) {
			t.Errorf("after %d failures: stops %v", i+1, stops)
		}
		g.Outcome(cell("a", "baseline"), assay.FullSuccess, "")
		g.Outcome(cell("b", "cot"), assay.PartialSuccess, "tool_call_format")
	}
	for _, c := range []assay.Cell{cell("a", "cot"), cell("b", "cot"), cell("b", "baseline")} {
		if why, rule := g.Skip(c); why == "" || !rule {
			t.Errorf("%+v goes on", c)
		}
	}
	if why, _ := g.Skip(cell("a", "baseline")); why != "" {
		t.Errorf("a cell that works is stopped: %s", why)
	}
	var got []string
	for _, s := range g.Stops() {
		got = append(got, s.String())
		want := 1
		switch {
		case s.Variant == "": // a model: two of its cells were asked for
			want = 2
		case s.Model == "b": // its model was given up before
			want = 0
		}
		if s.Skipped != want || s.Outcomes != 20 {
			t.Errorf("%s: %d skipped after %d outcomes, want %d after 20", s, s.Skipped, s.Outcomes, want)
		}
	}
	want := []string{
		"a cot easy simple_task 0.8 stopped early: full success is below 20 % with 95 % confidence after 20 trials",
		"b stopped early: 20 of 20 outcomes are tool_call_format, more than 80 %",
		"b cot easy simple_task 0.8 stopped early: full success is below 20 % with 95 % confidence after 20 trials",
	}
	if diff := cmp.Diff(want, got, cmp.Transformer("sort", func(s []string) map[string]bool {
		m := make(map[string]bool)
		for _, x := range s {
			m[x] = true
		}
		return m
	})); diff != "" {
		t.Errorf("stops (-want +got):\n%s", diff)
	}
}

// TestGateLaws: without budgets and rules nothing is ever stopped; with a
// budget, nothing is allowed once it is spent and everything before.
func TestGateLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.IntRange(1, 500).Draw(t, "budget")
		open, bound := gate.New(gate.Budgets{}, gate.StopRules{}), gate.New(gate.Budgets{Budget: gate.Budget{Tokens: budget}}, gate.StopRules{})
		spent := 0
		for _, n := range rapid.SliceOf(rapid.IntRange(0, 100)).Draw(t, "spent") {
			c := cell(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "model"), "cot")
			for _, g := range []*gate.Gate{open, bound} {
				g.Spend(c, assay.Usage{InputTokens: n}, float64(n))
				g.Outcome(c, assay.Failure, "tool_call_format")
			}
			spent += n
			if why, _ := open.Skip(c); why != "" || open.Allow(c) != nil {
				t.Fatalf("stopped without a budget: %s", why)
			}
			if allowed := bound.Allow(c) == nil; allowed != (spent < budget) {
				t.Fatalf("%d of %d spent, allowed %v", spent, budget, allowed)
			}
		}
	})
}
