package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/run/terminal"
)

const (
	// DefaultLease is the time after the last word of a worker within which its assignments are
	// offered to others.
	DefaultLease = 30 * time.Second
	// ticksOfLease is how often in a lease the coordinator looks for workers that are silent.
	ticksOfLease = 32
	// longPoll is how long a call waits for something that takes its time, before the worker asks
	// again.
	longPoll = 10 * time.Second
	// maxLost is how many workers may be lost while they work on an attempt. Then it ends in a fault,
	// because it seems to be what brings them down.
	maxLost = 8
	// aloneFor is how many leases a worker goes on with attempts while no run answers. After that,
	// the coordinator forgets the worker, too.
	aloneFor = 10
)

// CoordinatorOptions configure a coordinator.
type CoordinatorOptions struct {
	Job     Job
	Program string        // the version that workers must have, too
	Lease   time.Duration // 0 for DefaultLease
	// Changed is called when the number of slots has changed, and Note with news for people. Both
	// may be called from any goroutine and must not block.
	Changed func()
	Note    func(text string)
}

// A Coordinator gives the attempts of a run to workers. It is safe for concurrent use.
type Coordinator struct {
	hub     Hub
	options CoordinatorOptions
	// A worker is lost when it has been silent for so long that the next tick would come after the
	// end of its lease.
	tick, silence time.Duration

	stop    func() // serving
	quit    chan struct{}
	ticking sync.WaitGroup
	began   time.Time
	// begunAgain counts how often a worker began an assignment that a different worker had lost.
	begunAgain atomic.Int64

	mu          sync.Mutex
	assignments map[string]*assignment
	byTrial     map[assay.TrialID]*assignment
	workers     map[string]*member
	ended       bool
	allTold     chan struct{} // closed when every worker knows of the end
	ticked      time.Time
}

// A member is a worker as the coordinator knows it.
type member struct {
	hello
	seen     time.Time
	since    time.Time
	draining bool
	leaving  bool // it announced that
	gone     bool // it was silent for a lease
	told     bool // that the run has ended
	done     int
	agents   map[string]map[assay.AgentState]int // by listed model
}

// takes reports whether the worker takes assignments.
func (m *member) takes() bool { return !m.draining && !m.leaving && !m.gone }

// NewCoordinator opens a coordinator. It must be closed.
func NewCoordinator(hub Hub, o CoordinatorOptions) (*Coordinator, error) {
	o.Lease = cmp.Or(o.Lease, DefaultLease)
	if o.Changed == nil {
		o.Changed = func() {}
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	d := &Coordinator{
		hub: hub, options: o, quit: make(chan struct{}),
		assignments: make(map[string]*assignment), byTrial: make(map[assay.TrialID]*assignment),
		workers: make(map[string]*member), allTold: make(chan struct{}),
		ticked: time.Now(), began: time.Now(), tick: o.Lease / ticksOfLease,
	}
	d.silence = o.Lease - d.tick
	var err error
	if d.stop, err = hub.Serve(d.answer); err != nil {
		return nil, err
	}
	d.ticking.Go(d.watch)
	return d, nil
}

// Close lets the workers know that the run has ended, if they ask within a moment.
func (d *Coordinator) Close() {
	if n := d.begunAgain.Load(); n > 0 {
		d.options.Note(fmt.Sprintf("workers were lost: %d attempts were begun again by others", n))
	}
	d.mu.Lock()
	d.ended = true
	d.endIfAllKnow()
	d.mu.Unlock()
	select {
	case <-d.allTold:
	case <-time.After(2 * beatEvery):
	}
	close(d.quit)
	d.ticking.Wait()
	d.stop()
}

// endIfAllKnow closes allTold if every worker knows that the run has ended. It needs the lock.
func (d *Coordinator) endIfAllKnow() {
	for _, m := range d.workers {
		if !m.told && !m.gone {
			return
		}
	}
	select {
	case <-d.allTold:
	default:
		close(d.allTold)
	}
}

// Run offers an attempt to the workers and waits for its end. The requests of the attempt go to the
// provider. It is like [episode.Runner.Run]. The worker keeps the attempt until
// [Coordinator.Conclude].
func (d *Coordinator) Run(
	ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task,
) (*assay.Attempt, *assay.Transcript) {
	began := time.Now()
	o := d.open(ctx, provider, trial, task)
	defer o.end()
	d.offer(o)
	select {
	case <-o.finished:
	case <-ctx.Done():
		d.mu.Lock()
		o.fail(episode.Stopped(ctx))
		d.mu.Unlock()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.fault != nil {
		return lost(trial, began, o.fault), &assay.Transcript{}
	}
	return &o.result.Attempt, &o.result.Transcript
}

// lost returns the record of an attempt that ended without the word of a worker.
func lost(trial *assay.Trial, began time.Time, f *assay.Fault) *assay.Attempt {
	return &assay.Attempt{
		Trial: *trial, Templates: episode.TemplatesHash,
		FaultKind: f.Kind, FaultDetail: f.Error(), Parked: f.Hopeless,
		StartedAt: began.UTC(), FinishedAt: time.Now().UTC(),
	}
}

func (d *Coordinator) open(
	ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task,
) *assignment {
	o := &assignment{
		id: d.assignmentID(trial), trial: trial, task: task, provider: provider,
		finished: make(chan struct{}), concluded: make(chan struct{}),
	}
	o.ctx, o.cancel = context.WithCancel(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	if before := d.byTrial[trial.ID]; before != nil {
		d.conclude(before)
	}
	d.assignments[o.id], d.byTrial[trial.ID] = o, o
	return o
}

// assignmentID returns another ID for each assignment. A trial has one attempt at a time.
func (d *Coordinator) assignmentID(t *assay.Trial) string {
	return fmt.Sprintf("%s-%s-%d", d.options.Job.Run, t.ID, time.Since(d.began).Nanoseconds())
}

// offer puts an assignment into the queue. If that fails, watch tries again.
func (d *Coordinator) offer(o *assignment) {
	ctx, cancel := context.WithTimeout(o.ctx, d.options.Lease)
	defer cancel()
	err := d.hub.Offer(ctx, o.id)
	d.mu.Lock()
	defer d.mu.Unlock()
	o.offered, o.offering = time.Now(), false
	if err != nil {
		o.offered = time.Time{}
	}
}

// Conclude lets go of the attempt at a trial: it is on disk, or will never be.
func (d *Coordinator) Conclude(id assay.TrialID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.byTrial[id]; o != nil {
		d.conclude(o)
	}
}

// conclude needs the lock.
func (d *Coordinator) conclude(o *assignment) {
	if d.byTrial[o.trial.ID] == o {
		delete(d.byTrial, o.trial.ID)
	}
	delete(d.assignments, o.id)
	close(o.concluded)
}

// watch offers assignments again that no worker holds, and forgets workers that are gone.
func (d *Coordinator) watch() {
	ticker := time.NewTicker(d.tick)
	defer ticker.Stop()
	for {
		select {
		case <-d.quit:
			return
		case <-ticker.C:
		}
		again, changed := d.overdue(time.Now())
		for _, o := range again {
			d.ticking.Go(func() { d.offer(o) })
		}
		if changed {
			d.options.Changed()
		}
	}
}

// overdue returns the assignments to offer again, and forgets workers that are silent.
func (d *Coordinator) overdue(now time.Time) (again []*assignment, changed bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if asleep := now.Sub(d.ticked) - d.tick; asleep > d.options.Lease/8 {
		// This process was suspended and could hear no worker.
		for _, m := range d.workers {
			m.seen = m.seen.Add(asleep)
		}
		for _, o := range d.assignments {
			o.seen = o.seen.Add(asleep)
		}
	}
	d.ticked = now
	left := make(map[string]int) // assignments by worker
	for _, o := range d.assignments {
		if o.over() {
			continue
		}
		left[o.worker]++
		if !o.inHand(now, d.silence) && !o.offering && now.Sub(o.offered) >= d.silence {
			o.offering = true
			again = append(again, o)
		}
	}
	for id, m := range d.workers {
		switch silent := now.Sub(m.seen); {
		case silent >= aloneFor*d.options.Lease:
			delete(d.workers, id)
			changed = true
		case silent >= d.silence && !m.gone:
			m.gone, changed = true, true
			go d.options.Note(fmt.Sprintf("nothing was heard from worker %s for %.0f s; its %d "+
				"attempts go to others", m.Name, silent.Seconds(), left[id]))
		}
	}
	return again, changed
}

// Slots returns how many attempts the workers can carry out at once.
func (d *Coordinator) Slots() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.workers {
		if m.takes() {
			n += m.Slots
		}
	}
	return n
}

// Waits reports whether an assignment waits for a worker, so that the silence of a model does not
// mean that its endpoint is down.
func (d *Coordinator) Waits() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, o := range d.assignments {
		if !o.over() && !o.inHand(now, d.silence) {
			return true
		}
	}
	return false
}

// Drain lets a worker finish its assignments and go.
func (d *Coordinator) Drain(name string) {
	d.mu.Lock()
	for _, m := range d.workers {
		m.draining = m.draining || m.Name == name
	}
	d.mu.Unlock()
	d.options.Changed()
}

// Workers returns the workers, by name.
func (d *Coordinator) Workers() []terminal.Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]terminal.Worker, 0, len(d.workers))
	place := make(map[string]int)
	for id, m := range d.workers {
		place[id] = len(all)
		all = append(all, terminal.Worker{
			Name: m.Name, Slots: m.Slots, Trials: []assay.TrialID{}, Done: m.done,
			Leaving: m.draining || m.leaving, Lost: m.gone, Since: m.since, Seen: m.seen,
		})
	}
	now := time.Now()
	for _, o := range d.assignments {
		if i, ok := place[o.worker]; ok && !o.over() && o.inHand(now, d.silence) {
			all[i].Trials = append(all[i].Trials, o.trial.ID)
		}
	}
	for i := range all {
		slices.Sort(all[i].Trials)
		all[i].InFlight = len(all[i].Trials)
	}
	slices.SortFunc(all, func(a, b terminal.Worker) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// States counts the attempts of a listed model in flight by the states of their agents.
func (d *Coordinator) States(model string) map[assay.AgentState]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	states := make(map[assay.AgentState]int)
	starting := 0
	for _, o := range d.assignments {
		if o.trial.Model == model && !o.over() {
			starting++
		}
	}
	for _, m := range d.workers {
		for state, n := range m.agents[model] {
			states[state] += n
			starting -= n
		}
	}
	states[assay.AgentStarting] += max(0, starting)
	return states
}
