package session

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
)

// hanging is a provider that replies after a second to two of five requests, and never to others.
type hanging struct{ requests *atomic.Int32 }

func (h hanging) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	if h.requests.Add(1)%5 >= 2 {
		<-ctx.Done()
		return &assay.Response{}, ctx.Err()
	}
	time.Sleep(time.Second)
	return &assay.Response{ServedModel: "m"}, nil
}

// TestHungTimeIsNoSpeed checks that the slots of a lane whose requests hang are full, but that
// most of the time counts as lost, that the fastest possible time leaves it out, and that the
// bottleneck is not the lane's width.
func TestHungTimeIsNoSpeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := troubled(t, silent{}, silent{}, plan.Budgets{}, plan.StopRules{})
		pool := lane.NewPool("m", []lane.Config{{
			Name: "gw/K/m", Provider: hanging{new(atomic.Int32)}, Orders: "m",
			Limits: lane.Limits{Concurrency: 2},
		}}, lane.Options{Request: 10 * time.Second, Observe: s.observe})
		s.pools.ByModel["m"] = pool
		var users sync.WaitGroup
		for range 4 {
			users.Go(func() {
				for range 20 {
					_, _ = pool.Chat(t.Context(), &assay.Request{})
				}
			})
		}
		users.Wait()
		wall := time.Since(s.started)
		if lost := s.progress().Models[0].Lost; lost < 0.8 {
			t.Errorf("%.2f of the time is lost, want nearly all", lost)
		}
		if least := s.least(); least < 10*time.Second || least > wall/3 {
			t.Errorf("fastest possible in %v, but the lane replied for 40 s of %v", least, wall)
		}
	})
}

// TestInterruptedRequestIsNoFault checks that a request which ends because the user stops the run
// does not count as a fault, but that its time is lost, because no reply came.
func TestInterruptedRequestIsNoFault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := troubled(t, silent{}, silent{}, plan.Budgets{}, plan.StopRules{})
		pool := lane.NewPool("m", []lane.Config{{
			Name: "gw/K/m", Provider: silent{}, Orders: "m",
		}}, lane.Options{Request: time.Minute, Observe: s.observe})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		_, err := pool.Chat(ctx, &assay.Request{})
		m := s.progress().Models[0]
		if f := assay.AsFault(err); f == nil || f.Kind != assay.Interrupted || m.Requests != 1 {
			t.Fatalf("%v after %d requests, want an interrupted one", err, m.Requests)
		}
		if n := s.meter.usage().RequestFaults; len(n) > 0 || m.Lost != 1 {
			t.Errorf("faults %v, lost %v; want none, and all of the time", n, m.Lost)
		}
	})
}
