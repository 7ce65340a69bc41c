package dashboard

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// An index holds what lists and filters of trials need of every attempt of an experiment, in about
// 100 bytes an attempt. Its follow method is the only one that changes it.
type index struct {
	mu sync.RWMutex
	// planned has the trials of the plan.
	planned map[trialKey]struct{}
	rows    []row // in the order in which attempts were saved
	texts   dictionary
	cells   []assay.Cell
	cellAt  map[assay.Cell]uint32
	// parked has the trials whose latest attempt was parked and that are not settled.
	parked map[trialKey]assay.RunID
	counts counts
	lanes  map[laneKey]*laneCount
	faults map[faultKey]*faultCount
	// last is the row ID of the latest attempt.
	last  int64
	total int // attempts in the store
	// snapshot is the state of the store that the index has. loaded is false until the store has
	// been read for the first time.
	snapshot string
	loaded   bool
	// trouble is why the store could not be read for the first time.
	trouble string
}

type trialKey [16]byte

// A row is an attempt.
type row struct {
	trial    trialKey
	finished int64   // milliseconds since 1970
	working  int64   // milliseconds
	cost     float64 // in dollars; -1-cost if it leaves out what is unknown
	cell     uint32
	task     uint32 // texts: task, lane, run, and why it ended as it did
	lane     uint32
	run      uint32
	ended    uint32
	category uint32
	level    uint32
	fault    uint32
	number   uint16
	turns    uint16
	calls    uint16
	repeat   uint16
	parked   bool
}

// counts are sums over the attempts of the index.
type counts struct {
	Attempts, Done, Full, Partial, Faults int
	Tokens                                int
	// Unpriced counts the tokens with an unknown cost, which USD leaves out.
	Unpriced    int
	USD         float64
	First, Last time.Time
}

// A faultKey is a kind of fault on a lane.
type faultKey struct {
	kind assay.FaultKind
	lane string
}

// A faultCount counts the faults of one kind on one lane.
type faultCount struct {
	// Ended counts attempts that the fault ended, Parked those of them after which the run gave up
	// on the trial, and Retried the requests that were sent again.
	Ended, Parked, Retried int
	// Times are when attempts with the fault ended, in milliseconds since 1970, at most mostTimes.
	Times []int64
	// Trial and Attempt name the latest attempt with the fault.
	Trial   assay.TrialID
	Attempt int
}

const mostTimes = 5000

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
	Unpriced                    int
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
	c.USD += a.CostUSD
	c.Unpriced += a.UnpricedTokens
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

// A dictionary numbers texts.
type dictionary struct {
	texts []string
	at    map[string]uint32
}

func (d *dictionary) number(text string) uint32 {
	if n, ok := d.at[text]; ok {
		return n
	}
	if d.at == nil {
		d.at = make(map[string]uint32)
	}
	n := uint32(len(d.texts))
	d.texts = append(d.texts, text)
	d.at[text] = n
	return n
}

func newIndex(planned map[trialKey]struct{}) *index {
	x := &index{planned: planned}
	x.reset()
	return x
}

func (x *index) reset() {
	x.rows, x.texts, x.cells = nil, dictionary{}, nil
	x.cellAt = make(map[assay.Cell]uint32)
	x.parked = make(map[trialKey]assay.RunID)
	x.faults = make(map[faultKey]*faultCount)
	x.lanes = make(map[laneKey]*laneCount)
	x.counts, x.snapshot, x.last = counts{}, "", 0
}

// follow adds what is new in the store. It reads everything again if attempts were rescored or
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

func (x *index) locked(do func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	do()
}

// add adds an attempt unless its trial is not planned.
func (x *index) add(l *store.Listed) {
	key := keyOf(l.ID)
	x.last = l.Row
	if _, ok := x.planned[key]; !ok {
		return
	}
	cell, ok := x.cellAt[l.Cell]
	if !ok {
		cell = uint32(len(x.cells))
		x.cells = append(x.cells, l.Cell)
		x.cellAt[l.Cell] = cell
	}
	text := x.texts.number
	cost := l.CostUSD
	if l.UnpricedTokens > 0 {
		cost = -cost - 1
	}
	x.counts.Attempts++
	x.rows = append(x.rows, row{
		trial: key, finished: l.FinishedAt.UnixMilli(), working: l.WorkingMS, cost: cost,
		cell: cell, task: text(string(l.Task)), lane: text(l.Lane), run: text(string(l.Run)),
		ended: text(string(l.Ended)), category: text(l.ErrorCategory),
		level: text(string(l.Level)), fault: text(string(l.FaultKind)),
		number: uint16(l.Number), turns: uint16(l.Outcome.Turns), calls: uint16(l.ToolCalls),
		repeat: uint16(l.Repeat), parked: l.Parked,
	})
	k := keyOfLane(l.Model, l.Lane)
	if x.lanes[k] == nil {
		x.lanes[k] = new(laneCount)
	}
	x.lanes[k].add(&l.Attempt)
	x.count(key, &l.Attempt)
	x.countFaults(&l.Attempt)
}

func (x *index) count(key trialKey, a *assay.Attempt) {
	c := &x.counts
	c.Tokens += a.InputTokens + a.OutputTokens
	c.USD += a.CostUSD
	c.Unpriced += a.UnpricedTokens
	if c.First.IsZero() || a.FinishedAt.Before(c.First) {
		c.First = a.FinishedAt
	}
	if a.FinishedAt.After(c.Last) {
		c.Last = a.FinishedAt
	}
	delete(x.parked, key)
	switch {
	case a.Settles():
		c.Done++
		switch a.Level {
		case assay.FullSuccess:
			c.Full++
		case assay.PartialSuccess:
			c.Partial++
		}
	case a.Parked:
		x.parked[key] = a.Run
		fallthrough
	default:
		c.Faults++
	}
}

func (x *index) countFaults(a *assay.Attempt) {
	at := func(kind assay.FaultKind) *faultCount {
		k := faultKey{kind, a.Lane}
		if x.faults[k] == nil {
			x.faults[k] = new(faultCount)
		}
		c := x.faults[k]
		c.Trial, c.Attempt = a.ID, a.Number
		if len(c.Times) < mostTimes {
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
