package wire

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestDoorOfADeadHost checks that requests go in after a while, even if nobody leaves the door.
func TestDoorOfADeadHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(doors).of("dead")
		for range atDoor {
			if _, _, err := d.pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		_, leave, err := d.pass(t.Context())
		if took := time.Since(start); err != nil || took != doorLimit {
			t.Errorf("in after %v, error %v", took, err)
		}
		leave()
	})
}

// TestDoorOfASlowHost checks that requests wait as long as others leave the door, because thousands
// that went in together would each open a connection.
func TestDoorOfASlowHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const requests = 10 * atDoor
		d := new(doors).of("slow")
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
				_, leave, err := d.pass(t.Context())
				if err != nil {
					t.Error(err)
				}
				count(1)
				time.Sleep(doorLimit - time.Second)
				count(-1)
				leave()
			})
		}
		all.Wait()
		want := requests / atDoor * (doorLimit - time.Second)
		if took := time.Since(start); most != atDoor || took != want {
			t.Errorf("%d inside at once, and all left after %v; want %d, %v", most, took, atDoor, want)
		}
	})
}
