package lane_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// once refuses a single request and permits all others.
type once struct{ at, n int }

func (o *once) take(time.Time) (bool, time.Duration) {
	o.n++
	return o.n != o.at, 3 * second
}

func (o *once) state(time.Time) (int, int, time.Duration) { return 3000, 2999, 0 }

// gateway has two upstream keys, and reports the state of the first.
type gateway struct{ keys [2]limiter }

func (g *gateway) take(now time.Time) (bool, time.Duration) {
	if ok, wait := g.keys[0].take(now); ok {
		return ok, wait
	}
	return g.keys[1].take(now)
}

func (g *gateway) state(now time.Time) (int, int, time.Duration) { return g.keys[0].state(now) }

// TestStrangers plays endpoints that earlier versions stalled at.
func TestStrangers(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		limiterRow
		used float64
	}{
		{limiterRow{"one refusal at request 30", func() *stranger {
			return &stranger{limiter: &once{at: 30}, wait: waitInSeconds}
		}, lane.Limits{RPM: 600, TPM: 600_000}, 10, minute}, .95},
		{limiterRow{"Azure, 50 in 10 s", func() *stranger {
			l := &fixed{n: 50, span: 10 * second}
			return &stranger{limiter: l, headers: azureHeaders, wait: waitInSeconds}
		}, lane.Limits{RPM: 300}, 5, minute}, .95},
		{limiterRow{"Together, 10 a second", func() *stranger {
			return &stranger{limiter: &fixed{n: 10, span: second}, headers: plainHeaders}
		}, lane.Limits{RPM: 600}, 10, minute}, .95},
		{limiterRow{"60 in 15 s", func() *stranger {
			return &stranger{limiter: &fixed{n: 60, span: 15 * second}, headers: plainHeaders}
		}, lane.Limits{}, 4, minute}, .90},
		{limiterRow{"one a second", func() *stranger {
			return &stranger{limiter: &sliding{n: 1, span: second}, wait: waitInSeconds}
		}, lane.Limits{RPM: 60}, 1, minute}, .95},
		{limiterRow{"LiteLLM, six at once", func() *stranger {
			return &stranger{width: 6, wait: waitInSeconds, message: "Rate limit exceeded. " +
				"Limit type: max_parallel_requests. Current limit: 6, Remaining: 0."}
		}, lane.Limits{}, 6 / .7, minute}, .90},
		{limiterRow{"a gateway with two upstream keys, which reports one", func() *stranger {
			l := &gateway{[2]limiter{&sliding{n: 150, span: minute}, &sliding{n: 150, span: minute}}}
			return &stranger{limiter: l, headers: litellmHeaders, wait: waitInSeconds}
		}, lane.Limits{}, 5, minute}, .90},
		{limiterRow{"headers that say that nothing remains", func() *stranger {
			l := liar{&sliding{n: 300, span: minute}, 300, 0, second}
			return &stranger{limiter: l, headers: plainHeaders, wait: waitInSeconds}
		}, lane.Limits{}, 5, minute}, .85},
		{limiterRow{"headers that report ten times the limit", func() *stranger {
			l := liar{&sliding{n: 300, span: minute}, 3000, 2999, second}
			return &stranger{limiter: l, headers: plainHeaders, wait: waitInSeconds}
		}, lane.Limits{}, 5, minute}, .85},
		{limiterRow{"busy above five at once", func() *stranger {
			return &stranger{width: 5, status: http.StatusServiceUnavailable}
		}, lane.Limits{}, 5 / .7, minute}, .90},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				used, refused := play(t, row.make(), row.stated, row.limiterRow)
				if used < row.used || refused > .025 {
					t.Errorf("used %.3f of what is permitted, %.2f %% refused", used, 100*refused)
				}
			})
		})
	}
}

// TestModelThatLoadsIsWaitedFor checks that a lane that never worked waits for an endpoint
// that loads its model.
func TestModelThatLoadsIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, kind := range []assay.FaultKind{assay.Overloaded, assay.Server} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(second)
				e.script = func(_ int, at time.Duration) error {
					if at < 100*second {
						return fault(kind)
					}
					return nil
				}
				p := poolOf(e, lane.Limits{})
				if kind == assay.Overloaded { // other faults use up the tries of a turn
					mustAll(t, ask(t.Context(), p, 20))
				}
				for range 100 {
					if _, err := p.Chat(t.Context(), &assay.Request{Model: "m"}); err == nil {
						break
					}
				}
				if took := time.Since(e.start); took > 3*minute || p.Closed() != nil {
					t.Errorf("after %v, the lane is closed with %v", took, p.Closed())
				}
			})
		})
	}
}

// TestTransientDenialDoesNotCloseLane checks that a lane survives a single refusal of its key.
func TestTransientDenialDoesNotCloseLane(t *testing.T) {
	t.Parallel()
	for _, kind := range []assay.FaultKind{assay.Auth, assay.Quota, assay.NotFound} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(second)
				e.script = func(n int, _ time.Duration) error {
					if n == 5 {
						return fault(kind)
					}
					return nil
				}
				p := poolOf(e, lane.Limits{Concurrency: 4})
				mustAll(t, ask(t.Context(), p, 40))
				if err := p.Closed(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
