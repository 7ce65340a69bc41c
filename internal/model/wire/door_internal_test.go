package wire

import (
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
