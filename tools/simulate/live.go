package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/assay-eval/assay"
)

// liveWorld lives the world of a seed, without the items that are dropped.
func liveWorld(t *testing.T, seed uint64, dropped map[int]bool) *result {
	warm()
	compareWith(t, drawShape(seed).plan)
	w := newWorld(t, seed, drawShape(seed))
	for n, i := range drawItems(seed) {
		if !dropped[n] {
			w.items = append(w.items, i)
			w.result.Items = append(w.result.Items, fmt.Sprintf("%d: %v", n, i))
		}
		if !dropped[n] && i.Kind == "kill" {
			w.kills = append(w.kills, i)
		}
	}
	return w.lived()
}

func newWorld(t *testing.T, seed uint64, s shape) *world {
	w := &world{
		shape: s, t: t, seed: seed, clock: new(atomic.Int64), edges: make(map[string]int),
		shown: make(map[assay.TrialID]string), raised: 1,
	}
	w.result.Seed = seed
	w.result.Items = []string{fmt.Sprintf("plan %d, request limit %v, hedge %t, workers %d, protocols %v, lanes %+v",
		s.plan, s.request, s.hedge, s.workers, s.protocol, s.lanes)}
	return w
}

// lived lives a world, and measures that.
func (w *world) lived() *result {
	dir, err := os.MkdirTemp(w.scratch(), "world")
	if err != nil {
		w.violated("%v", err)
		return &w.result
	}
	defer os.RemoveAll(dir)
	w.dir = dir
	stop := make(chan struct{})
	var watchdog sync.WaitGroup
	watchdog.Go(func() { w.watch(stop) })
	began := cpu()
	w.run()
	w.result.CPU, w.result.Lives = cpu()-began, w.lives
	close(stop)
	watchdog.Wait()
	return &w.result
}

// scratch is a directory in memory, if there is one: a simulated machine needs no disk.
func (w *world) scratch() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return ""
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// mostStill is how much CPU the process may use while virtual time stands still.
const mostStill = 20 * time.Second

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
		} else if cpu()-since > mostStill {
			b := make([]byte, 1<<20)
			b = b[:runtime.Stack(b, true)]
			fmt.Fprintf(os.Stderr, "law 5: virtual time stands still at %v\n%s", time.Duration(at), running(string(b)))
			os.Exit(2)
		}
	}
}

// wakes counts the wake-ups of goroutines up to some time, and what may have caused them.
type wakes struct {
	at             time.Time
	n              uint64
	requests, life int
}

// In each wakeSpan of virtual time, goroutines may wake up so often: a process that waits has some
// tickers, and each request and each start of a process has its steps.
const (
	wakeSpan    = 10 * time.Minute
	wakesIdle   = 150_000
	wakesAsking = 2_000
	wakesStart  = 50_000
)

func (w *world) countWakes() (c wakes) {
	c.at = time.Now()
	s := []metrics.Sample{{Name: "/sched/latencies:seconds"}}
	metrics.Read(s)
	for _, n := range s[0].Value.Float64Histogram().Counts {
		c.n += 8 * n // the runtime looks at every eighth
	}
	for _, e := range w.ends {
		e.mu.Lock()
		c.requests += e.bill.Requests
		e.mu.Unlock()
	}
	w.mu.Lock()
	c.life = w.lives
	w.mu.Unlock()
	return c
}

// checkWakes ends the process if goroutines woke up too often since before, because the world would
// hardly come to an end.
func (w *world) checkWakes(before wakes) wakes {
	now := w.countWakes()
	n, spans := int(now.n-before.n), int(now.at.Sub(before.at)/wakeSpan)
	most := spans*wakesIdle + (now.requests-before.requests)*wakesAsking + (now.life-before.life)*wakesStart
	if n > most {
		fmt.Fprintf(os.Stderr, "law 5: goroutines woke up %d times within %v, in which there were %d requests\n",
			n, now.at.Sub(before.at), now.requests-before.requests)
		os.Exit(2)
	}
	return now
}

// running returns the stacks of goroutines that work.
func running(stacks string) string {
	var all []string
	for _, s := range strings.Split(stacks, "\n\n") {
		head, _, _ := strings.Cut(s, "\n")
		if !strings.Contains(head, "durable") {
			all = append(all, s)
		}
	}
	return strings.Join(all, "\n\n")
}

// calm has the outcomes of undisturbed worlds, by their plan.
var calm = make(map[int]map[assay.TrialID]string)

// compareWith lives the calm world of a plan, unless it is known.
func compareWith(t *testing.T, plan int) {
	if calm[plan] != nil {
		return
	}
	w := newWorld(t, 1, shape{
		plan: plan, request: time.Minute, protocol: map[string]string{"a": "openai", "b": "openai"},
		lanes: []laneShape{{endpoint: "a"}, {endpoint: "b"}},
	})
	w.calm = true
	r := w.lived()
	for _, wrong := range r.Wrong {
		t.Errorf("undisturbed: %s", wrong)
	}
	calm[plan] = r.outcomes
}

func joined(all []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ","), "[]")
}
