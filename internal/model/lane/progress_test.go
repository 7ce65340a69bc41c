package lane_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

func TestProgressTellsQueuedFromSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := poolOf(newEndpoint(time.Minute), lane.Limits{Concurrency: 1})
		var mu sync.Mutex
		told := make(map[int][]bool)
		for i := range 2 {
			ctx := lane.OnProgress(t.Context(), func(sent bool) {
				mu.Lock()
				defer mu.Unlock()
				told[i] = append(told[i], sent)
			})
			go func() {
				if _, err := p.Chat(ctx, &assay.Request{Model: "m"}); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		check := func(want ...[]bool) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			for i := range want {
				if !slices.Equal(told[i], want[i]) {
					t.Errorf("request %d told %v, want %v", i, told[i], want[i])
				}
			}
		}
		check([]bool{false, true}, []bool{false})
		time.Sleep(90 * time.Second)
		synctest.Wait()
		check([]bool{false, true}, []bool{false, true})
		time.Sleep(time.Minute)
	})
}
