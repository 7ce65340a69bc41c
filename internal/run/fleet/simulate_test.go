package fleet

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
)

// TestSimulation runs whole experiments in virtual time: the engine, a lane, the coordinator and
// three workers, over a network that loses, delays, reorders and doubles messages. Workers and runs
// are killed or stand still, the network parts, the queue forgets, disks are full and clocks are
// wrong. Then the faults stop.
//
// Checked after every event: no trial is settled twice, every verdict is the one that its trial
// must get, no lane has more requests than its limit, no request is sent twice, no two attempts at
// a trial ask at once, no worker has more attempts than slots, and times are by the run's clock. In
// the end, every trial is settled soon.
//
// A seed decides the fate of messages, machines and disks. The scheduler decides the order of
// goroutines that act at the same moment.
//
// ASSAY_FLEET_SEEDS sets the number of seeds, each with a hundred trials.
func TestSimulation(t *testing.T) {
	t.Parallel()
	seeds := 30
	if testing.Short() {
		seeds = 10
	}
	if text := os.Getenv("ASSAY_FLEET_SEEDS"); text != "" {
		var err error
		if seeds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	var all happenings
	for seed := range seeds {
		s := simulate(t, uint64(seed), 100)
		all.add(&s.happenings)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d seeds: %+v", seeds, all.numbers())
	all.checkEverythingHappened(t)
}

// happenings count the events of a simulation.
type happenings struct {
	mu     sync.Mutex
	counts map[string]int
}

func (h *happenings) happened(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts = make(map[string]int)
	}
	h.counts[what]++
}

func (h *happenings) numbers() map[string]int { return h.counts }

func (h *happenings) add(other *happenings) {
	for what, n := range other.counts {
		for range n {
			h.happened(what)
		}
	}
}

// checkEverythingHappened makes sure that the simulation tests all that it claims to test.
func (h *happenings) checkEverythingHappened(t *testing.T) {
	t.Helper()
	for _, what := range []string{
		"settled", "fault", "message lost", "message doubled", "message late", "assignment lost",
		"worker killed", "run killed", "disk full", "parted", "stopped", "begun again",
	} {
		if h.counts[what] == 0 {
			t.Errorf("in no seed: %s", what)
		}
	}
}

// A world is a simulated experiment on simulated machines.
type world struct {
	t      *testing.T
	seed   uint64
	start  time.Time
	calm   time.Time // when faults stop
	trials []assay.Trial
	happenings
	messages sync.WaitGroup // on their way

	mu       sync.Mutex
	nth      map[string]uint64
	settled  map[assay.TrialID]bool
	hub      *simHub         // nil while no run works
	flying   map[string]int  // requests at the endpoint, by trial
	sent     map[string]bool // requests that the endpoint ever got
	troubles [2][]trouble    // by worker: times when it is parted or stands still
}

const (
	simWorkers = 3
	simSlots   = 8
	simLimit   = 10 // requests of the lane
	simLease   = 10 * time.Second
	simTrouble = 2 * time.Minute // before the calm
	// simEnd is how long it may take after the calm.
	simEnd = 5 * time.Minute
)

func simulate(t *testing.T, seed uint64, trials int) *world {
	t.Helper()
	w := &world{
		t: t, seed: seed, nth: make(map[string]uint64), settled: make(map[assay.TrialID]bool),
		flying: make(map[string]int), sent: make(map[string]bool),
	}
	for i := range trials {
		w.trials = append(w.trials, assay.Trial{
			ID:   assay.TrialID(fmt.Sprintf("%08x", uint64(i)*2654435761%(1<<32))),
			Cell: assay.Cell{Model: "m"}, Seed: uint64(i),
		})
	}
	synctest.Test(t, func(t *testing.T) {
		w.start = time.Now()
		w.calm = w.start.Add(simTrouble)
		w.live()
	})
	return w
}

// dice returns random numbers that depend on the seed, on the time, and on their purpose. They do
// not depend on the order in which goroutines run.
func (w *world) dice(what string) *rand.Rand {
	h := fnv.New64a()
	what = fmt.Sprint(time.Since(w.start), " ", what)
	fmt.Fprint(h, what, w.count(what))
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// count counts how often something was asked for.
func (w *world) count(what string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nth[what]++
	return w.nth[what]
}

func (w *world) isCalm() bool { return time.Now().After(w.calm) }

// live lets workers and runs come and go until everything is settled.
func (w *world) live() {
	everything := make(chan struct{})
	var workers sync.WaitGroup
	for i := range simWorkers {
		workers.Go(func() { w.machine(i, everything) })
	}
	for n := 1; !w.complete(); n++ {
		if time.Since(w.calm) > simEnd {
			w.t.Errorf("seed %d: %d of %d trials are settled %v after the last fault",
				w.seed, len(w.settled), len(w.trials), simEnd)
			break
		}
		w.runOnce(n)
		time.Sleep(time.Duration(w.dice("restart").Int64N(int64(15 * time.Second))))
	}
	close(everything)
	workers.Wait()
	w.messages.Wait()
}

func (w *world) complete() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.settled) == len(w.trials)
}

// runOnce carries out one run, from its start to its end or its death.
func (w *world) runOnce(n int) {
	ctx, kill := context.WithCancel(context.Background())
	defer kill()
	h := &simHub{
		world: w, assignments: make(map[string]*simAssignment), changed: make(chan struct{}), dead: ctx.Done(),
	}
	wake := make(chan struct{}, 1)
	wakeUp := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	pool := lane.NewPool("m", []lane.Config{{
		Name: "lane", Provider: endpoint{w}, Orders: "m",
		Limits: lane.Limits{Concurrency: simLimit},
	}}, lane.Options{Wake: wakeUp})
	run := assay.RunID(fmt.Sprint("run", n))
	coordinator, err := NewCoordinator(h, CoordinatorOptions{
		Job: Job{Experiment: "sim", Run: run}, Program: "v1", Lease: simLease, Changed: wakeUp,
	})
	if err != nil {
		w.t.Error(err)
		return
	}
	w.setHub(h)
	if d := w.dice("life of a run"); !w.isCalm() && d.IntN(2) == 0 {
		timer := time.AfterFunc(time.Duration(d.Int64N(int64(simTrouble))), func() {
			if !w.isCalm() {
				w.happened("run killed")
				w.setHub(nil) // it is unreachable
				kill()
			}
		})
		defer timer.Stop()
	}
	late := time.AfterFunc(time.Until(w.calm.Add(simEnd)), func() {
		w.t.Errorf("seed %d: the run does not end", w.seed)
		kill()
	})
	defer late.Stop()
	began := time.Now()
	_, err = engine.Run(ctx, nil, engine.Config{
		Models: []engine.Model{{
			Name: "m", Pending: w.pending(), Admit: pool.Admit, Most: coordinator.Slots, Closed: pool.Closed,
			Exhausted: pool.Exhausted, Hopeful: func() bool { return pool.Hopeful() || coordinator.Waits() },
			Latest: time.Now,
		}},
		Wake: wake,
		Attempt: func(ctx context.Context, trial *assay.Trial) (*assay.Attempt, *assay.Transcript) {
			a, tr := coordinator.Run(ctx, pool, trial, &assay.Task{})
			a.Run = run
			return a, tr
		},
		Save: func(_ context.Context, a *assay.Attempt, _ *assay.Transcript) error {
			defer coordinator.Conclude(a.ID)
			return w.save(ctx, a, began)
		},
		Event: func(e engine.Event) {
			if e.Kind == engine.Dropped {
				coordinator.Conclude(e.Trial.ID)
			}
		},
		MaxSilence: time.Minute,
	})
	if err != nil && !errors.Is(err, errDisk) && ctx.Err() == nil {
		w.t.Error(err)
	}
	if coordinator.tokens() > 0 {
		w.happened("begun again")
	}
	coordinator.Close()
	w.setHub(nil)
}

func (w *world) setHub(h *simHub) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hub = h
}

// tokens counts how often assignments were begun more than once, among those that the coordinator
// still has.
func (d *Coordinator) tokens() int { return int(d.begunAgain.Load()) }

func (w *world) pending() iter.Seq[assay.Trial] {
	return func(yield func(assay.Trial) bool) {
		for _, t := range w.trials {
			w.mu.Lock()
			done := w.settled[t.ID]
			w.mu.Unlock()
			if !done && !yield(t) {
				return
			}
		}
	}
}

var errDisk = errors.New("no space left on device")

// save is the disk. The attempts that it accepts are there after the death of the run.
func (w *world) save(run context.Context, a *assay.Attempt, began time.Time) error {
	time.Sleep(time.Duration(w.dice("disk " + string(a.ID)).Int64N(int64(20 * time.Millisecond))))
	if run.Err() != nil {
		return run.Err() // the process is dead
	}
	if !w.isCalm() && w.dice("full disk "+string(a.ID)).IntN(100) == 0 {
		w.happened("disk full")
		return errDisk
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case a.Check() != nil:
		w.t.Errorf("trial %s: %v", a.ID, a.Check())
	case a.StartedAt.Before(began.Add(-time.Second)) || a.FinishedAt.After(time.Now()):
		w.t.Errorf("trial %s: from %v to %v in a run since %v", a.ID, a.StartedAt, a.FinishedAt, began)
	case !a.Settles():
		w.happened("fault")
	case w.settled[a.ID]:
		w.t.Errorf("trial %s is settled twice", a.ID)
	case a.Level != verdictOf(&a.Trial) || a.Requests != turnsOf(&a.Trial):
		w.t.Errorf("trial %s: %s after %d requests, want %s after %d", a.ID, a.Level, a.Requests,
			verdictOf(&a.Trial), turnsOf(&a.Trial))
	default:
		w.settled[a.ID] = true
		w.happened("settled")
	}
	return nil
}

// verdictOf and turnsOf are the truth about a trial.
func verdictOf(t *assay.Trial) assay.Level { return assay.Levels[t.Seed%3] }
func turnsOf(t *assay.Trial) int           { return 1 + int(t.Seed%4) }

// An endpoint answers requests, or fails.
type endpoint struct{ *world }

func (e endpoint) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	text := req.Messages[len(req.Messages)-1].Content
	d := e.dice("endpoint " + text)
	e.begin(text)
	defer e.end(text)
	took := time.Duration(d.Int64N(int64(4 * time.Second)))
	if d.IntN(20) == 0 {
		took += 20 * time.Second // longer than a call
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return &assay.Response{}, ctx.Err()
	}
	if !e.isCalm() && d.IntN(40) == 0 {
		return &assay.Response{}, &assay.Fault{Kind: assay.ContentFilter}
	}
	return &assay.Response{
		Message: assay.Message{Role: assay.Assistant, Content: "re: " + text}, ServedModel: "m",
	}, nil
}

// begin notes a request and checks the invariants.
func (e endpoint) begin(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent[text] {
		e.t.Errorf("the request %q is sent twice", text)
	}
	e.sent[text] = true
	trial, _, _ := strings.Cut(text, " ")
	if e.flying[trial]++; e.flying[trial] > 1 {
		e.t.Errorf("two attempts at trial %s ask at once", trial)
	}
	if len(e.flying) > simLimit {
		e.t.Errorf("%d requests at an endpoint that allows %d", len(e.flying), simLimit)
	}
}

func (e endpoint) end(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	trial, _, _ := strings.Cut(text, " ")
	if e.flying[trial]--; e.flying[trial] == 0 {
		delete(e.flying, trial)
	}
}
