package store

import (
	"runtime"
	"sync/atomic"
)

// mostAtTurnstile is how many attempts may wait to be encoded. More than that pass at once, because
// they take memory while they wait.
const mostAtTurnstile = 256

// A turnstile lets some attempts at a time be encoded, each after whatever else can run then. When
// hundreds of replies arrive together, the replies and the attempts that begin in their places come
// first, which keeps lanes full.
type turnstile struct {
	inside  chan struct{}
	waiting atomic.Int32
}

// newTurnstile returns a turnstile for n attempts at a time.
func newTurnstile(n int) turnstile { return turnstile{inside: make(chan struct{}, n)} }

// pass waits for its turn. leave lets the next one in.
func (t *turnstile) pass() (leave func()) {
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > mostAtTurnstile {
		return func() {}
	}
	t.inside <- struct{}{}
	runtime.Gosched()
	return func() { <-t.inside }
}
