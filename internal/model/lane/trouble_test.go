package lane_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// TestSingleFaultsDoNotTouchTheLane checks that a lane with 2 % faults of one kind takes hardly
// longer than one without. The median of seven games counts, because one in 40 takes more than
// 14 s: the requests that start at once meet the faults in any order.
func TestSingleFaultsDoNotTouchTheLane(t *testing.T) {
	t.Parallel()
	for _, kind := range []assay.FaultKind{
		assay.Auth, assay.Quota, assay.NotFound, assay.BadRequest, assay.Server, assay.Overloaded,
		assay.RateLimited,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var took []time.Duration
			for range 7 {
				synctest.Test(t, func(t *testing.T) {
					e := newEndpoint(200 * time.Millisecond)
					e.script = func(n int, _ time.Duration) error {
						if n%50 == 0 {
							return fault(kind)
						}
						return nil
					}
					p := poolOf(e, lane.Limits{Concurrency: 20})
					_ = ask(t.Context(), p, 1000)
					if took = append(took, time.Since(e.start)); p.Closed() != nil {
						t.Errorf("closed with %v", p.Closed())
					}
				})
			}
			if slices.Sort(took); took[3] > 15*time.Second {
				t.Errorf("took %v of 10 s", took)
			}
		})
	}
}

// TestOutageOfTenMinutesIsSurvived checks that a lane that worked once is not given up within ten
// minutes, whatever the fault, and is used as soon as a probe is answered.
func TestOutageOfTenMinutesIsSurvived(t *testing.T) {
	t.Parallel()
	for _, kind := range []assay.FaultKind{
		assay.Auth, assay.Quota, assay.NotFound, assay.BadRequest, assay.Identity, assay.Server,
		assay.Overloaded, assay.RateLimited, assay.Network,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(time.Second)
				e.script = func(_ int, at time.Duration) error {
					if at > 10*second && at < 590*second {
						return fault(kind)
					}
					return nil
				}
				p := poolOf(e, lane.Limits{Concurrency: 4})
				saturate(p, 8, 16*time.Minute)
				if p.Closed() != nil {
					t.Fatalf("closed with %v", p.Closed())
				}
				after := 0
				for _, at := range e.arrivals {
					if at > 900*second {
						after++
					}
				}
				if after < 200 {
					t.Errorf("%d requests in the last minute, want 240", after)
				}
			})
		})
	}
}

// TestDeploymentThatIsNotReadyIsTriedForTenMinutes checks a lane that never worked and replies that
// it is not ready, as Azure's do with status 404, and one that is denied without such words.
func TestDeploymentThatIsNotReadyIsTriedForTenMinutes(t *testing.T) {
	t.Parallel()
	for words, ready := range map[string]time.Duration{
		"The API deployment for this resource is not ready":   9 * time.Minute,
		"Model is currently loading":                          9 * time.Minute,
		"The API deployment for this resource does not exist": 10 * time.Second,
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(time.Second)
				e.script = func(_ int, at time.Duration) error {
					if at < ready {
						return &assay.Fault{Kind: assay.NotFound, Detail: words}
					}
					return nil
				}
				p := poolOf(e, lane.Limits{})
				saturate(p, 8, ready+time.Minute)
				if waits := ready > time.Minute; waits != (p.Closed() == nil) {
					t.Errorf("ready after %v, closed with %v", ready, p.Closed())
				}
			})
		})
	}
}
