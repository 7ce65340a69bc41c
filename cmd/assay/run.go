package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/engine"
	"github.com/assay-eval/assay/internal/episode"
	"github.com/assay-eval/assay/internal/lane"
	"github.com/assay-eval/assay/internal/live"
	"github.com/assay-eval/assay/internal/nearest"
	"github.com/assay-eval/assay/internal/plan"
	"github.com/assay-eval/assay/internal/report"
	"github.com/assay-eval/assay/internal/store"
)

type runFlags struct {
	store      string
	display    string
	simLatency time.Duration
}

var displays = []string{"auto", "live", "plain", "json", "none"}

func newRun(p *process) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [FILE]",
		Short: "Run what is owed of an experiment",
		Long: `Run works on every trial of an experiment that has no outcome yet. Without FILE
it runs the built-in quickstart on simulated models: no key, no network.

Each result is on disk before it is counted. Running again continues where the
last run ended, however it ended. The first Ctrl-C starts nothing new and lets
episodes in flight finish; the second aborts them. Neither loses a result.

Exit codes: 0 complete, 1 error, 2 wrong usage or file, 3 finished with owed or
parked trials, 130 interrupted.`,
		Example: `  assay run
  assay run experiment.yaml
  assay run experiment.yaml --store results.db --display json

  # experiment.yaml
  name: first-try
  models: [my-model, sim/optimal]
  variants: [baseline, cot, optimal]
  reliabilities: [0.9, 0.7]
  tasks_per_type: 20
  providers: providers.yaml

  # providers.yaml
  providers:
    gateway:
      base_url: https://api.example.com/v1
      keys: [MY_KEY]            # names of environment variables
      models:
        my-model: {limits: {concurrency: 5, rpm: 600}}`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(displays, f.display) {
				return usageError("unknown display %q\nhint: %s", f.display, nearest.Hint(f.display, displays))
			}
			e := plan.Quickstart()
			if len(args) == 1 {
				var err error
				if e, err = plan.Load(args[0]); err != nil {
					return err
				}
			}
			return runExperiment(cmd.Context(), p, e, f)
		},
	}
	storeFlag(cmd, &f.store)
	cmd.Flags().StringVar(&f.display, "display", "auto", "how to show progress: auto, live, plain, json or none")
	cmd.Flags().DurationVar(&f.simLatency, "sim-latency", 100*time.Millisecond, "median time that the built-in simulated models take to reply")
	choice(cmd, "display", displays...)
	return cmd
}

// session is one run of a job.
type session struct {
	*job
	process *process
	flags   runFlags
	id      assay.RunID
	db      *store.DB
	settled store.Set
	pools   *pools
	meter   *live.Meter
	started time.Time

	mu       sync.Mutex // guards what follows, which lanes and engine count
	requests int
	tokens   int
	cost     float64
	faults   map[assay.FaultKind]int
	lastDone assay.TrialID
	noted    map[string]bool // lane and kind of faults that the user knows of
}

func runExperiment(ctx context.Context, p *process, e *plan.Experiment, f runFlags) (err error) {
	j, err := openJob(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	s := &session{job: j, process: p, flags: f, started: time.Now(), faults: make(map[assay.FaultKind]int), noted: make(map[string]bool)}
	// Everything that can be wrong is found before the store is touched.
	s.meter = live.NewMeter(func(model string) string { return s.pools.waits(model) })
	if s.pools, err = j.openPools(p, f.simLatency, s.observe); err != nil {
		return err
	}
	defer s.pools.close()
	if s.db, err = store.Open(ctx, f.store, store.Options{}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.db.Close()) }()
	return s.run(ctx)
}

func (s *session) observe(x lane.Exchange) {
	kind := assay.FaultKind("")
	if x.Fault != nil {
		kind = x.Fault.Kind
		s.noteFault(x.Lane, x.Fault)
	}
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
		s.meter.Note(strings.ReplaceAll(f.Error(), "\n", "; "))
	}
}

func (s *session) run(ctx context.Context) error {
	var err error
	if s.settled, err = s.db.Settled(ctx); err != nil {
		return err
	}
	owed := 0
	for _, m := range s.experiment.Models {
		done := 0
		for t := range s.plan.Trials(m) {
			if s.settled.Has(t.ID) {
				done++
			}
		}
		s.meter.Model(m, s.plan.Planned(), done)
		owed += s.plan.Planned() - done
	}
	if owed == 0 {
		return s.finish(ctx, engine.Summary{}, nil)
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	for _, note := range s.pools.notes {
		s.meter.Note(note)
	}
	s.announce(owed)
	summary, runErr := s.work(ctx)
	return s.finish(ctx, summary, runErr)
}

// begin stores that the run has begun.
func (s *session) begin(ctx context.Context) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make a run ID: %w", err)
	}
	s.id = assay.RunID(id.String())
	spec, err := json.Marshal(s.experiment)
	if err != nil {
		return fmt.Errorf("encode experiment: %w", err)
	}
	meta := s.library.Meta()
	return s.db.BeginRun(ctx, store.Experiment{
		Name: s.experiment.Name, Spec: spec, Planned: s.planned(),
		Library: store.Library{Path: s.experiment.Library, Name: meta.Name, Digest: meta.Digest},
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
	summary, err := engine.Run(ctx, stop, s.engineConfig())
	endView()
	helpers.Wait()
	return summary, err
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
			for _, p := range s.pools.byModel {
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
	runner := episode.NewRunner(s.library.Catalog(), time.Duration(s.experiment.Limits.Trial))
	cfg := engine.Config{
		Attempt: func(ctx context.Context, trial assay.Trial) (assay.Attempt, *assay.Transcript) {
			a, tr := s.attempt(ctx, runner, trial)
			a.Experiment, a.Run, a.Program = s.experiment.Name, s.id, version()
			return a, tr
		},
		Save:  s.db.Save,
		Event: s.event,
	}
	for _, name := range s.experiment.Models {
		pool := s.pools.byModel[name]
		cfg.Models = append(cfg.Models, engine.Model{Name: name, Owed: s.owed(name), Width: pool.Width, Closed: pool.Closed})
	}
	return cfg
}

func (s *session) owed(model string) iter.Seq[assay.Trial] {
	return func(yield func(assay.Trial) bool) {
		for t := range s.plan.Trials(model) {
			if !s.settled.Has(t.ID) && !yield(t) {
				return
			}
		}
	}
}

func (s *session) attempt(ctx context.Context, runner *episode.Runner, trial assay.Trial) (assay.Attempt, *assay.Transcript) {
	started := time.Now().UTC()
	task, err := s.library.Task(ctx, trial.Task, trial.Difficulty)
	if err == nil && task.Digest() != trial.TaskDigest {
		err = fmt.Errorf("task %s of library %s is not the one that was planned", trial.Task, s.experiment.Library)
	}
	if err != nil {
		kind := assay.Harness
		if ctx.Err() != nil {
			kind = assay.Interrupted
		}
		return assay.Attempt{
			Trial: trial, FaultKind: kind, FaultDetail: err.Error(), Templates: episode.TemplatesHash,
			StartedAt: started, FinishedAt: time.Now().UTC(),
		}, &assay.Transcript{}
	}
	return runner.Run(ctx, s.pools.byModel[trial.Model], trial, task)
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
	case engine.ModelClosed:
		s.meter.Closed(e.Model, e.Err.Error())
	}
	if e.Attempt != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.cost += e.Attempt.CostUSD
		if e.Kind == engine.Settled {
			s.lastDone = e.Attempt.ID
		}
	}
}

func (s *session) displayMode() string {
	if s.flags.display != "auto" {
		return s.flags.display
	}
	if s.process.errTerminal {
		return "live"
	}
	return "plain"
}

func (s *session) view() live.View {
	switch s.displayMode() {
	case "live":
		return live.NewTerminal(s.process.err)
	case "json":
		return &live.JSON{W: s.process.out}
	case "none":
		return live.None{}
	}
	return &live.Plain{W: s.process.err}
}

// interval is the time to the next snapshot. Plain lines become fewer in a long
// run, whose log somebody will read.
func (s *session) interval(elapsed time.Duration) time.Duration {
	switch mode := s.displayMode(); {
	case mode == "live":
		return 250 * time.Millisecond
	case mode == "json":
		return time.Second
	case elapsed < time.Minute:
		return 5 * time.Second
	case elapsed < 10*time.Minute:
		return 20 * time.Second
	}
	return time.Minute
}

// announce says what is about to happen.
func (s *session) announce(owed int) {
	if s.displayMode() == "json" {
		s.object(map[string]any{
			"event": "start", "experiment": s.experiment.Name, "run": s.id, "program": version(), "store": s.flags.store,
			"planned": s.planned(), "done": s.planned() - owed, "owed": owed, "models": s.experiment.Models,
		})
		return
	}
	if s.displayMode() == "none" {
		return
	}
	text := fmt.Sprintf("experiment %s: %d trials planned", s.experiment.Name, s.planned())
	if done := s.planned() - owed; done > 0 {
		text += fmt.Sprintf(", %d done before, %d owed", done, owed)
	}
	fmt.Fprintf(s.process.err, "%s; results go to %s\n", text, s.flags.store)
}

func (s *session) object(fields map[string]any) {
	b, err := json.Marshal(fields)
	if err != nil {
		panic("assay: event: " + err.Error())
	}
	fmt.Fprintf(s.process.out, "%s\n", b)
}

// finish closes the run in the store, prints what came out and chooses the
// exit code.
func (s *session) finish(ctx context.Context, summary engine.Summary, runErr error) error {
	snapshot := s.meter.Snapshot()
	total := snapshot.Total()
	open := total.Planned - total.Done // owed or parked
	wall := time.Since(s.started)
	done := map[string]any{
		"event": "done", "experiment": s.experiment.Name, "run": s.id, "store": s.flags.store,
		"planned": total.Planned, "done": total.Done, "owed": total.Owed(), "parked": total.Parked,
		"settled": summary.Settled, "faults": summary.Faulted, "request_faults": s.faults, "requests": s.requests,
		"tokens": s.tokens, "cost_usd": s.cost, "wall_s": wall.Seconds(), "stopped": summary.Stopped,
	}
	if runErr != nil {
		done["error"] = runErr.Error()
	} else if s.id != "" {
		b, err := json.Marshal(done)
		if err != nil {
			return fmt.Errorf("encode summary: %w", err)
		}
		if err := s.db.EndRun(ctx, s.id, b); err != nil {
			return err
		}
	}
	if s.displayMode() == "json" {
		s.object(done)
	} else if err := s.print(ctx, summary, total, wall); err != nil {
		return errors.Join(runErr, err)
	}
	switch {
	case runErr != nil:
		return runErr
	case summary.Stopped && open > 0:
		return &codedError{code: exitInterrupted}
	case open > 0:
		return &codedError{code: exitIncomplete}
	}
	return nil
}

// print shows the table and what to do next.
func (s *session) print(ctx context.Context, summary engine.Summary, total live.ModelState, wall time.Duration) error {
	table, err := report.Build(s.experiment.Name, s.trials(), s.db.Attempts(ctx, store.Filter{}))
	if err != nil {
		return err
	}
	w := s.process.out
	fmt.Fprintln(w)
	if err := table.WriteText(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if s.id == "" {
		fmt.Fprintf(w, "All %d trials of %s are done; nothing was run.\n", total.Planned, s.experiment.Name)
	} else {
		fmt.Fprintf(w, "%d of %d trials done, %d in this run, in %s with %d requests.\n",
			total.Done, total.Planned, summary.Settled, wall.Round(100*time.Millisecond), s.requests)
	}
	for _, m := range s.experiment.Models {
		if err := summary.Closed[m]; err != nil {
			fmt.Fprintf(w, "%s stopped early: %v\n", m, err)
		}
	}
	if total.Done < total.Planned {
		fmt.Fprintf(w, "%d trials are still owed", total.Owed())
		if total.Parked > 0 {
			fmt.Fprintf(w, " and %d parked after %d faults each", total.Parked, engine.MaxAttempts)
		}
		fmt.Fprintln(w, "; the same command runs them.")
	}
	path := s.flags.store
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	fmt.Fprintf(w, "Results are in %s\n\nNext:\n", path)
	s.next()
	return nil
}

// next suggests commands that work as they stand.
func (s *session) next() {
	flag := ""
	if s.flags.store != "assay.db" {
		flag = " --store " + s.flags.store
	}
	w, name := s.process.out, s.process.name
	fmt.Fprintf(w, "  %s status%s\n", name, flag)
	if id := s.example(); id != "" {
		fmt.Fprintf(w, "  %s show %s%s\n", name, id[:8], flag)
	}
	fmt.Fprintf(w, "  %s export --format csv --output results.csv%s\n", name, flag)
}

// example is some trial of the experiment that is done, "" without one.
func (s *session) example() assay.TrialID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastDone != "" {
		return s.lastDone
	}
	for t := range s.trials() {
		if s.settled.Has(t.ID) {
			return t.ID
		}
	}
	return ""
}
