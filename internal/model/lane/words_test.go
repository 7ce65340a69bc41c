package lane_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// TestStatusQuotesTheEndpoint checks that a status has the endpoint's words about a wait.
func TestStatusQuotesTheEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(second)
		e.script = func(n int, _ time.Duration) error {
			if n > 1 {
				return nil
			}
			f := fault(assay.RateLimited)
			f.RetryAfter, f.Detail = minute, "slow down for a minute"
			return f
		}
		p := poolOf(e, lane.Limits{Concurrency: 1})
		go func() { _ = ask(t.Context(), p, 1) }()
		time.Sleep(10 * second)
		if lanes, _ := p.Status(); lanes[0].Words != "slow down for a minute" {
			t.Errorf("Words = %q", lanes[0].Words)
		}
		time.Sleep(2 * minute)
	})
}
