package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/assay-eval/assay"
)

// liveWorld lives a world.
func liveWorld(t *testing.T, next *task) *result {
	replaceClock()
	warm()
	shape := drawShape(next.Seed)
	models(shape.plan)
	w := newWorld(t, next.Seed, shape)
	w.hireAgents()
	for n, i := range drawItems(next.Seed, next.Early) {
		if slices.Contains(next.Drop, n) {
			continue
		}
		w.items = append(w.items, i)
		w.result.Items = append(w.result.Items, fmt.Sprintf("%d: %v", n, i))
		if i.Kind == "kill" {
			w.kills = append(w.kills, i)
		}
	}
	return w.lived()
}

func newWorld(t *testing.T, seed uint64, s shape) *world {
	w := &world{
		shape: s, t: t, seed: seed, clock: new(atomic.Int64), edges: make(map[string]int),
		shown: make(map[assay.TrialID]string), cancelled: make(map[string]int),
	}
	w.result.Seed = seed
	w.result.Items = []string{fmt.Sprintf("plan %d %q, request limit %v, workers %d, budget %.3f, save %s, agent %q, protocols %v, lanes %+v",
		s.plan, extras[s.more], s.request, s.workers, s.budget, s.save, s.agent, s.protocol, s.lanes)}
	return w
}

// lived lives a world, and measures that.
func (w *world) lived() *result {
	dir, err := os.MkdirTemp("", "world")
	if err != nil {
		w.violated("%v", err)
		return &w.result
	}
	defer os.RemoveAll(dir)
	w.dir = dir
	if err := errors.Join(w.write(), w.rehearse()); err != nil {
		w.violated("the world cannot begin: %v", err)
		return &w.result
	}
	stop := make(chan struct{})
	var watchdog sync.WaitGroup
	watchdog.Go(func() { w.watch(stop) })
	began := cpu()
	w.run()
	w.result.CPU, w.result.Lives, w.result.Requests = cpu()-began, w.lives, w.asked()
	close(stop)
	watchdog.Wait()
	return &w.result
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// maxStill is how much CPU the process may use while virtual time stands still.
const maxStill = 20 * time.Second

// watch ends the process if virtual time stands still.
func (w *world) watch(stop <-chan struct{}) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for at, since := int64(-1), cpu(); ; {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		if now := w.clock.Load(); now != at {
			at, since = now, cpu()
		} else if cpu()-since > maxStill {
			fmt.Fprintf(os.Stderr, "law 5: virtual time stands still at %v\n%s", time.Duration(at), stacks())
			os.Exit(2)
		}
	}
}

// wakes counts the wake-ups of goroutines up to some time, and what may have caused them. over says that there
// were more than that in the last span.
type wakes struct {
	at             time.Time
	n              uint64
	requests, life int
	over           bool
	asked          time.Time // when the latest request had arrived
}

// In each wakeSpan of virtual time, goroutines may wake up so often: a process that waits has some
// tickers, and each request and each start of a process has its steps. Once, they may wake up wakesBusy times as
// often: whoever waits for a mutex of SQLite yields again and again for as long as the real machine keeps its
// holder from working, which no virtual time shows.
const (
	wakeSpan    = 10 * time.Minute
	wakesIdle   = 150_000
	wakesAsking = 2_000
	wakesStart  = 50_000
	wakesBusy   = 10
)

// A run that asks for nothing for so long waits for something that never comes. Outages last two days.
const longestSilence = 4 * 24 * time.Hour

func (w *world) countWakes() (c wakes) {
	c.at = time.Now()
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	for _, n := range s[0].Value.Float64Histogram().Counts {
		c.n += 8 * n // the runtime looks at every eighth
	}
	c.requests = w.asked()
	w.mu.Lock()
	c.life = w.lives
	w.mu.Unlock()
	return c
}

// asked returns how many requests have reached the endpoints.
func (w *world) asked() (n int) {
	for _, e := range w.ends {
		e.mu.Lock()
		n += e.bill.Requests
		e.mu.Unlock()
	}
	return n
}

// checkWakes ends the process if goroutines woke up too often since before, because the world would
// hardly come to an end.
func (w *world) checkWakes(before wakes) wakes {
	now := w.countWakes()
	if now.asked = now.at; now.requests == before.requests && now.life == before.life {
		now.asked = before.asked
	}
	if silence := now.at.Sub(now.asked); silence > longestSilence {
		w.mu.Lock()
		story := strings.Join(w.result.Story, "\n")
		w.mu.Unlock()
		fmt.Fprintf(os.Stderr, "law 1: a run asks for nothing for %v and does not end\n%s\n%s", silence, story, stacks())
		os.Exit(2)
	}
	n, spans := int(now.n-before.n), int(now.at.Sub(before.at)/wakeSpan)
	most := spans*wakesIdle + (now.requests-before.requests)*wakesAsking + (now.life-before.life)*wakesStart
	now.over = n > most
	if now.over && (before.over || n > wakesBusy*most) {
		fmt.Fprintf(os.Stderr, "law 5: goroutines woke up %d times within %v up to %v, in which there were %d requests\n%s",
			n, now.at.Sub(before.at), time.Duration(w.clock.Load()), now.requests-before.requests, stacks())
		os.Exit(2)
	}
	return now
}

// stacks returns the stacks of goroutines that work.
func stacks() string {
	b := make([]byte, 1<<20)
	b = b[:runtime.Stack(b, true)]
	var all []string
	for _, s := range strings.Split(string(b), "\n\n") {
		head, _, _ := strings.Cut(s, "\n")
		if !strings.Contains(head, "durable") {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n\n")
}
