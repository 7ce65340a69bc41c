package budget_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/experiment/budget"
)

func TestRuleIsMetByEnoughOutcomes(t *testing.T) {
	t.Parallel()
	hopeless := budget.StopRules{Hopeless: &budget.StopRule{After: 24, Below: 0.2, Per: budget.PerCell}}
	byDefault := budget.StopRules{Hopeless: &budget.StopRule{
		After: budget.DefaultAfter, Below: budget.DefaultBelow, Per: budget.PerCell,
	}}
	malformed := budget.StopRules{
		Malformed: &budget.StopRule{After: 20, Above: 0.8, Per: budget.PerModel},
	}
	both := budget.StopRules{
		Hopeless:  &budget.StopRule{After: 20, Below: 0.5, Per: budget.PerCell},
		Malformed: &budget.StopRule{After: 20, Above: 0.29, Per: budget.PerCell},
	}
	const (
		hopelessText  = "full success is below 20 % with 95 % confidence after 24 trials"
		malformedText = "17 of 20 outcomes made no valid call, more than 80 %"
	)
	for _, tc := range []struct {
		name               string
		rules              budget.StopRules
		n, full, malformed int
		per, want          string
	}{
		{"no rule", budget.StopRules{}, 1000, 0, 1000, budget.PerCell, ""},
		{"no outcome", hopeless, 0, 0, 0, budget.PerCell, ""},
		{"too early", hopeless, 23, 0, 0, budget.PerCell, ""},
		{"hopeless", hopeless, 24, 0, 0, budget.PerCell, hopelessText},
		{"two full successes", hopeless, 24, 2, 0, budget.PerCell, ""},
		{"hopeless per model", hopeless, 24, 0, 0, budget.PerModel, ""},
		{"188 outcomes", byDefault, 188, 0, 0, budget.PerCell, ""},
		{
			"189 outcomes", byDefault, 189, 0, 0, budget.PerCell,
			"full success is below 2 % with 95 % confidence after 189 trials",
		},
		{"malformed too early", malformed, 19, 0, 19, budget.PerModel, ""},
		{"exactly the share", malformed, 20, 0, 16, budget.PerModel, ""},
		{"malformed", malformed, 20, 0, 17, budget.PerModel, malformedText},
		{"malformed per cell", malformed, 20, 0, 17, budget.PerCell, ""},
		{"exactly a share without a binary fraction", both, 100, 90, 29, budget.PerCell, ""},
		{
			"malformed is checked first", both, 20, 0, 20, budget.PerCell,
			"20 of 20 outcomes made no valid call, more than 29 %",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.rules.Reason(tc.n, tc.full, tc.malformed, tc.per); got != tc.want {
				t.Errorf("Reason() = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestBetterIsNeverStopped checks that more full successes never cause a stop.
func TestBetterIsNeverStopped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := budget.StopRules{Hopeless: &budget.StopRule{
			After: budget.LeastAfter, Per: budget.PerCell,
			Below: rapid.Float64Range(0.001, 0.999).Draw(t, "below"),
		}}
		n := rapid.IntRange(1, 500).Draw(t, "n")
		full := rapid.IntRange(0, n-1).Draw(t, "full")
		fewer := rules.Reason(n, full, 0, budget.PerCell)
		more := rules.Reason(n, full+1, 0, budget.PerCell)
		if fewer == "" && more != "" {
			t.Fatalf("stopped with %d of %d full successes, but not with %d", full+1, n, full)
		}
	})
}
