package store

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTurnstile checks that attempts pass one at a time, and that those for which there is no room
// to wait pass at once.
func TestTurnstile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const more = 44
		turnstile := newTurnstile(1)
		first := turnstile.pass()
		var passed atomic.Int32
		var all sync.WaitGroup
		for range mostAtTurnstile + more {
			all.Go(func() {
				leave := turnstile.pass()
				passed.Add(1)
				time.Sleep(time.Second)
				leave()
			})
		}
		synctest.Wait()
		if n := passed.Load(); n != more {
			t.Errorf("%d passed while one was inside, want %d", n, more)
		}
		start := time.Now()
		first()
		all.Wait()
		if took := time.Since(start); took != mostAtTurnstile*time.Second {
			t.Errorf("%d passed in %v, want a second each", mostAtTurnstile, took)
		}
		if n := turnstile.waiting.Load(); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}
