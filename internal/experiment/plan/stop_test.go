package plan_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/experiment/plan"
)

func TestRuleIsMetByEnoughOutcomes(t *testing.T) {
	t.Parallel()
	hopeless := plan.StopRules{Hopeless: &plan.StopRule{After: 24, Below: 0.2, Per: plan.PerCell}}
	byDefault := plan.StopRules{Hopeless: &plan.StopRule{
		After: plan.DefaultAfter, Below: plan.DefaultBelow, Per: plan.PerCell,
	}}
	malformed := plan.StopRules{
		Malformed: &plan.StopRule{After: 20, Above: 0.8, Per: plan.PerModel},
	}
	both := plan.StopRules{
		Hopeless:  &plan.StopRule{After: 20, Below: 0.5, Per: plan.PerCell},
		Malformed: &plan.StopRule{After: 20, Above: 0.29, Per: plan.PerCell},
	}
	const (
		hopelessText  = "full success is below 20 % with 95 % confidence after 24 trials"
		malformedText = "17 of 20 outcomes made no valid call, more than 80 %"
	)
	for _, tc := range []struct {
		name               string
		rules              plan.StopRules
		n, full, malformed int
		per, want          string
	}{
		{"no rule", plan.StopRules{}, 1000, 0, 1000, plan.PerCell, ""},
		{"no outcome", hopeless, 0, 0, 0, plan.PerCell, ""},
		{"too early", hopeless, 23, 0, 0, plan.PerCell, ""},
		{"hopeless", hopeless, 24, 0, 0, plan.PerCell, hopelessText},
		{"two full successes", hopeless, 24, 2, 0, plan.PerCell, ""},
		{"hopeless per model", hopeless, 24, 0, 0, plan.PerModel, ""},
		{"188 outcomes", byDefault, 188, 0, 0, plan.PerCell, ""},
		{
			"189 outcomes", byDefault, 189, 0, 0, plan.PerCell,
			"full success is below 2 % with 95 % confidence after 189 trials",
		},
		{"malformed too early", malformed, 19, 0, 19, plan.PerModel, ""},
		{"exactly the share", malformed, 20, 0, 16, plan.PerModel, ""},
		{"malformed", malformed, 20, 0, 17, plan.PerModel, malformedText},
		{"malformed per cell", malformed, 20, 0, 17, plan.PerCell, ""},
		{"exactly a share without a binary fraction", both, 100, 90, 29, plan.PerCell, ""},
		{
			"malformed is checked first", both, 20, 0, 20, plan.PerCell,
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
		rules := plan.StopRules{Hopeless: &plan.StopRule{
			After: plan.MinAfter, Per: plan.PerCell,
			Below: rapid.Float64Range(0.001, 0.999).Draw(t, "below"),
		}}
		n := rapid.IntRange(1, 500).Draw(t, "n")
		full := rapid.IntRange(0, n-1).Draw(t, "full")
		fewer := rules.Reason(n, full, 0, plan.PerCell)
		more := rules.Reason(n, full+1, 0, plan.PerCell)
		if fewer == "" && more != "" {
			t.Fatalf("stopped with %d of %d full successes, but not with %d", full+1, n, full)
		}
	})
}
