package dashboard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store"
)

// An index holds the fields of every attempt of an experiment that lists and filters need, in about
// 100 bytes an attempt. Its follow method is the only one that changes it.
type index struct {
	mu sync.RWMutex
	// recount says how the experiment stands, and which trials it plans.
	recount *job.Recount
	rows    []attemptRow // in the order in which attempts were saved
	groups  map[group]*group
	// first and newest are when attempts ended.
	first, newest time.Time
	lanes         map[laneKey]*laneCount
	faults        map[faultKey]*faultCount
	// last is the row ID of the latest attempt.
	last  int64
	total int // attempts in the store
	// snapshot is the state of the store that the index has. loaded is false until the store has
	// been read for the first time.
	snapshot string
	loaded   bool
	// journalAt is when the journal had changed whose attempts the recount has.
	journalAt time.Time
	// trouble is why the store could not be read for the first time.
	trouble string
}

type rowTrial [16]byte

// An attemptRow is an attempt.
type attemptRow struct {
	trial rowTrial
	*group
	task                         unique.Handle[assay.TaskID]
	Finished                     int64 // milliseconds since 1970
	Working                      int64 // milliseconds
	cost                         float64
	atLeast                      bool // the cost leaves something out
	Number, Turns, Calls, repeat uint16
}

// ID returns the ID of the trial.
func (r *attemptRow) ID() assay.TrialID { return r.trial.id() }

// Task returns the ID of the task.
func (r *attemptRow) Task() assay.TaskID { return r.task.Value() }

// A group has the fields that many attempts share.
type group struct {
	Cell   assay.Cell
	Lane   string
	Run    assay.RunID
	Ended  assay.Ended
	Cause  assay.Cause
	Level  assay.Level
	Fault  assay.FaultKind
	Parked bool
}

// A faultKey is a kind of fault on a lane.
type faultKey struct {
	kind assay.FaultKind
	lane string
}

// A faultCount counts the faults of one kind on one lane.
type faultCount struct {
	// Ended counts attempts that the fault ended, Parked the ended ones after which the run gave up
	// on the trial, and Retried the requests that were sent again.
	Ended, Parked, Retried int
	// Times are when attempts with the fault ended, in milliseconds since 1970, at most maxTimes.
	Times []int64
	// Trial and Attempt name the latest attempt with the fault.
	Trial   assay.TrialID
	Attempt int
}

const maxTimes = 5000

// A laneKey names a lane. Simulated models have a lane each under the same name. The models of
// other lanes are in their names, and several models may share one.
type laneKey struct{ model, lane string }

func keyOfLane(model, lane string) laneKey {
	if strings.Contains(lane, "/") {
		model = ""
	}
	return laneKey{model, lane}
}

// A laneCount sums up the attempts whose last request a lane served.
type laneCount struct {
	Attempts, Requests, Refused int
	InputTokens, CachedTokens   int
	AtLeast                     bool // USD leaves something out
	USD                         float64
	// turns has the seconds per turn of the latest outcomes, as a ring.
	turns [512]float32
	n     int
}

func (c *laneCount) add(a *assay.Attempt) {
	c.Attempts++
	c.Requests += a.Requests
	c.Refused += a.Retried[assay.RateLimited] + a.Retried[assay.Overloaded]
	c.InputTokens += a.InputTokens
	c.CachedTokens += a.CachedTokens
	c.USD = assay.RoundUSD(c.USD + a.CostUSD)
	c.AtLeast = c.AtLeast || a.AtLeast()
	if a.Settles() && a.Outcome.Turns > 0 {
		c.turns[c.n%len(c.turns)] = float32(a.WorkingMS) / 1000 / float32(a.Outcome.Turns)
		c.n++
	}
}

// quantile returns the seconds per turn that a share of the latest outcomes does not exceed, or 0.
func (c *laneCount) quantile(share float64) float64 {
	latest := slices.Clone(c.turns[:min(c.n, len(c.turns))])
	if len(latest) == 0 {
		return 0
	}
	slices.Sort(latest)
	return float64(latest[int(share*float64(len(latest)-1))])
}

func newIndex(r *job.Recount) *index {
	x := &index{recount: r}
	x.empty()
	return x
}

func (x *index) reset() {
	x.journalAt = time.Time{}
	x.recount.Reset()
	x.empty()
}

func (x *index) empty() {
	x.rows, x.groups = nil, make(map[group]*group)
	x.faults = make(map[faultKey]*faultCount)
	x.lanes = make(map[laneKey]*laneCount)
	x.first, x.newest, x.snapshot, x.last = time.Time{}, time.Time{}, "", 0
}

// tally returns the tally of the attempts so far.
func (x *index) tally() *job.Tally {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.recount.Tally
}

// follow adds the news from the store. It reads everything again if attempts were rescored or
// deleted.
func (x *index) follow(ctx context.Context, db *store.DB) error {
	news, err := db.List(ctx, x.snapshot)
	if errors.Is(err, store.ErrUnknownSnapshot) {
		x.locked(x.reset)
		news, err = db.List(ctx, "")
	}
	if err != nil || news.Snapshot == x.snapshot && x.loaded {
		return err
	}
	x.locked(func() { x.total = int(news.Last) })
	var some []store.Listed
	first := true
	flush := func() {
		for i := range some {
			x.add(&some[i])
		}
		some = some[:0]
	}
	for l, err := range news.All {
		if err != nil {
			return err
		}
		if first && l.Row <= x.last {
			x.locked(x.reset)
		}
		first = false
		if some = append(some, l); len(some) == 1000 {
			x.locked(flush)
		}
	}
	x.locked(flush)
	x.locked(func() { x.snapshot, x.loaded, x.trouble = news.Snapshot, true, "" })
	return nil
}

// readJournal counts the attempts that runs have left unfinished, if there may be others than before.
// A run knows its own.
func (x *index) readJournal(ctx context.Context, db *store.DB, run *terminal.Progress) error {
	if run != nil {
		x.locked(func() { x.recount.Begun(nil) })
		x.journalAt = time.Time{}
		return nil
	}
	at := db.JournalAt()
	if !x.isLoaded() || at.Equal(x.journalAt) {
		return nil
	}
	left, err := db.Left(ctx)
	if err == nil {
		x.locked(func() { x.recount.Begun(left.Attempts) })
		x.journalAt = at
	}
	return err
}

func (x *index) locked(do func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	do()
}

// add adds an attempt unless its trial is not planned.
func (x *index) add(l *store.Listed) {
	x.last = l.Row
	if !x.recount.Add(&l.Attempt) {
		return
	}
	k := keyOfLane(l.Model, l.Lane)
	if x.lanes[k] == nil {
		x.lanes[k] = new(laneCount)
	}
	x.lanes[k].add(&l.Attempt)
	if l.OnlyCosts() {
		return
	}
	g := group{
		Cell: l.Cell, Lane: l.Lane, Run: l.Run, Ended: l.Ended, Cause: l.Cause,
		Level: l.Level, Fault: l.FaultKind, Parked: l.Parked,
	}
	if x.groups[g] == nil {
		x.groups[g] = &g
	}
	if x.first.IsZero() || l.FinishedAt.Before(x.first) {
		x.first = l.FinishedAt
	}
	if l.FinishedAt.After(x.newest) {
		x.newest = l.FinishedAt
	}
	bill := l.Bill()
	x.rows = append(x.rows, attemptRow{
		trial: keyOf(l.ID), group: x.groups[g], task: unique.Make(l.Task), Finished: l.FinishedAt.UnixMilli(),
		Working: l.WorkingMS, cost: bill.USD, atLeast: bill.AtLeast(),
		Number: uint16(l.Number), Turns: uint16(l.Outcome.Turns), Calls: uint16(l.ToolCalls),
		repeat: uint16(l.Repeat),
	})
	x.countFaults(&l.Attempt)
}

func (x *index) countFaults(a *assay.Attempt) {
	at := func(kind assay.FaultKind) *faultCount {
		k := faultKey{kind, a.Lane}
		if x.faults[k] == nil {
			x.faults[k] = new(faultCount)
		}
		c := x.faults[k]
		c.Trial, c.Attempt = a.ID, a.Number
		if len(c.Times) < maxTimes {
			c.Times = append(c.Times, a.FinishedAt.UnixMilli())
		}
		return c
	}
	if !a.Settles() {
		c := at(a.FaultKind)
		c.Ended++
		if a.Parked {
			c.Parked++
		}
	}
	for kind, n := range a.Retried {
		at(kind).Retried += n
	}
}
