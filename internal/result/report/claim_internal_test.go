package report

import (
	"testing"

	"github.com/assay-eval/assay"
)

// Only those who say that they are done claim it. A foreign agent may end well and say otherwise.
func TestEndWithoutAClaimIsNoFalseSuccess(t *testing.T) {
	t.Parallel()
	for stop, claims := range map[assay.Stop]bool{
		assay.Answered: true, assay.GaveUp: false, assay.Declined: false, assay.LeftEarly: false,
	} {
		a := assay.Attempt{Outcome: assay.Outcome{
			Level: assay.Failure, Ended: assay.Finished, Stop: stop,
		}}
		var x tally
		x.from = new(population[task])
		x.settle(&outcome{Attempt: &a})
		if (x.n(claimed) == 1) != claims || x.n(unfinished) != 1 {
			t.Errorf("%s: claimed %v, want %v", stop, x.n(claimed), claims)
		}
	}
}
