package wire

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestConnectLimitOfADeadHost checks that requests go on after a while, even if no slot is
// released.
func TestConnectLimitOfADeadHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := new(connectLimits).of("dead")
		for range maxConnecting {
			if _, _, err := l.acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		_, release, err := l.acquire(t.Context())
		if took := time.Since(start); err != nil || took != slotTimeout {
			t.Errorf("in after %v, error %v", took, err)
		}
		release()
	})
}

// TestConnectLimitOfASlowHost checks that requests wait as long as others release their slots,
// because thousands that went on together would each open a connection.
func TestConnectLimitOfASlowHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const requests = 10 * maxConnecting
		l := new(connectLimits).of("slow")
		start := time.Now()
		var all sync.WaitGroup
		var inside, most int
		var mu sync.Mutex
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			inside += n
			most = max(most, inside)
		}
		for range requests {
			all.Go(func() {
				_, release, err := l.acquire(t.Context())
				if err != nil {
					t.Error(err)
				}
				count(1)
				time.Sleep(slotTimeout - time.Second)
				count(-1)
				release()
			})
		}
		all.Wait()
		want := requests / maxConnecting * (slotTimeout - time.Second)
		if took := time.Since(start); most != maxConnecting || took != want {
			t.Errorf("%d inside at once, and all left after %v; want %d, %v", most, took, maxConnecting, want)
		}
	})
}
