package session

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// silent is a provider that never answers.
type silent struct{}

func (silent) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	<-ctx.Done()
	return &assay.Response{}, ctx.Err()
}

// TestStallIsExplained checks that a run in which no request finishes notes after one, two and
// four minutes which requests are in flight and which wait.
func TestStallIsExplained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := troubled(t, silent{}, silent{}, plan.Budgets{}, plan.StopRules{})
		ctx, cancel := context.WithCancel(t.Context())
		for range 4 {
			go func() { _, _ = s.pools.ByModel["m"].Chat(ctx, &assay.Request{}) }()
		}
		go s.watch(ctx)
		time.Sleep(5*time.Minute + time.Second/2)
		notes := s.progress().Notes
		cancel()
		synctest.Wait()

		want := []string{
			"no request has finished for 1m0s: gw/K/m has 2 in flight, the oldest for 1m0s; " +
				"m has 2 waiting for the concurrency limit of gw/K/m, the first for 1m0s",
			"no request has finished for 2m0s: ",
			"no request has finished for 4m0s: ",
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
