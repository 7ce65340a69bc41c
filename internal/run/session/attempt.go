package session

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/agent/judge"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/store"
)

// engineConfig connects the engine to the pools, the store and the gate.
func (s *Session) engineConfig(runners map[string]attemptRunner) engine.Config {
	cfg := engine.Config{
		Attempt: func(ctx context.Context, trial *assay.Trial) (*assay.Attempt, *assay.Transcript) {
			a, tr := s.attempt(ctx, runners[trial.Model], trial)
			a.Experiment, a.Run, a.Program = s.Experiment.Name, s.id, s.options.Program
			a.Round = s.options.Retry[a.ID]
			return a, tr
		},
		Save:       s.save,
		Event:      s.event,
		Wake:       s.wake,
		Skip:       s.skip,
		Waits:      s.waits,
		Commands:   s.commands,
		MaxSilence: time.Duration(s.Experiment.Limits.Request),
	}
	s.court = judge.New(s.Library.Catalog(), time.Duration(s.Experiment.Limits.Trial))
	busy := make(map[*lane.Pool]int) // models of a pool that have trials to start
	s.sharedLimits = s.newSharedLimits()
	for _, name := range s.Experiment.Models {
		busy[s.pools.ByModel[name]]++
	}
	for _, name := range s.Experiment.Models {
		pool := s.pools.ByModel[name]
		exhausted := func() {
			if busy[pool]--; busy[pool] == 0 {
				pool.Exhausted()
			}
			s.sharedLimits.exhausted(name)
		}
		cfg.Models = append(cfg.Models, engine.Model{
			Name: name, Pending: s.pending(name),
			Admit: pool.Admit, Exhausted: exhausted,
			Closed: func() error { return cmp.Or(s.starters.givenUp(name), s.unaskable(name)) },
			Latest: func() time.Time { return s.repliedAt(name) },
			Hopeful: func() bool {
				return pool.Hopeful() || s.coordinator != nil && s.coordinator.Waits() || s.besideIsAsked()
			},
			Most: func() int { return s.most(name, pool) },
		})
	}
	return cfg
}

// most returns how many attempts of a model may be in flight.
func (s *Session) most(model string, pool *lane.Pool) int {
	n := 2*pool.Width() + 64
	if _, ok := s.pools.Agents[model]; ok {
		n = math.MaxInt // its concurrency counts
	}
	return s.sharedLimits.most(model, n)
}

func (s *Session) pending(model string) iter.Seq[assay.Trial] {
	return s.Plan.Some(model, func(place int) bool { return !s.leftOut[model].has(place) })
}

// places marks the trials of a model that the run leaves out, with one bit for each place in the
// plan.
type places []uint64

func (p places) has(place int) bool {
	return place/64 < len(p) && p[place/64]&(1<<(place%64)) != 0
}

func (p *places) add(place int) {
	for len(*p) <= place/64 {
		*p = append(*p, 0)
	}
	(*p)[place/64] |= 1 << (place % 64)
}

// recall finds out how the experiment stands before the run, and which trials the run leaves out:
// those that are done, or those that the user did not choose. It decides about the attempts that
// earlier runs have left.
func (s *Session) recall(ctx context.Context, left *store.Journal) error {
	r, err := s.recount(ctx)
	if err != nil {
		return err
	}
	s.tally, s.leftOut = r.Tally, make(map[string]*places)
	for _, m := range s.Experiment.Models {
		s.leftOut[m] = new(places)
	}
	groups := make(map[leveledTask]stat.Group)
	r.Each(func(p job.Planned) {
		if p.Done || !p.Kept {
			s.leftOut[p.Model].add(p.At)
		}
		if p.Done && p.Kept {
			of := leveledTask{p.Model, p.Task, p.Difficulty}
			g := groups[of]
			g.N++
			if p.Full {
				g.Full++
			}
			groups[of] = g
		}
	})
	for of, g := range groups {
		// Without the task, its sequence of tools is unknown, which a report takes for one more.
		task, _ := s.Library.Task(ctx, of.task, of.difficulty)
		s.meter.recall(of.model, of.task, task.Required, g)
	}
	for _, stop := range s.stopper.Stops() {
		s.note(stop.String())
	}
	return s.resume(ctx, left, r)
}

// recount counts what the store has. Trials that the user chose are to be done again.
func (s *Session) recount(ctx context.Context) (*job.Recount, error) {
	if s.options.Retry == nil {
		return s.Recount(ctx, s.db, s.stopper, nil)
	}
	if s.Experiment.Stop != (plan.StopRules{}) {
		none := func(*assay.Trial) bool { return false }
		if _, err := s.Recount(ctx, s.db, s.stopper, none); err != nil {
			return nil, err
		}
	}
	return s.NewRecount(s.stopper, func(t *assay.Trial) bool {
		_, chosen := s.options.Retry[t.ID]
		return chosen
	}), nil
}

// A leveledTask is a task at a difficulty with the outcomes of a model.
type leveledTask struct {
	model      string
	task       assay.TaskID
	difficulty string
}

func (s *Session) attempt(
	ctx context.Context, runner attemptRunner, trial *assay.Trial,
) (*assay.Attempt, *assay.Transcript) {
	task, err := s.tasks.Task(ctx, trial)
	if err != nil {
		return noTask(ctx, trial, err), &assay.Transcript{}
	}
	s.flights.begin(trial)
	defer s.flights.does(trial.ID, Saving)
	began := time.Now()
	g := newGate(ctx, s, trial)
	provider, err := s.provider(ctx, g)
	if err != nil {
		a := noTask(ctx, trial, err)
		a.Parked = a.FaultKind == assay.Harness
		return a, &assay.Transcript{}
	}
	a, t := runner.Run(ctx, provider, trial, task)
	s.court.Attend(ctx, g, a, task, t)
	a.Charge(g.close())
	s.holdBack(a)
	if a.FaultKind == assay.Interrupted {
		s.stopper.Interrupted(trial.Cell)
	}
	if s.coordinator == nil { // otherwise the worker's machine counts
		s.still.Excuse(a, t, began, s.pools.Agents[trial.Model].Timeout)
	}
	return a, t
}

// holdBack interrupts an attempt that ended in a fault because a model that it needs cannot be asked any
// more, if its replies are in the journal: what they cost is lost otherwise, also when it is the judge who
// is missing. It goes on when that model can be asked again.
func (s *Session) holdBack(a *assay.Attempt) {
	if a.Settles() || a.FaultKind == assay.Interrupted || !s.leaves(a.ID) {
		return
	}
	if err := s.unaskable(a.Model); err != nil {
		a.FaultKind, a.FaultDetail, a.Parked = assay.Interrupted, err.Error(), false
	}
}

// noTask returns the attempt at a trial whose task cannot be read.
func noTask(ctx context.Context, trial *assay.Trial, err error) *assay.Attempt {
	kind := assay.Harness
	if ctx.Err() != nil {
		kind = assay.Interrupted
	}
	now := time.Now().UTC()
	return &assay.Attempt{
		Trial: *trial, FaultKind: kind, FaultDetail: err.Error(),
		Templates: episode.TemplatesHash, StartedAt: now, FinishedAt: now,
	}
}

// limitsSpending reports whether the experiment limits tokens or dollars.
func (s *Session) limitsSpending() bool {
	l, b := s.Experiment.Limits, s.Experiment.Budget
	return l.Tokens > 0 || l.USD > 0 || b != (plan.Budgets{})
}

// skip returns why a trial must not start, or "".
func (s *Session) skip(t *assay.Trial) string {
	reason, rule := s.stopper.Skip(t.Cell)
	if reason != "" && !rule {
		s.note(reason + "; its trials stay pending")
	}
	return reason
}

// waits reports whether a trial waits until others have ended, for the sake of a budget.
func (s *Session) waits(t *assay.Trial) bool {
	if !s.stopper.Waits(t.Cell) {
		return false
	}
	if !s.knows(t.Model + ": budget") {
		s.note("fewer trials of " + t.Model + " are in flight than could be, because a budget would " +
			"probably not suffice for all of them")
	}
	return true
}

// save stores an attempt and then writes its episode next to the log if it is selected. One that was
// interrupted and has replies stays in the journal.
func (s *Session) save(ctx context.Context, a *assay.Attempt, t *assay.Transcript) error {
	if a.FaultKind == assay.Interrupted && s.leaves(a.ID) {
		return nil
	}
	began := time.Now()
	err := s.db.Save(ctx, a, t)
	if s.coordinator != nil {
		s.coordinator.Conclude(a.ID)
	}
	switch {
	case err == nil:
		s.journal.Write(store.JournalEntry{ID: a.ID, Over: true})
		for _, stop := range s.tally.Save(a) {
			s.note(stop.String())
		}
		if a.FaultKind != assay.Interrupted {
			s.saved(a, t, began)
		}
		s.runlog.Episode(a.ID, a.Number, t, a)
	case !errors.Is(err, context.Canceled):
		s.unsaved.Add(1)
		s.log.Error("attempt not saved", "trial", a.ID, "error", err.Error())
	}
	return err
}

// event updates the tally, the meter and the log.
func (s *Session) event(e engine.Event) {
	s.sharedLimits.count(e)
	switch e.Kind {
	case engine.Started:
		s.tally.Begin(e.Trial.Cell)
		s.stopper.Begin(e.Trial)
	case engine.Settled:
		s.outlook.outcome(e.Attempt)
		s.meter.settled(e.Attempt)
	case engine.Dropped:
		s.stopper.End(e.Trial, nil)
		s.tally.Drop(e.Trial.Cell)
		s.flights.end(e.Trial.ID)
		switch {
		case e.Err != nil: // the run ends
			s.drainPools()
		case !s.leaves(e.Trial.ID):
			s.journal.Write(store.JournalEntry{ID: e.Trial.ID, Over: true})
		}
		if s.coordinator != nil {
			s.coordinator.Conclude(e.Trial.ID)
		}
	case engine.Requeued:
		if number := s.tally.Unpark(e.Trial.ID); e.WasParked {
			s.requeued.add(e.Trial.ID, number)
		}
	case engine.ModelClosed:
		s.tally.Close(e.Model, e.Err.Error())
		s.note(e.Model + " is closed: " + e.Err.Error())
	}
	s.logEvent(e)
	if a := e.Attempt; a != nil {
		s.stopper.End(&a.Trial, a)
		s.flights.end(a.ID)
		s.starters.ended(a)
		s.noteDeviations(a)
		s.noteOtherSettings(a)
	}
}

// scripted reports whether faults of a kind come from a script that users wrote.
func (s *Session) scripted(kind assay.FaultKind) bool {
	return kind == assay.ToolServer && s.Library.Catalog().Server() == nil
}

// noteDeviations informs the user once that an agent made or changed calls without its model, and
// that an endpoint does not accept a setting, unless the run began with that note.
func (s *Session) noteDeviations(a *assay.Attempt) {
	calls, others := a.Deviating()
	show := s.options.Words.Hint(assay.HintShow, assay.StorePath(s.options.Store))
	if a.Unmetered && a.Settles() && !s.knows(a.Model+": unmetered") {
		s.note(a.Model + " asks no model through Assay, so its model, tokens and dollars are unknown, and " +
			"its outcomes may be those of another model")
	}
	if calls[assay.CallsUnasked] > 0 && !s.knows(a.Model+": unasked") {
		s.note(a.Model + " made calls that no reply of its model asked for; if it asks another " +
			"model past the gateway, tokens and dollars are too low")
	}
	if calls[assay.CallsChanged] > 0 && !s.knows(a.Model+": changed") {
		s.note("the framework of " + a.Model + " changed calls between the model's reply and the tool " +
			"server; " + show)
	}
	if calls[assay.CallsLost]+calls[assay.CallsLate] > 0 && !s.knows(a.Model+": lost") {
		s.note(a.Model + " did not carry out calls that its model asked for, or not in the order of " +
			"the reply; " + show)
	}
	for _, d := range others {
		setting, left := strings.CutPrefix(d, "no ")
		known := func(note string) bool { return left && strings.Contains(note, setting) }
		if s.knows(a.Model+": "+d) || slices.ContainsFunc(s.pools.Notes, known) {
			continue
		}
		s.note("requests for " + a.Model + " differ from what the experiment asks, because the " +
			"endpoint does not accept it: " + d)
	}
}

// noteOtherSettings informs the user once that an endpoint reports to have used another setting than
// the requested one.
func (s *Session) noteOtherSettings(a *assay.Attempt) {
	for _, d := range a.Unlike() {
		d = a.Model + ": " + d
		if !s.knows(d) {
			s.note(d + ", according to the endpoint")
		}
	}
}

// knows reports whether the user knows about something, and remembers it.
func (s *Session) knows(what string) bool {
	_, known := s.noted.LoadOrStore(what, true)
	return known
}

// observe counts a request that has ended. An interrupted one, which the user stopped or another
// request overtook, is not a fault.
func (s *Session) observe(x lane.Exchange) {
	kind := assay.FaultKind("")
	if x.Fault != nil && x.Fault.Kind != assay.Interrupted {
		kind = x.Fault.Kind
		s.noteFault(x.Lane, x.Fault)
	}
	s.logExchange(x)
	s.observed(func(o Observer) { o.Request(x) })
	s.meter.request(x, kind)
	if x.Fault == nil {
		s.outlook.replied(x.Model)
	}
}

// repliedAt returns when a model replied last, or when the machine went on after that, because no
// reply could come while it was suspended.
func (s *Session) repliedAt(model string) time.Time {
	resumed := s.still.Resumed(time.Duration(s.Experiment.Limits.Request) / 10)
	at := s.meter.repliedAt(model)
	if !at.IsZero() && resumed.After(at) {
		return resumed
	}
	return at
}

// noteFault notes the first fault of each kind on each lane.
func (s *Session) noteFault(lane string, f *assay.Fault) {
	if !s.knows(lane + " " + string(f.Kind)) {
		s.note(strings.ReplaceAll(f.Error(), "\n", "; "))
	}
}
