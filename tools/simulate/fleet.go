package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay/internal/run/fleet"
)

// redeliver is when the queue delivers an assignment again that nobody has taken out, and takeFor
// how long a worker waits for one.
const (
	redeliver = 30 * time.Second
	takeFor   = 5 * time.Second
)

var errNoNetwork = errors.New("no run can be reached")

// A hub is the network of one process.
type hub struct {
	life *life

	mu      sync.Mutex // guards the fields below
	answer  func(ctx context.Context, call string, body []byte) []byte
	ctx     context.Context
	queue   map[string]time.Time // when an assignment was delivered
	changed chan struct{}        // closed when there is another assignment
}

// hire opens the network of a process. Workers find it there.
func (l *life) hire() (fleet.Hub, error) {
	h := &hub{life: l, queue: make(map[string]time.Time), changed: make(chan struct{})}
	l.world.hub.Store(h)
	return h, nil
}

func (h *hub) Close() error {
	h.life.world.hub.CompareAndSwap(h, nil)
	return nil
}

func (h *hub) Serve(
	answer func(ctx context.Context, call string, body []byte) []byte,
) (func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer, h.ctx = answer, ctx
	return cancel, nil
}

func (h *hub) Offer(_ context.Context, assignment string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue[assignment] = time.Time{}
	close(h.changed)
	h.changed = make(chan struct{})
	return nil
}

// take delivers up to n assignments.
func (h *hub) take(n int) (ready []string, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, delivered := range h.queue {
		if time.Since(delivered) >= redeliver {
			ready = append(ready, id)
		}
	}
	slices.Sort(ready)
	ready = ready[:min(n, len(ready))]
	for _, id := range ready {
		h.queue[id] = time.Now()
	}
	return ready, h.changed
}

// A link is the network of a worker. It finds the process that runs, unless the worker stands still.
type link struct {
	*world
	name string
	dice dice
	mu   sync.Mutex // guards dice
}

// find returns the network. A worker that stands still sends and gets its messages later.
func (l *link) find() *hub {
	l.mu.Lock()
	lost := l.dice.IntN(100) == 0
	delay := time.Duration(l.dice.IntN(100)) * time.Millisecond
	l.mu.Unlock()
	time.Sleep(delay)
	for _, i := range l.items {
		if at := time.Since(l.began); i.Kind == "stall" && i.On == l.name && i.during(at) {
			l.later(i.At+i.For, func() {})
		}
	}
	if h := l.hub.Load(); h != nil && !lost && !h.life.isFrozen() {
		return h
	}
	return nil
}

func (l *link) Call(ctx context.Context, call string, body []byte) ([]byte, error) {
	h := l.find()
	if h == nil {
		return nil, errNoNetwork
	}
	h.mu.Lock()
	answer, serving := h.answer, h.ctx
	h.mu.Unlock()
	if answer == nil {
		return nil, errNoNetwork
	}
	replies := make(chan []byte, 1)
	go func() { replies <- answer(serving, call, body) }()
	select {
	case b := <-replies:
		if l.find() == h && b != nil { // otherwise the reply is lost
			return b, nil
		}
		return nil, errNoNetwork
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *link) Take(ctx context.Context, n int) ([]fleet.Delivery, error) {
	limit := time.NewTimer(takeFor)
	defer limit.Stop()
	for {
		h := l.find()
		if h == nil {
			return nil, errNoNetwork
		}
		ready, changed := h.take(n)
		var all []fleet.Delivery
		for _, id := range ready {
			all = append(all, delivery{h, id})
		}
		if len(all) > 0 {
			return all, nil
		}
		select {
		case <-changed:
		case <-limit.C:
			return nil, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

type delivery struct {
	hub *hub
	id  string
}

func (d delivery) Assignment() string { return d.id }

func (d delivery) Done() error {
	d.hub.mu.Lock()
	defer d.hub.mu.Unlock()
	delete(d.hub.queue, d.id)
	return nil
}

// work is a machine on which one worker follows the other until the world is over. Workers leave, some
// without a word.
func (w *world) work(n int) {
	name := fmt.Sprint("w", n)
	for life := 0; ; life++ {
		d := newDice(w.seed, uint64(2000+100*n+life))
		ctx, leave := context.WithCancel(context.Background())
		l := &link{world: w, name: name, dice: d}
		timer := time.AfterFunc(d.between(time.Minute, 100*time.Hour), leave)
		over := make(chan struct{})
		go func() {
			select {
			case <-w.finished:
				leave()
			case <-over:
			}
		}()
		o := fleet.WorkerOptions{
			ID: fmt.Sprint(name, ".", life), Name: name, Program: "simulate", Slots: 1 + d.IntN(30), Say: func(string) {},
		}
		if w.crew != nil {
			o.Agents = w.crew.at(nil)
		}
		err := fleet.NewWorker(l, o).Run(ctx)
		if err != nil && ctx.Err() == nil {
			w.violated("law 1: worker %s: %v", name, err)
		}
		timer.Stop()
		close(over)
		leave()
		select {
		case <-w.finished:
			return
		case <-time.After(time.Duration(d.IntN(60)) * time.Second):
		}
	}
}

// warm makes the coders that all connections share outside of every bubble, by a worker that is
// called by a long name and cannot read the answer.
var warm = sync.OnceFunc(func() {
	_ = fleet.NewWorker(deaf{}, fleet.WorkerOptions{
		Name: strings.Repeat("long", 1000), Say: func(string) {},
	}).Run(context.Background())
})

type deaf struct{}

func (deaf) Call(context.Context, string, []byte) ([]byte, error) { return []byte("z?"), nil }

func (deaf) Take(context.Context, int) ([]fleet.Delivery, error) { return nil, errNoNetwork }
