package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
)

// TestFaultedTrialIsRetriedWhileOthersRun checks that the further attempts of a trial do not come
// after all others, and that the run takes no longer because of them.
func TestFaultedTrialIsRetriedWhileOthersRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second, fault: func(id assay.TrialID, _ int) assay.FaultKind {
			if id == "a-0" {
				return assay.Server
			}
			return ""
		}}
		start := time.Now()
		sum, err := b.run(t.Context(), nil, model("a", 98, 4))
		if err != nil || sum.Settled != 97 || sum.Parked != 1 {
			t.Fatalf("summary %+v, error %v", sum, err)
		}
		for i, a := range b.saved {
			if a.Parked && (i < 20 || i > 50) {
				t.Errorf("the trial was parked after %d attempts, want it between 20 and 50", i)
			}
		}
		if got := time.Since(start); got != 25*time.Second {
			t.Errorf("the run took %v, want 25s", got)
		}
	})
}

// A rig runs trials of three turns through the lanes of a pool. A reply takes two seconds, and the
// conversations of trials in hangs get no reply.
type rig struct {
	hangs map[string]bool
	// down, if set, is how the endpoint fails after it has replied often enough.
	down    func(ctx context.Context) error
	replies int
	asked   atomic.Int32
	dead    assay.Provider // serves a second lane, if set
	pool    *lane.Pool

	mu    sync.Mutex // guards saved, because attempts are saved side by side
	saved []assay.Attempt
	// latest is when a request succeeded last, in nanoseconds since 1970.
	latest atomic.Int64
}

func (r *rig) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	if r.down != nil && int(r.asked.Add(1)) > r.replies {
		return &assay.Response{}, r.down(ctx)
	}
	wait := 2 * time.Second
	if r.hangs[req.Messages[0].Content] {
		wait = 24 * time.Hour
	}
	select {
	case <-time.After(wait):
		return &assay.Response{ServedModel: "m"}, nil
	case <-ctx.Done():
		return &assay.Response{}, ctx.Err()
	}
}

func (r *rig) attempt(
	ctx context.Context, trial *assay.Trial,
) (*assay.Attempt, *assay.Transcript) {
	a := &assay.Attempt{Trial: *trial}
	for range 3 {
		_, err := r.pool.Chat(ctx, &assay.Request{
			Model: "m", Messages: []assay.Message{{Content: string(trial.ID)}},
			Budget: 10 * time.Minute,
		})
		if f := assay.AsFault(err); f != nil {
			a.FaultKind, a.FaultDetail, a.Parked = f.Kind, f.Error(), f.Hopeless
			return a, nil
		}
	}
	a.Level = assay.FullSuccess
	return a, nil
}

// run runs n trials, up to eight at a time, and returns how long the run and its replies took.
func (r *rig) run(t *testing.T, n int) (whole, replies time.Duration, sum engine.Summary) {
	t.Helper()
	wake := make(chan struct{}, 1)
	lanes := []lane.Config{{
		Name: "l", Provider: r, Orders: "m", Limits: lane.Limits{Concurrency: 8},
	}}
	if r.dead != nil {
		lanes = append(lanes, lane.Config{
			Name: "dead", Provider: r.dead, Orders: "m", Limits: lane.Limits{Concurrency: 1},
		})
	}
	r.pool = lane.NewPool("m", lanes, lane.Options{
		Observe: func(x lane.Exchange) {
			if x.Fault == nil {
				r.latest.Store(time.Now().UnixNano())
			}
		},
		Wake: func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		},
	})
	start := time.Now()
	latest := func() time.Time {
		if at := r.latest.Load(); at > 0 {
			return time.Unix(0, at)
		}
		return time.Time{}
	}
	sum, err := engine.Run(t.Context(), nil, engine.Config{
		Models: []engine.Model{{
			Name: "m", Pending: trials("m", n), Admit: r.pool.Admit, Closed: r.pool.Closed,
			Most: func() int { return 100 }, Latest: latest,
			Hopeful: r.pool.Hopeful,
		}},
		Wake: wake, Attempt: r.attempt, MaxSilence: lane.DefaultRequest,
		Save: func(_ context.Context, a *assay.Attempt, _ *assay.Transcript) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if !a.Settles() {
				r.saved = append(r.saved, *a)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(start), latest().Sub(start), sum
}

// TestHungTaskDoesNotHoldTheRun checks that a task that never gets a reply is given up while
// others run, or one request limit after the latest reply.
func TestHungTaskDoesNotHoldTheRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		n      int
		hangs  []int
		reason string
	}{
		{"first of many", 1000, []int{0}, "no reply within 150 s, three times"},
		{"first of few", 100, []int{0}, "no other trial was left to run"},
		{"last", 100, []int{99}, "no other trial was left to run"},
		{"several", 1000, []int{3, 100, 101, 998}, "no reply within 150 s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &rig{hangs: make(map[string]bool)}
				for _, i := range tc.hangs {
					r.hangs[fmt.Sprint("m-", i)] = true
				}
				whole, replies, sum := r.run(t, tc.n)
				if tail := whole - replies; tail > lane.DefaultRequest+time.Second {
					t.Errorf("the run ended %v after the latest reply", tail)
				}
				if sum.Parked != len(tc.hangs) || sum.Settled != tc.n-len(tc.hangs) {
					t.Errorf("summary %+v", sum)
				}
				for _, a := range r.saved {
					if a.FaultKind != assay.Timeout || !a.Parked ||
						!strings.Contains(a.FaultDetail, tc.reason) {
						t.Errorf("%s has fault %s: %s", a.ID, a.FaultKind, a.FaultDetail)
					}
				}
			})
		})
	}
}

// TestHungModelIsLeftToItsLane checks that a model that never replied is not given up with the
// silence limit for the last attempts, because its server may still be starting.
func TestHungModelIsLeftToItsLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{hangs: map[string]bool{"m-0": true}}
		if whole, _, _ := r.run(t, 1); whole < 2*lane.DefaultRequest {
			t.Errorf("the run ended after %v", whole)
		}
	})
}

// silent is an endpoint that accepts requests and never replies.
type silent struct{}

func (silent) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	<-ctx.Done()
	return &assay.Response{}, ctx.Err()
}

// TestHungLaneDoesNotCostItsTrials checks that a trial that hung because of its lane is done on
// another lane, even if it is the last one.
func TestHungLaneDoesNotCostItsTrials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{dead: silent{}}
		whole, replies, sum := r.run(t, 30)
		if sum.Settled != 30 || whole != replies {
			t.Errorf("summary %+v; the run took %v, and its replies %v", sum, whole, replies)
		}
	})
}

// TestDeadEndpointEndsTheRun checks how long a run waits for an endpoint that is down from the
// beginning, or dies while trials are pending, and that the reason names the cause.
func TestDeadEndpointEndsTheRun(t *testing.T) {
	t.Parallel()
	fails := func(kind assay.FaultKind, detail string) func(context.Context) error {
		return func(context.Context) error { return &assay.Fault{Kind: kind, Detail: detail} }
	}
	refuses := fails(assay.Network, "connection refused")
	breaks := fails(assay.Server, "500 internal error")
	hangs := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, tc := range []struct {
		name    string
		down    func(context.Context) error
		replies int
		longest time.Duration
		reason  string
	}{
		{"never there", refuses, 0, 40 * time.Second, "connection refused"},
		{"always broken", breaks, 0, 11 * time.Minute, "500 internal error"},
		{"always silent", hangs, 0, 11 * time.Minute, "no reply within 150 s"},
		{"gone", refuses, 60, 11 * time.Minute, "connection refused"},
		{"breaks", breaks, 60, 11 * time.Minute, "500 internal error"},
		{"falls silent", hangs, 60, 14 * time.Minute, "no reply within 150 s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &rig{down: tc.down, replies: tc.replies}
				whole, _, sum := r.run(t, 100)
				if whole > tc.longest {
					t.Errorf("the run took %v, want at most %v", whole, tc.longest)
				}
				if err := sum.Closed["m"]; err == nil || !strings.Contains(err.Error(), tc.reason) {
					t.Errorf("the model was closed because of %v, want %q", err, tc.reason)
				}
			})
		})
	}
}
