package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// TestWaitingIsSaid checks that a person who waits hears what for, and nothing of a short wait.
func TestWaitingIsSaid(t *testing.T) {
	t.Parallel()
	for waits, want := range map[time.Duration]string{
		9 * time.Second: "",
		25 * time.Second: "waiting for m for 10s; it may be slow, or refuse requests because of its limits\n" +
			"waiting for m for 20s; it may be slow, or refuse requests because of its limits\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			over := (&process{err: &said}).sayWaiting("waiting for m")
			time.Sleep(waits)
			over()
			if said.String() != want {
				t.Errorf("after %v: %q, want %q", waits, said.String(), want)
			}
		})
	}
}
