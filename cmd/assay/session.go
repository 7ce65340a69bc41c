package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/run/gate"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/live"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/run/runlog"
	"github.com/assay-eval/assay/internal/store"
)

// session is one run of a job.
type session struct {
	*job.Job
	process *process
	flags   runFlags
	id      assay.RunID
	db      *store.DB
	settled store.Set
	done    map[string]places
	pools   *job.Pools
	tasks   *job.TaskCache
	meter   *live.Meter
	log     *slog.Logger // of runlog, which is nil for none
	runlog  *runlog.Log
	gate    *gate.Gate
	started time.Time
	wake    chan struct{} // has room for one value
	// commands go to the engine; ended is closed when it takes no more.
	commands chan engine.Command
	ended    chan struct{}
	forecast job.Forecast
	latest   atomic.Int64 // when a request ended last, in nanoseconds of Unix

	mu       sync.Mutex // guards what follows, which lanes and engine count
	requests int
	tokens   int
	cost     float64
	longest  time.Duration // working time of an episode
	faults   map[assay.FaultKind]int
	lastDone assay.TrialID
	noted    map[string]bool // lane and kind of faults that the user knows of
}

func runExperiment(ctx context.Context, p *process, e *plan.Experiment, f runFlags) (err error) {
	j, err := job.Open(ctx, e, f.limit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	s := &session{
		Job: j, process: p, flags: f, started: time.Now(),
		wake: make(chan struct{}, 1), commands: make(chan engine.Command), ended: make(chan struct{}),
		gate:   gate.New(e.Budget, e.Stop),
		tasks:  job.NewTaskCache(j.Library),
		faults: make(map[assay.FaultKind]int), noted: make(map[string]bool),
		log: slog.New(slog.DiscardHandler),
	}
	// Everything that can be wrong is found before the store is touched.
	s.meter = live.NewMeter(func(model string) string { return waitsOf(s.pools, model) })
	if s.pools, err = j.Pools(p.env, f.simLatency); err != nil {
		return err
	}
	defer s.pools.Close()
	if s.db, err = store.Open(ctx, f.store, store.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.db.Close()) }()
	if err := s.pools.Recall(ctx, s.db); err != nil {
		return err
	}
	s.pools.Open(lane.Options{
		Request: time.Duration(e.Limits.Request), Observe: s.observe, Wake: s.wakeUp,
	})
	return s.run(ctx)
}

// wakeUp tells the engine that a model may have room.
func (s *session) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // it will look anyway
	}
}

func (s *session) observe(x lane.Exchange) {
	kind := assay.FaultKind("")
	if x.Fault != nil {
		kind = x.Fault.Kind
		s.noteFault(x.Lane, x.Fault)
	}
	s.logExchange(x)
	s.latest.Store(time.Now().UnixNano())
	s.meter.Request(x.Model, kind, x.Usage)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	s.tokens += x.Usage.Total()
	if kind != "" {
		s.faults[kind]++
	}
}

// noteFault tells the user of the first fault of each kind on each lane.
func (s *session) noteFault(lane string, f *assay.Fault) {
	if f.Kind == assay.Interrupted {
		return
	}
	key := lane + " " + string(f.Kind)
	s.mu.Lock()
	known := s.noted[key]
	s.noted[key] = true
	s.mu.Unlock()
	if !known {
		s.note(strings.ReplaceAll(f.Error(), "\n", "; "))
	}
}

func (s *session) run(ctx context.Context) error {
	var err error
	if s.settled, err = s.db.Settled(ctx); err != nil {
		return err
	}
	if err := s.recallOutcomes(ctx); err != nil {
		return err
	}
	pending := make(map[string]int)
	total := 0
	s.done = s.findDone()
	for _, m := range s.Experiment.Models {
		s.meter.Model(m, s.Plan.Planned(m), s.done[m].n)
		pending[m] = s.Plan.Planned(m) - s.done[m].n
		total += pending[m]
	}
	if total == 0 {
		if err := s.record(ctx); err != nil {
			return err
		}
		if s.displayMode() == "json" { // whose first line is always the start
			s.announce(total)
		}
		return s.finish(ctx, engine.Summary{}, nil)
	}
	if s.forecast, err = s.Job.Forecast(ctx, s.db, s.pools, pending, s.flags.simLatency); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.openLog()
	for _, note := range s.pools.Notes {
		s.note(note)
	}
	s.announce(total)
	summary, runErr := s.work(ctx)
	return s.finish(ctx, summary, runErr)
}

// recallOutcomes tells the gate what earlier runs found, if a rule asks.
func (s *session) recallOutcomes(ctx context.Context) error {
	if err := s.Judge(ctx, s.db, s.gate); err != nil {
		return err
	}
	for _, stop := range s.gate.Stops() {
		s.note(stop.String())
	}
	return nil
}

// record stores a run of nothing where the store does not know the experiment as it
// is: others settled all of its trials, and reports of it are asked for by its name.
func (s *session) record(ctx context.Context) error {
	known, err := s.db.Experiments(ctx)
	if err != nil {
		return err
	}
	spec, err := s.spec()
	if err != nil || slices.ContainsFunc(known, func(e store.Experiment) bool { return e.Name == s.Experiment.Name && bytes.Equal(e.Spec, spec) }) {
		return err
	}
	return s.begin(ctx)
}

func (s *session) spec() (json.RawMessage, error) {
	spec, err := json.Marshal(s.Experiment)
	if err != nil {
		return nil, fmt.Errorf("encode experiment: %w", err)
	}
	return spec, nil
}

// begin stores that the run has begun.
func (s *session) begin(ctx context.Context) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make a run ID: %w", err)
	}
	s.id = assay.RunID(id.String())
	spec, err := s.spec()
	if err != nil {
		return err
	}
	meta := s.Library.Meta()
	return s.db.BeginRun(ctx, store.Experiment{
		Name: s.Experiment.Name, Spec: spec, Planned: s.Planned(), Serves: s.pools.Serves(),
		Library: store.Library{Path: s.Experiment.Library, Name: meta.Name, Digest: meta.Digest},
	}, store.Run{ID: s.id, Program: version(), Host: hostName(), PID: os.Getpid(), StartedAt: s.started.UTC()})
}

// work runs the engine under the view until all is done or a signal stops it.
func (s *session) work(ctx context.Context) (engine.Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	viewCtx, endView := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	helpers.Go(func() { live.Run(viewCtx, s.meter, s.view(), s.interval) })
	helpers.Go(func() { s.listen(viewCtx, stop, cancel) })
	helpers.Go(func() { s.watch(viewCtx) })
	helpers.Go(func() { s.keepLearned(viewCtx) })
	control, err := s.serveControl()
	if err != nil { // a run is worth more than its remote control
		s.note("assay ctl cannot reach this run: " + err.Error())
	}
	summary, err := engine.Run(ctx, stop, s.engineConfig())
	close(s.ended)
	control.close()
	endView()
	helpers.Wait()
	return summary, errors.Join(err, s.remember(context.WithoutCancel(ctx)))
}

// listen turns the first signal into a soft stop and the second into a hard one.
func (s *session) listen(ctx context.Context, stop chan<- struct{}, abort context.CancelCauseFunc) {
	for n := 1; ; n++ {
		select {
		case <-s.process.signals:
		case <-ctx.Done():
			return
		}
		switch n {
		case 1:
			s.meter.Stopping()
			close(stop)
			for _, p := range s.pools.ByModel {
				p.Drain()
			}
			if s.displayMode() == "plain" {
				fmt.Fprintln(s.process.err, "stopping: episodes in flight finish; Ctrl-C again aborts them")
			}
		case 2:
			abort(engine.ErrStopped)
		}
	}
}

func (s *session) engineConfig() engine.Config {
	runner := episode.NewRunner(s.Library.Catalog(), time.Duration(s.Experiment.Limits.Trial))
	cfg := engine.Config{
		Attempt: func(ctx context.Context, trial *assay.Trial) (*assay.Attempt, *assay.Transcript) {
			a, tr := s.attempt(ctx, runner, trial)
			a.Experiment, a.Run, a.Program = s.Experiment.Name, s.id, version()
			return a, tr
		},
		Save:     s.save,
		Event:    s.event,
		Wake:     s.wake,
		Skip:     s.skip,
		Commands: s.commands,
	}
	for _, name := range s.Experiment.Models {
		pool := s.pools.ByModel[name]
		cfg.Models = append(cfg.Models, engine.Model{
			Name: name, Pending: s.pending(name), Admit: pool.Admit, Closed: pool.Closed, Exhausted: pool.Exhausted,
			Most: func() int { return 2*pool.Width() + 64 },
		})
	}
	return cfg
}

func (s *session) pending(model string) iter.Seq[assay.Trial] {
	return s.Plan.Some(model, func(place int) bool { return !s.done[model].has(place) })
}

// places are those of a model's trials that were done before the run, a bit
// each.
type places struct {
	bits []uint64
	n    int
}

func (p places) has(place int) bool {
	return place/64 < len(p.bits) && p.bits[place/64]&(1<<(place%64)) != 0
}

// findDone looks for each planned trial in the store once, model by model in
// parallel: a million identities take a second to make.
func (s *session) findDone() map[string]places {
	done := make(map[string]places)
	if s.settled.Len() == 0 {
		return done
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, model := range s.Experiment.Models {
		wg.Go(func() {
			p := places{bits: make([]uint64, s.Plan.Planned(model)/64+1)}
			place := 0
			for t := range s.Plan.Trials(model) {
				if s.settled.Has(t.ID) {
					p.bits[place/64] |= 1 << (place % 64)
					p.n++
				}
				place++
			}
			mu.Lock()
			defer mu.Unlock()
			done[model] = p
		})
	}
	wg.Wait()
	return done
}

func (s *session) attempt(ctx context.Context, runner *episode.Runner, trial *assay.Trial) (*assay.Attempt, *assay.Transcript) {
	task, err := s.tasks.Task(ctx, trial)
	if err != nil {
		return noTask(ctx, trial, err), &assay.Transcript{}
	}
	s.gate.Begin(trial.Cell)
	defer s.gate.End(trial.Cell)
	return runner.Run(ctx, &gated{s.pools.ByModel[trial.Model], s.gate, trial.Cell}, trial, task)
}

// noTask is the attempt at a trial whose task cannot be had.
func noTask(ctx context.Context, trial *assay.Trial, err error) *assay.Attempt {
	kind := assay.Harness
	if ctx.Err() != nil {
		kind = assay.Interrupted
	}
	now := time.Now().UTC()
	return &assay.Attempt{
		Trial: *trial, FaultKind: kind, FaultDetail: err.Error(), Templates: episode.TemplatesHash, StartedAt: now, FinishedAt: now,
	}
}

// gated asks the gate before each turn and tells it what the turn took.
type gated struct {
	assay.Provider
	gate *gate.Gate
	cell assay.Cell
}

func (g *gated) Chat(ctx context.Context, req assay.Request) (assay.Response, error) {
	if f := g.gate.Allow(g.cell); f != nil {
		return assay.Response{}, f
	}
	resp, err := g.Provider.Chat(ctx, req)
	g.gate.Spend(g.cell, resp.Usage, resp.Cost)
	return resp, err
}

// skip says why a trial is not to be run in this run.
func (s *session) skip(t *assay.Trial) string {
	reason, rule := s.gate.Skip(t.Cell)
	if rule {
		s.meter.Skipped(t.Model)
	} else if reason != "" {
		s.note(reason + "; its trials stay pending")
	}
	return reason
}

func (s *session) event(e engine.Event) {
	switch e.Kind {
	case engine.Started:
		s.meter.Started(e.Model)
	case engine.Settled:
		s.meter.Settled(e.Model)
	case engine.Faulted, engine.Dropped:
		s.meter.Faulted(e.Model, false)
	case engine.Parked:
		s.meter.Faulted(e.Model, true)
	case engine.Requeued:
		s.meter.Requeued(e.Model, e.WasParked)
	case engine.ModelClosed:
		s.meter.Closed(e.Model, e.Err.Error())
	}
	s.logEvent(e)
	a := e.Attempt
	if a == nil {
		return
	}
	if e.Kind == engine.Settled {
		for _, stop := range s.gate.Outcome(a.Cell, a.Level, a.ErrorCategory) {
			s.note(stop.String())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cost += a.CostUSD
	if e.Kind == engine.Settled {
		s.lastDone = a.ID
		s.longest = max(s.longest, time.Duration(a.WorkingMS)*time.Millisecond)
	}
}
