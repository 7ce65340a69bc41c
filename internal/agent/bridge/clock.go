package bridge

import (
	"sync"
	"time"
)

// A clock measures the time that an agent takes itself. It stands still while the agent waits for
// its model or a slow tool, so an endpoint that is slow or busy costs the agent no time.
type clock struct {
	mu      sync.Mutex
	left    time.Duration
	since   time.Time
	waiting int
	stopped bool
	timer   *time.Timer
}

func newClock(limit time.Duration, expired func()) *clock {
	c := &clock{left: limit, since: time.Now()}
	c.timer = time.AfterFunc(limit, expired)
	return c
}

// pause stops the clock until the function that it returns is called.
func (c *clock) pause() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting++; c.waiting == 1 {
		c.timer.Stop()
		c.left -= time.Since(c.since)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.waiting--; c.waiting == 0 && !c.stopped {
			c.since = time.Now()
			c.timer.Reset(max(c.left, 0))
		}
	}
}

func (c *clock) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	c.timer.Stop()
}
