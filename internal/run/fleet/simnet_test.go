package fleet

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

type atomicMost struct{ n atomic.Int64 }

func (a *atomicMost) add(n int64) int64 { return a.n.Add(n) }

// A trouble is a time when a machine is cut off or stands still.
type trouble struct{ from, to time.Time }

const (
	parted = iota
	stopped
)

// inTrouble returns the end of a trouble that a machine is in, or the zero time.
func (w *world) inTrouble(kind, place int) time.Time {
	w.mu.Lock()
	if w.troubles[kind] == nil {
		w.troubles[kind] = make([]trouble, simWorkers)
		for i := range simWorkers {
			r := rand.New(rand.NewPCG(w.seed, uint64(1000*kind+i)))
			from := w.start.Add(time.Duration(r.Int64N(int64(simTrouble))))
			w.troubles[kind][i] = trouble{from, from.Add(time.Duration(r.Int64N(int64(3 * simLease))))}
		}
	}
	x := w.troubles[kind][place]
	w.mu.Unlock()
	if now := time.Now(); now.After(x.from) && now.Before(x.to) && now.Before(w.calm) {
		return x.to
	}
	return time.Time{}
}

// fate returns the delays after which the copies of a message arrive.
func (w *world) fate(what string) []time.Duration {
	d := w.dice(what)
	delay := func() time.Duration { return 50*time.Microsecond + time.Duration(d.Int64N(5_000_000)) }
	if w.isCalm() {
		return []time.Duration{delay()}
	}
	switch d.IntN(50) {
	case 0:
		w.happened("message lost")
		return nil
	case 1, 2:
		w.happened("message doubled")
		return []time.Duration{delay(), delay() + time.Duration(d.Int64N(int64(2*simLease)))}
	case 3, 4:
		w.happened("message late")
		return []time.Duration{time.Duration(d.Int64N(int64(2 * simLease)))}
	}
	return []time.Duration{delay()}
}

// A simHub is the network as a run sees it, with its queue.
type simHub struct {
	world  *world
	dead   <-chan struct{}
	answer func(ctx context.Context, call string, body []byte) []byte
	ctx    context.Context

	mu          sync.Mutex
	assignments map[string]*simAssignment
	changed     chan struct{} // closed when there is another assignment
}

// A simAssignment is in the queue until it is done.
type simAssignment struct{ delivered time.Time }

func (h *simHub) Close() error { return nil }

func (h *simHub) Serve(
	answer func(ctx context.Context, call string, body []byte) []byte,
) (func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	h.answer, h.ctx = answer, ctx
	return cancel, nil
}

func (h *simHub) Offer(ctx context.Context, assignment string) error {
	copies := h.world.fate("offer " + assignment)
	if len(copies) == 0 {
		return errors.New("lost")
	}
	select {
	case <-time.After(copies[0]): // the queue has an assignment once
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.world.isCalm() && h.world.dice("assignment "+assignment).IntN(30) == 0 {
		h.world.happened("assignment lost")
		return nil
	}
	h.assignments[assignment] = &simAssignment{}
	close(h.changed)
	h.changed = make(chan struct{})
	return nil
}

// take delivers up to n assignments.
func (h *simHub) take(n int) (assignments []string, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ready []string
	for id, o := range h.assignments {
		if time.Since(o.delivered) >= ackWait {
			ready = append(ready, id)
		}
	}
	slices.Sort(ready)
	ready = ready[:min(n, len(ready))]
	for _, id := range ready {
		h.assignments[id].delivered = time.Now()
	}
	return ready, h.changed
}

// A simLink is the network as a worker sees it.
type simLink struct {
	world *world
	place int
	name  string
	dead  <-chan struct{}
}

func (l *simLink) isDead() bool {
	select {
	case <-l.dead:
		return true
	default:
		return false
	}
}

// pass lets a message through after a while. It returns the run that is there then, or nil if the
// message is lost.
func (l *simLink) pass(after time.Duration) *simHub {
	time.Sleep(after)
	if to := l.world.inTrouble(stopped, l.place); !to.IsZero() {
		l.world.happened("stopped")
		time.Sleep(time.Until(to) + after%time.Millisecond)
	}
	if !l.world.inTrouble(parted, l.place).IsZero() {
		l.world.happened("parted")
		return nil
	}
	l.world.mu.Lock()
	defer l.world.mu.Unlock()
	if l.isDead() {
		return nil
	}
	return l.world.hub
}

func (l *simLink) Call(ctx context.Context, call string, body []byte) ([]byte, error) {
	h := fnv.New64a()
	_, _ = h.Write(body)
	what := fmt.Sprint(l.name, call, h.Sum64())
	what += fmt.Sprint(" ", l.world.count(what))
	replies := make(chan []byte, 8)
	for copied, after := range l.world.fate(what) {
		l.world.messages.Go(func() {
			h := l.pass(after)
			if h == nil {
				return
			}
			b := h.answer(h.ctx, call, body)
			if b == nil || h.ctx.Err() != nil {
				return
			}
			for _, after := range l.world.fate(fmt.Sprint("re ", what, copied)) {
				l.world.messages.Go(func() {
					if l.pass(after) != nil {
						replies <- b
					}
				})
			}
		})
	}
	select {
	case b := <-replies:
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.dead:
		return nil, errors.New("dead")
	}
}

func (l *simLink) Take(ctx context.Context, n int) ([]Delivery, error) {
	limit := time.NewTimer(pullTimeout)
	defer limit.Stop()
	for {
		h := l.pass(time.Duration(1 + l.world.dice("take "+l.name).Int64N(1_000_000)))
		if h == nil {
			return nil, errors.New("no queue")
		}
		assignments, changed := h.take(n)
		if len(assignments) > 0 {
			return l.deliver(h, assignments), nil
		}
		select {
		case <-changed:
		case <-limit.C:
			return nil, nil
		case <-h.dead:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-l.dead:
			return nil, errors.New("dead")
		}
	}
}

func (l *simLink) deliver(h *simHub, assignments []string) (deliveries []Delivery) {
	for _, id := range assignments {
		if len(l.world.fate("deliver "+l.name+id)) > 0 {
			deliveries = append(deliveries, &simTicket{l, h, id})
		}
	}
	return deliveries
}

type simTicket struct {
	link *simLink
	hub  *simHub
	id   string
}

func (t *simTicket) Assignment() string { return t.id }

func (t *simTicket) Done() error {
	for range t.link.world.fate("done " + t.link.name + t.id) {
		t.hub.mu.Lock()
		delete(t.hub.assignments, t.id)
		t.hub.mu.Unlock()
	}
	return nil
}
