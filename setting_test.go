package assay_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

func TestLoopRulesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := make(assay.LoopRules)
		for _, kind := range assay.LoopKinds {
			if n := rapid.IntRange(0, 9).Draw(t, string(kind)); n > 0 {
				rules[kind] = assay.LoopRule{After: n, Stop: rapid.Bool().Draw(t, "stop")}
			}
		}
		got, err := assay.ParseLoopRules(rules.String())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rules, got); diff != "" {
			t.Fatalf("%q is parsed as different rules:\n%s", rules, diff)
		}
	})
	if _, err := assay.ParseLoopRules("repeat=x"); err == nil {
		t.Error("a rule without a number is accepted")
	}
}
