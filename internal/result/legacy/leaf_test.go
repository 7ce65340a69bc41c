package legacy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/result/legacy"
)

// TestPerfectLeafHasNoErrors reads leaves without total_errors, which the original created at the
// first error.
func TestPerfectLeafHasNoErrors(t *testing.T) {
	t.Parallel()
	const counted = `"total": %d, "success": %d, "partial": 0, "failed": %d, "full_success": %d`
	once := legacy.Counts{Total: 10, Success: 10, Full: 10}
	for name, tt := range map[string]struct {
		leaf   string
		rule   legacy.Rule
		counts legacy.Counts
	}{
		"counted once":  {fmt.Sprintf(counted, 10, 10, 0, 10), legacy.AsStored, once},
		"counted twice": {fmt.Sprintf(counted, 20, 20, 0, 10), legacy.Doubled, once},
		"no success":    {fmt.Sprintf(counted, 10, 0, 10, 0), "", legacy.Counts{}},
		"null": {
			fmt.Sprintf(counted, 10, 10, 0, 10) + `, "total_errors": null`,
			"",
			legacy.Counts{},
		},
		"a text": {
			fmt.Sprintf(counted, 10, 10, 0, 10) + `, "total_errors": "0"`,
			"",
			legacy.Counts{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := read(t, file(tt.leaf)).Aggregates[0]
			counts, usable := a.Counts()
			if a.Rule != tt.rule || counts != tt.counts || usable != (tt.rule != "") {
				t.Errorf("rule %q, counts %+v, want %q and %+v: %s",
					a.Rule, counts, tt.rule, tt.counts, a.Reason)
			}
		})
	}
}

// TestDoublingThatLeavesCannotTell reads leaves without a success. Twice as many failures as errors
// can be tests that were counted twice, or failures without a category.
func TestDoublingThatLeavesCannotTell(t *testing.T) {
	t.Parallel()
	const failed = `"total": %[1]d, "success": 0, "partial": 0, "failed": %[1]d, ` +
		`"full_success_rate": 0, "total_errors": 12, "max_turns_errors": 12`
	for total, want := range map[int]legacy.Rule{
		12: legacy.AsStored, 24: legacy.PerhapsDoubled, 17: legacy.PerhapsDoubled, 25: "", 11: "",
	} {
		db := read(t, file(fmt.Sprintf(failed, total)))
		a := db.Aggregates[0]
		said := strings.Contains(a.Reason, "cannot tell")
		if a.Rule != want || said != (want == legacy.PerhapsDoubled) {
			t.Errorf("%d failures: rule %q (%s), want %q", total, a.Rule, a.Reason, want)
		}
		if c, ok := a.Counts(); ok && (c.Total != 12 || c.Failed != 12 || c.Full != 0) {
			t.Errorf("%d failures: counts %+v, want 12 failures", total, c)
		}
	}
}
