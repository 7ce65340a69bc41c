package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/live"
	"github.com/assay-eval/assay/internal/run/plan"
)

// silent is a provider that never answers.
type silent struct{}

func (silent) Chat(ctx context.Context, _ assay.Request) (assay.Response, error) {
	<-ctx.Done()
	return assay.Response{}, ctx.Err()
}

// TestStallIsNamed: when no request has ended for a minute, and again after
// two and four, the user is told what hangs where, since when, and who waits.
func TestStallIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := lane.NewPool("m", []lane.Config{{
			Name: "gw/K/m", Provider: silent{}, Orders: "m", Limits: lane.Limits{Concurrency: 1},
		}}, lane.Options{Request: time.Hour})
		s := &session{
			Job:   &job.Job{Experiment: &plan.Experiment{Models: []string{"m"}}},
			pools: &job.Pools{ByModel: map[string]*lane.Pool{"m": pool}}, meter: live.NewMeter(nil), started: time.Now(), log: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() { _, _ = pool.Chat(ctx, assay.Request{}) }()
		}
		go s.watch(ctx)
		time.Sleep(5*time.Minute + time.Second/2)
		notes := s.meter.Snapshot().Notes
		cancel()
		synctest.Wait()
		want := []string{
			"no request has ended for 1m0s: 1 in flight on gw/K/m, the oldest request for 1m0s; waiting of m: 2 for concurrency of gw/K/m, the first for 1m0s",
			"no request has ended for 2m0s: ",
			"no request has ended for 4m0s: ",
		}
		if len(notes) != len(want) {
			t.Fatalf("%d notes, want %d: %q", len(notes), len(want), notes)
		}
		for i, n := range notes {
			if !strings.HasPrefix(n, want[i]) {
				t.Errorf("note %q, want %q", n, want[i])
			}
		}
	})
}
