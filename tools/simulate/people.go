package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

// happen lets an item happen that somebody does.
func (w *world) happen(i *item) {
	switch i.Kind {
	case "pause":
		w.later(i.At, func() { w.order(session.Order{Do: "pause", Names: w.lanesOf(i.On)}) })
		w.later(i.At+i.For, func() { w.order(session.Order{Do: "resume", Names: w.lanesOf(i.On)}) })
	case "cancel":
		model := []string{w.names[i.N]}
		w.later(i.At, func() { w.order(session.Order{Do: "cancel", Names: model}) })
		w.later(i.At+i.For, func() { w.order(session.Order{Do: "requeue", Names: model}) })
	case "set":
		w.later(i.At, func() { w.set(i) })
	case "interrupt":
		w.later(i.At, func() { w.signal(i.For) })
		if i.N > 1 {
			w.later(i.At+i.For, func() { w.signal(0) })
		}
	case "clock":
		w.later(i.At, func() { w.setClock(i.By) })
	case "disk":
		w.later(i.At, w.setDisk)
		w.later(i.At+i.For, w.setDisk)
	case "suspend":
		w.later(i.At, func() { w.suspend(i) })
	case "second run":
		w.later(i.At, w.runBeside)
	}
}

// later waits until some time after the beginning. It does nothing if the world is over then.
func (w *world) later(at time.Duration, do func()) {
	timer := time.NewTimer(at - time.Since(w.began))
	defer timer.Stop()
	select {
	case <-timer.C:
		do()
	case <-w.finished:
	}
}

// lanesOf returns the names of the lanes of an endpoint, or nil for all.
func (w *world) lanesOf(endpoint string) (names []string) {
	for _, k := range keys[endpoint] {
		names = append(names, endpoint+"/"+k)
	}
	return names
}

// order gives an order to the run, as `assay ctl` does. There may be none. Who has paused or cancelled
// something and cannot take it back, because the disk is full, tries again.
func (w *world) order(o session.Order) {
	if o.Do == "cancel" {
		w.obeyed(o) // the run may end before it replies
	}
	for {
		reply, err := w.send(o)
		if err != nil {
			w.tell("%s: no run", o.Do)
			return
		}
		w.tell("%s %s: %.150s%s", o.Do, strings.Join(o.Names, " "), reply.Text, reply.Error)
		if reply.Error == "" {
			w.obeyed(o)
			return
		}
		if o.Do != "resume" && o.Do != "requeue" {
			return
		}
		select {
		case <-time.After(5 * time.Minute):
		case <-w.finished:
			return
		}
	}
}

// A pause is the time since the beginning in which the lanes of a process were paused.
type pause struct {
	began, ended time.Duration // the latter is 0 while it lasts
}

func (w *world) endPause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endPauseLocked()
}

func (w *world) endPauseLocked() {
	if n := len(w.pauses); n > 0 && w.pauses[n-1].ended == 0 {
		w.pauses[n-1].ended = time.Since(w.began)
	}
}

// obeyed notes when all lanes are paused, and of which models trials may be cancelled in the run that works.
func (w *world) obeyed(o session.Order) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case o.Do == "pause" && len(o.Names) == 0:
		w.endPauseLocked()
		w.pauses = append(w.pauses, pause{began: time.Since(w.began)})
	case o.Do == "resume": // also of some lanes
		w.endPauseLocked()
	}
	for _, model := range o.Names {
		switch o.Do {
		case "cancel":
			w.cancelled[model] = w.lives
		case "requeue":
			delete(w.cancelled, model)
		}
	}
}

// hasCancelled reports whether trials that the user has cancelled in this process are still cancelled.
func (w *world) hasCancelled() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, life := range w.cancelled {
		if life == w.lives {
			return true
		}
	}
	return false
}

func (w *world) send(o session.Order) (reply session.Reply, err error) {
	l := w.control.Load()
	if l == nil {
		return reply, errors.New("no run")
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: l.dial,
	}}
	body, err := json.Marshal(o)
	if err != nil {
		return reply, err
	}
	resp, err := client.Post("http://run/", "application/json", bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	defer resp.Body.Close()
	return reply, json.NewDecoder(resp.Body).Decode(&reply)
}

// set changes a limit of an endpoint's lanes.
func (w *world) set(i *item) {
	bucket := assay.Bucket(i.Style)
	o := session.Order{Do: "set", Names: w.lanesOf(i.On), Limits: map[assay.Bucket]int{bucket: i.N}}
	w.restated(i.On, bucket, i.N) // it holds before the reply arrives
	if reply, err := w.send(o); err != nil || reply.Error != "" {
		w.restate()
	}
	w.tell("set %s of %s to %d", i.Style, i.On, i.N)
}

// signal presses Ctrl-C. The run that gets it may be another one than before.
func (w *world) signal(time.Duration) {
	select {
	case w.signals <- os.Interrupt:
		w.tell("Ctrl-C")
	case <-time.After(time.Second):
	case <-w.finished:
	}
}

// runBeside starts a second run on the store, which must be refused while the first one works.
func (w *world) runBeside() {
	w.mu.Lock()
	path := w.path
	w.mu.Unlock()
	l := w.control.Load()
	if l == nil || l.isClosed() {
		return
	}
	db, err := store.Open(context.Background(), path)
	if err == nil {
		if !l.isClosed() {
			w.violated("law 1: two runs work on one store")
		}
		_ = db.Close()
	} else if !errors.Is(err, store.ErrInUse) && !w.has("disk") {
		w.violated("law 1: a second run: %v", err)
	}
}

// A listener takes connections in memory.
type listener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *listener) isClosed() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "simulated", Net: "unix"} }

func (l *listener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
