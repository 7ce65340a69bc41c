package lane_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

func TestHangIsCutAtTheRequestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Hour)
		options := lane.Options{Request: 10 * time.Second}
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{})}, options)
		resp, err := p.Chat(t.Context(), &assay.Request{Budget: 25 * time.Second})
		f := assay.AsFault(err)
		if f == nil || f.Kind != assay.Timeout || f.Lane != "l" {
			t.Fatalf("fault %v, want a timeout of lane l", f)
		}
		if resp.Waits.Requests != 3 || resp.Waits.Working != 25*time.Second {
			t.Errorf("waits %+v, want 3 requests in 25s of work: 10 + 10 + 5", resp.Waits)
		}
		if !strings.Contains(f.Detail, "trial's working time") {
			t.Errorf("detail %q does not name the limit", f.Detail)
		}
	})
}

func TestDeadKeyClosesItsLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead, good := newEndpoint(0), newEndpoint(time.Second)
		dead.script = func(int, time.Duration) error { return fault(assay.Auth) }
		p := lane.NewPool("m", []lane.Config{
			dead.lane("dead", lane.Limits{Concurrency: 3}),
			good.lane("good", lane.Limits{Concurrency: 1}),
		}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 20))
		// Two refusals in a row pause the lane. Until then each slot can have a request whose reply
		// is late and one that was refused between two late ones. The last is the probe.
		if n := len(dead.arrivals); n > 2*3+1 {
			t.Errorf("%d requests on the dead lane, want at most two per slot and a probe", n)
		}
		if p.Closed() != nil || p.Width() != 1 {
			t.Errorf("closed %v, width %d; want open with 1", p.Closed(), p.Width())
		}
	})
}

// TestClosedPoolFailsWaitingTurns checks that all waiting turns get the fault that
// closed the last lane.
func TestClosedPoolFailsWaitingTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		e.script = func(int, time.Duration) error { return fault(assay.Quota) }
		p := poolOf(e, lane.Limits{Concurrency: 1})
		for _, err := range ask(t.Context(), p, 10) {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.Quota {
				t.Errorf("error %v, want the quota fault", err)
			}
		}
		if len(e.arrivals) != 3 {
			t.Errorf("%d requests, want 3: two in a row pause the lane, and a probe closes it", len(e.arrivals))
		}
		if f := assay.AsFault(p.Closed()); f == nil || f.Kind != assay.Quota {
			t.Errorf("Closed() = %v", p.Closed())
		}
	})
}

// TestServerThatIsDownIsProbed checks that, after a few faults, single requests
// probe the server at growing intervals, and that the lane recovers with it.
func TestServerThatIsDownIsProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(100 * time.Millisecond)
		const down, back = time.Second, time.Minute
		asked := 0
		e.script = func(_ int, at time.Duration) error {
			if at < down || at >= back {
				return nil
			}
			asked++
			return fault(assay.Network)
		}
		p := poolOf(e, lane.Limits{Concurrency: 10})
		failed := 0
		for _, err := range ask(t.Context(), p, 300) {
			if err != nil {
				failed++
			}
		}
		if asked > 30 {
			t.Errorf("%d requests went to a server that was down", asked)
		}
		if failed > 10 {
			t.Errorf("%d of 300 turns failed although the server came back", failed)
		}
		if took := time.Since(e.start); took > 3*time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

func TestServerThatStaysDownEndsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Hour) // so every request times out
		options := lane.Options{Request: 30 * time.Second}
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 10})}, options)
		for p.Closed() == nil {
			ask(t.Context(), p, 3) // the third hang of a turn closes the lane
		}
		if took := time.Since(e.start); took > 40*time.Minute {
			t.Errorf("a server that hangs kept the model busy for %v", took)
		}
		// A turn that gives up must not change the fault, because others read it.
		if why := p.Closed().Error(); strings.Contains(why, "three times") {
			t.Errorf("the lane shows what a turn says about its own requests: %s", why)
		}
	})
}

// TestWrongModelIsAFault checks invariant 7: an answer from another model is a fault
// and is not retried.
func TestWrongModelIsAFault(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		served   string
		ok       bool
		identity string // the ignored part, or the hint
	}{
		{"gpt-4o-mini", true, ""},
		{"GPT-4o-Mini", true, "spelling"},
		{"openai/gpt-4o-mini-2024-07-18", true, "vendor, date"},
		{"snapshot-7", true, ""},
		{"gpt-4o", false, `add "gpt-4o" to serves`},
		{"gpt-4o-mini-2024", false, ""},
		{"gpt-4o-mini-audio-preview", false, ""},
		{"qwen2.5-72b-instruct", false, ""},
		{"", false, `serves: [""]`},
	} {
		t.Run("served "+tc.served, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(0)
				e.served = tc.served
				p := lane.NewPool("m", []lane.Config{{
					Name: "l", Provider: e, Orders: "gpt-4o-mini", Serves: []string{"snapshot-7"},
				}}, lane.Options{})
				resp, err := p.Chat(t.Context(), &assay.Request{})
				if tc.ok {
					if err != nil || resp.Identity != tc.identity {
						t.Errorf("ignored %q, error %v; want %q", resp.Identity, err, tc.identity)
					}
					return
				}
				f := assay.AsFault(err)
				if f == nil || f.Kind != assay.Identity || len(e.arrivals) != 1 ||
					resp.ServedModel != tc.served || !strings.Contains(f.Detail, tc.identity) {
					t.Errorf("fault %v after %d requests, want identity after 1", f, len(e.arrivals))
				}
			})
		})
	}
}

// TestModelWithoutNameNeedsServes checks that a response without a model name is accepted only
// if the user expects that.
func TestModelWithoutNameNeedsServes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(0)
		e.served = ""
		p := lane.NewPool("m", []lane.Config{{
			Name: "l", Provider: e, Orders: "gpt-4o-mini", Serves: []string{""},
		}}, lane.Options{})
		if _, err := p.Chat(t.Context(), &assay.Request{}); err != nil {
			t.Error(err)
		}
	})
}

// TestMistakesCloseLaneThatNeverWorked checks that a lane that never worked closes
// after five answers that suggest a wrong configuration, and that a few such
// answers do not close a lane that worked.
func TestMistakesCloseLaneThatNeverWorked(t *testing.T) {
	t.Parallel()
	for _, kind := range []assay.FaultKind{assay.Identity, assay.BadRequest} {
		t.Run("worked before "+string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(time.Second)
				e.script = func(n int, _ time.Duration) error {
					if n > 1 {
						return fault(kind)
					}
					return nil
				}
				p := poolOf(e, lane.Limits{Concurrency: 1})
				ask(t.Context(), p, 20)
				if err := p.Closed(); err != nil || len(e.arrivals) != 20 {
					t.Errorf("after %d requests closed with %v, want open", len(e.arrivals), err)
				}
			})
		})
		t.Run("never worked "+string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(time.Second)
				e.script = func(int, time.Duration) error { return fault(kind) }
				p := poolOf(e, lane.Limits{Concurrency: 1})
				ask(t.Context(), p, 20)
				f := assay.AsFault(p.Closed())
				if f == nil || f.Kind != kind || len(e.arrivals) != 5 {
					t.Errorf("after %d requests closed with %v, want %s after 5",
						len(e.arrivals), f, kind)
				}
			})
		})
	}
}

// TestRefusedFormsCloseNoLane checks that what an agent wishes is not taken for a wrong configuration.
func TestRefusedFormsCloseNoLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		e.script = func(int, time.Duration) error { return &assay.Fault{Kind: assay.BadRequest, Form: true} }
		p := poolOf(e, lane.Limits{Concurrency: 1})
		for _, err := range ask(t.Context(), p, 60) {
			if f := assay.AsFault(err); !f.Form {
				t.Errorf("error %v, want the refusal of the form", err)
			}
		}
		if err := p.Closed(); err != nil || len(e.arrivals) != 60 {
			t.Errorf("after %d requests closed with %v, want open", len(e.arrivals), err)
		}
	})
}

func TestStopWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Hour)
		options := lane.Options{Request: 2 * time.Hour}
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, options)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, err := range ask(ctx, p, 5) {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.Interrupted {
				t.Errorf("error %v, want interrupted", err)
			}
		}
		if took := time.Since(e.start); took != time.Second {
			t.Errorf("stopping took %v, want 1s", took)
		}
		if lanes, waiting := p.Status(); lanes[0].InFlight != 0 || waiting.Requests != 0 {
			t.Errorf("after the stop: %+v, %+v", lanes, waiting)
		}
	})
}

// TestDrainInterruptsOnlyLimitWaits checks that a soft stop ends waits for limits
// and pauses, but lets requests in flight and waits for slots continue.
func TestDrainInterruptsOnlyLimitWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		p := poolOf(e, lane.Limits{Concurrency: 2, RPM: 4, Burst: 4})
		time.AfterFunc(500*time.Millisecond, p.Drain)
		done, interrupted := 0, 0
		for _, err := range ask(t.Context(), p, 10) {
			if f := assay.AsFault(err); f == nil {
				done++
			} else if f.Kind == assay.Interrupted {
				interrupted++
			}
		}
		took := time.Since(e.start)
		if done != 4 || interrupted != 6 || took != 2*time.Second {
			t.Errorf("%d done and %d interrupted after %v, want 4 and 6 after 2s",
				done, interrupted, took)
		}
	})
}

// TestLaneThatNeverWorkedIsGivenUpSoon checks that a wrong address does not delay a
