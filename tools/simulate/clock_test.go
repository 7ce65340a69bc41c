package main

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClock checks that only the wall clock jumps, and only in bubbles.
func TestClock(t *testing.T) {
	if !clockCanJump {
		t.Skip("not on this system")
	}
	before := time.Now()
	replaceClock()
	t.Cleanup(func() { ahead.Store(0) })
	if took := time.Since(before); took < 0 || took > time.Hour || time.Now().Round(0).Sub(before.Round(0)) > time.Hour {
		t.Errorf("outside of a bubble, time jumps by %v, to %v", took, time.Now())
	}
	synctest.Test(t, func(*testing.T) {
		began := time.Now()
		if want := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); !began.Equal(want) {
			t.Errorf("a bubble begins at %v", began.UTC())
		}
		ahead.Store(int64(-time.Hour))
		time.Sleep(time.Minute)
		now := time.Now()
		if took := now.Sub(began); took != time.Minute || time.Since(began) != time.Minute {
			t.Errorf("a minute takes %v and %v", took, time.Since(began))
		}
		if jumped := now.Round(0).Sub(began.Round(0)); jumped != -59*time.Minute {
			t.Errorf("the wall clock jumps by %v", jumped)
		}
		<-time.After(time.Until(now.Add(time.Minute)))
		if took := time.Since(began); took != 2*time.Minute {
			t.Errorf("a timer ends after %v", took)
		}
	})
}
