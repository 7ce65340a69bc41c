package main

import (
	"sync/atomic"
	"time"
)

// ahead is by how many nanoseconds the wall clock of the simulated machine differs from virtual time.
// Timers and differences of times that were read in one process go by virtual time, which is its
// monotonic clock.
var ahead atomic.Int64

// A jump is a change of the wall clock.
type jump struct {
	at   time.Time
	by   time.Duration
	life int
}

// setClock changes the wall clock of the machine.
func (w *world) setClock(by time.Duration) {
	if !clockCanJump {
		w.tell("the clock cannot be set on this system")
		return
	}
	w.mu.Lock()
	w.jumps = append(w.jumps, jump{time.Now(), by, w.lives})
	w.mu.Unlock()
	ahead.Add(int64(by))
	w.tell("the wall clock is set by %v", by)
}

// suspend lets the machine stand still. Its monotonic clock stands still, too, as on Linux, so what the
// process notices is the wall clock, and what has become of its connections.
func (w *world) suspend(i *item) {
	w.tell("suspended")
	w.setClock(i.For)
	w.mu.Lock()
	close(w.asleep)
	w.asleep = make(chan struct{})
	w.mu.Unlock()
}

// sleep returns a channel that is closed when the machine is suspended the next time.
func (w *world) sleep() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asleep
}

// now is the time of the world's other machines.
func (w *world) now() time.Time { return w.began.Add(time.Since(w.began)) }

// forgets reports whether a process cannot know how long ago something was that happened in an earlier
// one, because the wall clock was set forward since.
func (w *world) forgets(then time.Time, life int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if life == w.lives {
		return false
	}
	for _, j := range w.jumps {
		if j.by > 0 && !j.at.Before(then) {
			return true
		}
	}
	return false
}
