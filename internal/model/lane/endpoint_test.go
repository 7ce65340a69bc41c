package lane_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// endpoint is a provider that answers after some time, or as scripted, and records
// its requests.
type endpoint struct {
	took   time.Duration
	tokens int
	served string
	script func(n int, at time.Duration) error // n counts from 1
	quotas func(n int) []assay.QuotaState
	takes  func() time.Duration // replaces took

	mu          sync.Mutex // also held while script and takes run
	start       time.Time
	arrivals    []time.Duration
	inFlight    int
	maxInFlight int
}

func newEndpoint(took time.Duration) *endpoint {
	return &endpoint{took: took, served: "m", start: time.Now()}
}

func (e *endpoint) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	e.mu.Lock()
	at := time.Since(e.start)
	e.arrivals = append(e.arrivals, at)
	n := len(e.arrivals)
	e.inFlight++
	e.maxInFlight = max(e.maxInFlight, e.inFlight)
	took := e.took
	if e.takes != nil {
		took = e.takes()
	}
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.inFlight--
		e.mu.Unlock()
	}()
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return &assay.Response{}, ctx.Err()
	}
	if err := e.play(n, at); err != nil {
		return &assay.Response{}, err
	}
	resp := &assay.Response{ServedModel: e.served, Usage: assay.Usage{InputTokens: e.tokens}}
	if e.quotas != nil {
		resp.Quotas = e.quotas(n)
	}
	return resp, nil
}

func (e *endpoint) play(n int, at time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.script == nil {
		return nil
	}
	return e.script(n, at)
}

func (e *endpoint) lane(name string, limits lane.Limits) lane.Config {
	return lane.Config{Name: name, Provider: e, Limits: limits, Orders: "m"}
}

// poolOf returns a pool with a single lane named l.
func poolOf(provider assay.Provider, limits lane.Limits) *lane.Pool {
	config := lane.Config{Name: "l", Provider: provider, Orders: "m", Limits: limits}
	return lane.NewPool("m", []lane.Config{config}, lane.Options{})
}

// ask sends n requests at once and returns when all of them have ended.
func ask(ctx context.Context, p *lane.Pool, n int) (errs []error) {
	errs = make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, errs[i] = p.Chat(ctx, &assay.Request{Model: "m"}) })
	}
	wg.Wait()
	return errs
}

func mustAll(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func fault(kind assay.FaultKind) *assay.Fault {
	return &assay.Fault{Kind: kind, Detail: "scripted"}
}

// TestRefusedSecondTurnsCloseLane checks that a lane closes if its endpoint rejects every second
// turn, although it answers every first one.
func TestRefusedSecondTurnsCloseLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(second)
		e.script = func(n int, _ time.Duration) error {
			if n%2 == 0 {
				return fault(assay.BadRequest)
			}
			return nil
		}
		p := poolOf(e, lane.Limits{Concurrency: 1})
		for range 20 {
			resp, err := p.Chat(t.Context(), &assay.Request{Model: "m"})
			if err != nil {
				break
			}
			_, _ = p.Chat(t.Context(), &assay.Request{Model: "m", Lane: resp.Lane})
		}
		if err := p.Closed(); err == nil || len(e.arrivals) != 10 {
			t.Errorf("after %d requests closed with %v, want bad_request after 10",
				len(e.arrivals), err)
		}
	})
}
