// Package session carries out one run of a job. It records the run in the store, lets the engine
// work through pending trials, explains stalls, writes the log, takes the
// orders of `assay ctl` over a socket, and ends with a [Summary]. Other processes ask it for its
// progress.
//
// It does not print and does not know flags. A [Display] shows the run to its user.
package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/agent/judge"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/run/fleet"
	"github.com/assay-eval/assay/internal/run/runlog"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
)

// Options configure a run of a job.
type Options struct {
	// Store is the path of the store. The control socket is next to it.
	Store string
	// Program is the version of this program, Host the name of this machine.
	Program, Host string
	// Env looks up keys, and SimLatency is the median latency of built-in models.
	Env        job.Env
	SimLatency time.Duration
	// Signals stop the run: the first one softly, the second one at once.
	Signals <-chan os.Signal
	Display Display
	Words   assay.Words // of hints
	Log     LogOptions
	// Observers follow the run.
	Observers []Observer
	// Retry has the trials that the run works on again, with the round of their next outcome. If it
	// is not nil, the run leaves out all others.
	Retry map[assay.TrialID]int
	// Workers, if set, opens the place where workers ask for attempts. Otherwise attempts are
	// carried out in this process.
	Workers func() (fleet.Hub, error)
	// Earlier is the stopper of the run before, if both have the same budgets together; otherwise nil.
	Earlier *job.Stopper
	// Lease is how long a worker may be silent before others get its attempts.
	Lease time.Duration
	// Listen, if set, opens the control socket, which is otherwise next to the store.
	Listen func() (net.Listener, error)
	// Agents is where foreign agents run, if it is not this machine.
	Agents bridge.Place
}

// A Display shows a run to its user.
type Display interface {
	// Start is called once, before the first request.
	Start(Start)
	// Show shows the run until ctx ends. It runs in a separate goroutine.
	Show(ctx context.Context, run Live)
	// Stopping is called when a signal has stopped the run softly.
	Stopping()
	// NoLog is called when the run's log cannot be written.
	NoLog(reason string)
}

// Start describes a run before its first request.
type Start struct {
	Event      string      `json:"event"` // "start"
	Experiment string      `json:"experiment"`
	Run        assay.RunID `json:"run"`
	Program    string      `json:"program"`
	Store      string      `json:"store"`
	Planned    int         `json:"planned"`
	Done       int         `json:"done"`
	Pending    int         `json:"pending"`
	Models     []string    `json:"models"`
	// Library is where the tasks come from, and Changed lists the changes of the library since the
	// latest run of the experiment.
	Library string           `json:"library"`
	Changed []library.Change `json:"changed,omitempty"`
	// MeantEasy is true if earlier runs were at the default difficulty of earlier versions, so that
	// the same file has new trials.
	MeantEasy bool `json:"meant_easy,omitempty"`
	// Endpoints has the addresses of lanes, by their names, and Server carries out the tools unless it
	// is nil.
	Endpoints map[string]string `json:"-"`
	Server    *assay.MCPServer  `json:"-"`
	// Forecast is how long the pending trials take, in seconds, and Range the range of that if an
	// endpoint is unknown.
	Forecast float64   `json:"forecast_s"`
	Range    job.Range `json:"forecast_range,omitzero"`
}

// A Session is one run of a job.
type Session struct {
	*job.Job
	options      Options
	id           assay.RunID
	db           *store.DB
	tally        *job.Tally
	leftOut      map[string]*places // by model
	pools        *job.Pools
	coordinator  *fleet.Coordinator // nil without workers
	sharedLimits sharedLimits       // for the engine's goroutine
	tasks        *library.Cache
	// agents counts the agents of a listed model by their states.
	agents func(listed string) map[assay.AgentState]int
	// locked returns since when another program has locked the store, or zero.
	locked  func() time.Time
	changed []library.Change // since the latest run
	easy    bool             // see [Start.MeantEasy]
	meter   *meter
	stopper *job.Stopper
	started time.Time
	log     *slog.Logger
	runlog  *runlog.Log // nil if there is no log
	wake    chan struct{}
	// The engine receives commands until ended is closed.
	commands chan engine.Command
	requeued requeuing
	ended    chan struct{}
	repaced  chan struct{} // the user has changed lanes; see foresee
	flights  flights
	strips   strips
	still    *engine.StillWatch
	outlook  *outlook
	starters *starters
	court    *judge.Court
	unsaved  atomic.Int32 // attempts that could not be saved
	journal  *store.Journal
	// elsewhere has the attempts in the journal at trials that this experiment does not plan.
	elsewhere map[assay.TrialID]bool
	goes      string // describes the attempts that the run goes on with; "" if there are none
	resumed   resumed
	noted     sync.Map // things that the user knows: faults of lanes, deviations of models
}

// Stopper returns what decides when the budgets of the run are spent.
func (s *Session) Stopper() *job.Stopper { return s.stopper }

// New prepares a run. It checks everything that can be checked before the store is touched.
func New(j *job.Job, o Options) (*Session, error) {
	pools, err := j.Pools(o.Env, o.SimLatency)
	if err != nil {
		return nil, err
	}
	for model, a := range pools.Agents {
		if store, err := filepath.Abs(o.Store); err == nil {
			a.Hidden = append(a.Hidden, filepath.Dir(store))
			pools.Agents[model] = a
		}
	}
	for _, model := range j.Experiment.Models {
		if a := pools.Agents[model]; a.Missing != nil && o.Workers == nil {
			return nil, a.Missing
		}
	}
	return newSession(j, o, pools), nil
}

func newSession(j *job.Job, o Options, pools *job.Pools) *Session {
	now := time.Now()
	s := &Session{
		Job: j, options: o, started: now, pools: pools,
		wake:     make(chan struct{}, 1),
		commands: make(chan engine.Command), ended: make(chan struct{}), repaced: make(chan struct{}, 1),
		stopper: job.NewStopper(j.Experiment.Budget, j.Experiment.Stop),
		tasks:   library.NewCache(j.Library),
		meter:   newMeter(now), outlook: &outlook{started: now, pools: pools},
		strips:   strips{step: 1},
		starters: newStarters(pools.Agents),
		log:      slog.New(slog.DiscardHandler), journal: new(store.Journal), // until the run has begun
		// runners opens something that knows better.
		agents: func(string) map[assay.AgentState]int { return nil },
	}
	if o.Earlier != nil {
		s.stopper.Continue(o.Earlier)
	}
	s.tally = job.NewTally(s.stopper, maps.All(map[assay.Cell]int{}))
	s.locked = func() time.Time { return time.Time{} }
	s.still = engine.NewStillWatch(s.note)
	return s
}

// Run runs all pending trials and returns a summary. The summary is nil if the run could not
// begin. If the run ended with an error, Run returns both.
func (s *Session) Run(ctx context.Context, db *store.DB) (*Summary, error) {
	defer s.pools.Close()
	s.db, s.locked = db, db.Locked
	left, err := db.Journal(ctx)
	if err != nil {
		return nil, err
	}
	ended := false
	defer func() { left.Close(ended) }()
	if err := s.pools.Recall(ctx, db); err != nil {
		return nil, err
	}
	sent, closeSent, err := s.openSentLog()
	if err != nil {
		return nil, err
	}
	defer closeSent()
	s.pools.Open(lane.Options{
		Request: time.Duration(s.Experiment.Limits.Request), Observe: s.observe, Wake: s.wakeUp,
		Sent: sent,
	})
	if err := s.recall(ctx, left); err != nil {
		return nil, err
	}
	pending, before := s.unsettled()
	if s.easy, err = s.MeantEasy(ctx, db); err != nil {
		return nil, err
	}
	if s.changed, err = s.Changes(ctx, db); err != nil {
		return nil, err
	}
	if before.Planned == before.Done {
		if err := s.record(ctx); err != nil {
			return nil, err
		}
		s.announce(before)
		sum, err := s.finish(ctx, engine.Summary{}, nil)
		return sum, errors.Join(err, db.DropJournal(ctx, left))
	}
	forecast, err := s.Forecast(ctx, db, s.pools, pending, s.options.SimLatency)
	if err != nil {
		return nil, err
	}
	s.outlook.expect(forecast)
	for _, m := range forecast.Models {
		if n := m.Trials; n > 0 {
			tokens, usd := (m.InputTokens+m.OutputTokens)/n, m.Cost/float64(n)
			if m.Earlier > 0 {
				tokens, usd = tokens+m.Besides.Tokens/m.Earlier, usd+m.Besides.USD/float64(m.Earlier)
			}
			s.stopper.Expect(m.Model, m.Earlier, tokens, usd)
		}
	}
	if err := s.identify(); err != nil {
		return nil, err
	}
	runners, closeRunners, err := s.runners()
	if err != nil {
		return nil, err
	}
	s.tally.SetRun(s.id)
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, closeRunners())
	}
	if err := s.openJournal(ctx, left); err != nil {
		return nil, errors.Join(err, closeRunners())
	}
	s.journal = left
	s.openLog()
	if s.goes != "" {
		s.note(s.goes)
	}
	for _, note := range append(s.pools.Notes, s.exposed()...) {
		s.note(note)
	}
	s.announce(before)
	ran, err := s.work(ctx, runners, closeRunners)
	sum, err := s.finish(ctx, ran, err)
	ended = err == nil
	return sum, err
}

// exposed says which agents run with the rights of the user because this machine has no rooms. The
// machines of workers say that themselves.
func (s *Session) exposed() (notes []string) {
	for _, name := range slices.Sorted(maps.Keys(s.pools.Agents)) {
		if note := s.pools.Agents[name].ExposedNote(); note != "" && s.options.Workers == nil {
			notes = append(notes, note)
		}
	}
	return notes
}

// openSentLog returns the function that notes what lanes with limits send, for the next run, and one
// that ends it.
func (s *Session) openSentLog() (sent func(string, lane.Spent), end func(), err error) {
	if !s.pools.Windowed() {
		return nil, func() {}, nil
	}
	log, err := s.db.OpenSentLog()
	if err != nil {
		return nil, nil, err
	}
	sent = func(lane string, used lane.Spent) {
		if err := log.Add(lane, store.Sent(used)); err != nil {
			s.note("a later run may exceed the limits of its lanes, because this one cannot note what " +
				"it sends: " + err.Error())
		}
	}
	return sent, func() { _ = log.Close() }, nil
}

// unsettled returns the number of trials of each model that the run has to settle, and how all of
// them stand.
func (s *Session) unsettled() (byModel map[string]int, all job.Trials) {
	byModel = make(map[string]int)
	for _, m := range s.Experiment.Models {
		t := s.tally.Standing(m).Trials
		all.Add(t)
		byModel[m] = t.Planned - t.Done
	}
	return byModel, all
}

// record stores an empty run if the store does not know the experiment in its present form.
// Other experiments may have settled all of its trials, and reports are asked for by name.
func (s *Session) record(ctx context.Context) error {
	_, spec, known, err := s.spec(ctx)
	if err != nil || bytes.Equal(known, spec) {
		return err
	}
	if err := s.identify(); err != nil {
		return err
	}
	return s.begin(ctx)
}

// identify gives the run its ID.
func (s *Session) identify() error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("make a run ID: %w", err)
	}
	s.id = assay.RunID(id.String())
	return nil
}

// spec returns the experiment to store, its text, and the text that the store has.
func (s *Session) spec(
	ctx context.Context,
) (joined *plan.Experiment, spec, known json.RawMessage, err error) {
	all, err := s.db.Experiments(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, e := range all {
		if e.Name == s.Experiment.Name {
			known = e.Spec
		}
	}
	joined, err = s.Experiment.Join(known)
	if err == nil {
		spec, err = json.Marshal(joined)
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode experiment: %w", err)
	}
	return joined, spec, known, nil
}

// begin stores that the run has begun, and the tasks, because results are read without the files.
func (s *Session) begin(ctx context.Context) error {
	joined, spec, _, err := s.spec(ctx)
	if err != nil {
		return err
	}
	if err := s.Keep(ctx, s.db, joined); err != nil {
		return fmt.Errorf("store the tasks: %w", err)
	}
	meta := s.Library.Meta()
	return s.db.BeginRun(ctx, store.Experiment{
		Name: s.Experiment.Name, Spec: spec, Planned: s.Planned(),
		Serves: s.pools.Serves(), Prices: s.pools.Prices(),
		Library: store.Library{Path: s.Experiment.Library, Name: meta.Name, Digest: meta.Digest},
	}, store.Run{
		ID: s.id, Program: s.options.Program, Host: s.options.Host, PID: os.Getpid(),
		StartedAt: s.started.UTC(),
	})
}

func (s *Session) announce(before job.Trials) {
	start := Start{
		Event: "start", Experiment: s.Experiment.Name, Run: s.id, Program: s.options.Program,
		Store: s.options.Store, Planned: before.Planned, Done: before.Done, Changed: s.changed,
		MeantEasy: s.easy, Library: s.Experiment.Library,
		Endpoints: s.endpoints(), Server: s.Job.Library.Catalog().Server(),
		Pending: before.Planned - before.Done, Models: s.Experiment.Models,
		Forecast: s.outlook.forecast.Wall, Range: s.outlook.forecast.Range,
	}
	s.options.Display.Start(start)
	s.observed(func(o Observer) { o.Begin(start, s.live()) })
}

// work runs the engine until all trials are done or a signal stops the run, and closes the runners.
func (s *Session) work(
	ctx context.Context, runners map[string]attemptRunner, closeRunners func() error,
) (engine.Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	helpCtx, endHelp := context.WithCancel(context.WithoutCancel(ctx))
	defer endHelp()
	var helpers sync.WaitGroup
	helpers.Go(func() {
		live := s.live()
		live.Note = s.meter.note
		s.options.Display.Show(helpCtx, live)
	})
	helpers.Go(func() { s.listen(helpCtx, stop, cancel) })
	helpers.Go(func() { s.watch(helpCtx) })
	helpers.Go(func() { s.keepStrips(helpCtx) })
	helpers.Go(func() { s.foresee(helpCtx) })
	helpers.Go(func() { s.still.Run(helpCtx) })
	helpers.Go(func() {
		select {
		case <-s.db.Broken(): // also if nobody would notice, for example while all lanes are paused
			cancel(s.db.WriteError())
		case <-helpCtx.Done():
		}
	})

	control, err := s.serveControl()
	if err != nil { // not a reason to give up the run
		s.note("orders cannot reach this run: " + err.Error())
	}
	summary, err := engine.Run(ctx, stop, s.engineConfig(runners))
	if err == nil {
		err = s.db.WriteError()
	}
	if n := s.unsaved.Load(); n > 0 {
		err = fmt.Errorf("%s: %w", s.unsavedText(int(n)), err)
	}
	err = errors.Join(err, closeRunners())
	close(s.ended)
	s.closeControl(control)
	endHelp()
	helpers.Wait()
	return summary, err
}

// unsavedText describes attempts that could not be saved.
func (s *Session) unsavedText(n int) string {
	stays, cost := "their trials stay", "they have cost"
	if n == 1 {
		stays, cost = "its trial stays", "it has cost"
	}
	text := fmt.Sprintf("%s could not be saved: %s pending", assay.Counted(n, "attempt"), stays)
	if s.journal.Owes() {
		text += ", and the next run stores what " + cost
	}
	return text
}

// listen stops the run softly at the first signal and at once at the second.
func (s *Session) listen(ctx context.Context, stop chan<- struct{}, abort context.CancelCauseFunc) {
	for n := 1; ; n++ {
		select {
		case <-s.options.Signals:
		case <-ctx.Done():
			return
		}
		switch n {
		case 1:
			s.meter.stop()
			close(stop)
			s.drainPools()
			s.options.Display.Stopping()
			if text := s.lockText(time.Now()); text != "" {
				s.note(text + "; a second Ctrl-C ends the run without them")
			}
		case 2:
			abort(engine.ErrStopped)
			s.db.GiveUp()
		}
	}
}

// drainPools interrupts turns that wait for limits, because the run ends.
func (s *Session) drainPools() {
	for _, p := range s.pools.ByModel {
		p.Drain()
	}
}

// wakeUp makes the engine check whether a model can start a trial.
func (s *Session) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // it will check anyway
	}
}

// note shows a note to the user and writes it to the log.
func (s *Session) note(text string) {
	s.meter.note(text)
	s.log.Warn(text)
}
