package fleet

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

// An assignment is an attempt that some worker carries out. Its fields from begun on are guarded by
// the coordinator's lock.
type assignment struct {
	id       string
	trial    *assay.Trial
	task     *assay.Task
	provider assay.Provider
	ctx      context.Context // of the attempt
	cancel   func()
	asking   sync.WaitGroup // requests in flight

	// begun counts the tokens given out. token is the latest one, and try the delivery that got it,
	// by a worker with this ID and name.
	begun int
	// lost counts the workers that were lost while they worked on it, and not only waited for a model.
	lost         int
	token        string
	try          string
	worker, name string
	seen         time.Time // when the worker was last heard to work on it
	// offered is when the assignment was put into the queue; offering is true while that goes on.
	offered  time.Time
	offering bool

	asked map[int]*asked // the requests of the worker, by number
	gone  int            // the replies to requests with lower numbers have arrived

	result    *attemptResult
	fault     *assay.Fault
	finished  chan struct{} // closed with result or fault
	concluded chan struct{} // closed when the worker may forget it
}

// A Rewinder is a provider that keeps the replies of an attempt. Rewind is called when another worker
// begins the attempt again, whose requests then get the same replies.
type Rewinder interface {
	assay.Provider
	Rewind()
}

// An asked is a request of an attempt to its model. Its reply is set when done is closed.
type asked struct {
	done     chan struct{}
	cancel   context.CancelFunc
	response *assay.Response
	err      error
}

// over reports whether the attempt has ended.
func (o *assignment) over() bool { return o.result != nil || o.fault != nil }

// inHand reports whether a worker holds the assignment and was heard not long ago.
func (o *assignment) inHand(now time.Time, silence time.Duration) bool {
	return o.begun > 0 && now.Sub(o.seen) < silence
}

// lose notes that the worker that holds the assignment does not carry it out. If it was lost while it
// had all replies, the attempt may be what brought it down.
func (o *assignment) lose() {
	for _, a := range o.asked {
		select {
		case <-a.done:
		default:
			return
		}
	}
	o.lost++
}

func (o *assignment) finish(r *attemptResult) {
	o.result = r
	close(o.finished)
}

func (o *assignment) fail(f *assay.Fault) {
	if !o.over() {
		o.fault = f
		close(o.finished)
	}
}

// end ends all requests of the attempt.
func (o *assignment) end() {
	o.cancel()
	o.asking.Wait()
}

// hand gives the assignment to a delivery, and ends the requests of the one before.
func (o *assignment) hand(m *member, try string, now time.Time) {
	for _, a := range o.asked {
		a.cancel()
	}
	if r, ok := o.provider.(Rewinder); ok && o.begun > 0 {
		r.Rewind()
	}
	o.begun++
	o.token = rand.Text()
	o.worker, o.name, o.try, o.seen = m.Worker, m.Name, try, now
	o.gone, o.asked = 0, make(map[int]*asked)
}

// ask sends a request to the model, unless it was sent before. It returns nil if the reply has
// arrived already.
func (o *assignment) ask(c *chat) *asked {
	for n, a := range o.asked {
		if n < c.Seen {
			delete(o.asked, n)
			a.cancel()
		}
	}
	o.gone = max(o.gone, c.Seen)
	if a := o.asked[c.N]; a != nil || c.N < o.gone || c.GivenUp || c.Again {
		if a != nil && c.GivenUp {
			a.cancel()
		}
		return a
	}
	a := &asked{done: make(chan struct{}), response: new(assay.Response)}
	ctx, cancel := context.WithCancel(o.ctx)
	a.cancel = cancel
	o.asked[c.N] = a
	o.asking.Go(func() {
		defer close(a.done)
		defer func() {
			if v := recover(); v != nil {
				a.err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			}
		}()
		a.response, a.err = o.provider.Chat(ctx, &c.Request)
	})
	return a
}
