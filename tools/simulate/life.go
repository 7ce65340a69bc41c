package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store/storetest"
)

var errKilled = errors.New("the process was killed")

// A life is a process that runs the experiment. A kill freezes it at its edges, at which it talks to
// the world, until everything else in it waits. What is on disk then is copied for the next life, and
// the dead one sees that it was stopped. Its last acts reach nobody.
type life struct {
	*world
	dir    string
	number int
	start  time.Time
	disk   *storetest.Disk // nil unless it may fail
	cancel context.CancelCauseFunc
	armed  chan struct{} // receives a value when the process is to be killed now
	over   chan struct{} // closed when the process has ended by itself
	thawed chan struct{} // closed when a dead process may see that

	mu           sync.Mutex // guards the fields below
	frozen       bool
	sick         bool    // its disk has failed
	next         string  // the directory of the next life, after a kill
	usd, lostUSD float64 // billed, and the part of it whose replies nobody could read
	// dearest is the most that a request was billed, asking how many are in flight, and crowd how many were
	// at most.
	dearest float64
	asking  int
	crowd   int
	trials  int // in flight together, at most
	// counted has the dollars that the run knows of, with what lost replies may have cost, and spent is when that
	// was the budget.
	counted float64
	spent   time.Time
	looked  time.Time
}

func (w *world) newLife(dir string, cancel context.CancelCauseFunc) *life {
	return &life{
		world: w, dir: dir, number: w.lives, start: time.Now(), cancel: cancel, armed: make(chan struct{}, 1),
		over: make(chan struct{}), thawed: make(chan struct{}),
	}
}

// edge is called at each edge. It returns false if the process is dead.
func (l *life) edge(kind string) bool {
	if l.world.killsAt(kind) {
		l.freeze()
		select {
		case l.armed <- struct{}{}:
		default:
		}
	}
	if l.isFrozen() {
		<-l.thawed
		return false
	}
	return true
}

func (l *life) isFrozen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.frozen
}

func (l *life) freeze() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = true
}

// await kills the process when it is time, unless it ends before.
func (l *life) await() {
	timer := time.NewTimer(l.world.nextKill())
	defer timer.Stop()
	select {
	case <-l.over:
		return
	case <-timer.C:
		l.freeze()
		l.world.killedByClock()
	case <-l.armed:
	}
	synctest.Wait() // everything else is at an edge or waits
	l.world.tell("killed")
	next := filepath.Join(filepath.Dir(l.dir), "life"+l.world.countLife())
	if err := copyFiles(l.dir, next); err != nil {
		l.violated("copy the store: %v", err)
	}
	l.world.hub.Store(nil)
	for _, e := range l.world.ends {
		e.forget(l)
	}
	if l.crew != nil {
		l.crew.killed(l)
	}
	l.mu.Lock()
	l.next = next
	l.mu.Unlock()
	l.cancel(errKilled)
	close(l.thawed)
}

func copyFiles(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	all, err := os.ReadDir(from)
	for _, f := range all {
		if !f.Type().IsRegular() || strings.HasSuffix(f.Name(), "-shm") {
			continue
		}
		var b []byte
		if b, err = os.ReadFile(filepath.Join(from, f.Name())); err == nil {
			err = os.WriteFile(filepath.Join(to, f.Name()), b, 0o644)
		}
		if err != nil {
			break
		}
	}
	return err
}

// RoundTrip implements [http.RoundTripper].
func (l *life) RoundTrip(r *http.Request) (*http.Response, error) {
	dead := &net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}
	if !l.edge("sent") {
		return nil, dead
	}
	name, _, _ := strings.Cut(r.URL.Host, ".")
	l.asks(1)
	l.checkSpent()
	resp, err := l.ends[name].serve(l, r)
	l.asks(-1)
	if !l.edge("answered") {
		return nil, dead
	}
	return resp, err
}

func (l *life) billed(usd float64, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.usd += usd
	if lost {
		l.lostUSD += usd
	}
	l.dearest = max(l.dearest, usd)
}

// counts adds dollars that the run knows of.
func (l *life) counts(usd float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.counted += usd; l.spent.IsZero() && l.budget > 0 && l.counted > l.budget+1e-6 {
		l.spent = time.Now()
	}
}

func (l *life) asks(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking += n
	l.crowd = max(l.crowd, l.asking)
}

func (l *life) sees(p *terminal.Progress) {
	n := 0
	for _, m := range p.Models {
		n += m.InFlight
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trials = max(l.trials, n)
}

// watcher follows a run. It implements [session.Observer] and [session.Display].
type watcher struct {
	*life
	live session.Live
}

func (w *watcher) Start(session.Start) {}
func (w *watcher) Stopping()           {}
func (w *watcher) NoLog(string)        {}

func (w *watcher) Begin(_ session.Start, run session.Live) { w.live = run }

func (w *watcher) Request(x lane.Exchange) {
	w.counts(x.CostUSD + x.Lost.USD)
	w.look()
	w.edge("counted")
}

// look counts the trials in flight, if that matters. A look a minute would miss some, and one for each
// request would take a tenth of the time.
func (w *watcher) look() {
	w.mu.Lock()
	due := w.budget > 0 && time.Since(w.looked) >= 3*time.Second
	if due {
		w.looked = time.Now()
	}
	w.mu.Unlock()
	if due {
		p := w.live.Progress()
		w.sees(&p)
	}
}

func (w *watcher) Attempt(e session.Episode) {
	w.look()
	if w.edge("saved") {
		w.settled(e.Attempt)
	}
}

func (w *watcher) End(*session.Summary) {}

// Show reads the progress of a run, as a display does.
func (w *watcher) Show(ctx context.Context, run session.Live) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p := run.Progress()
			w.sees(&p)
			if !w.isFrozen() {
				w.world.checkProgress(&p)
			}
		case <-ctx.Done():
			return
		}
	}
}
