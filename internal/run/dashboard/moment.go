package dashboard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store"
)

// A moment is the state of an experiment at one time. All live pages of one time show the same
// moment, so their numbers agree.
type moment struct {
	At         time.Time
	Experiment string
	// Loaded is false while attempts are read for the first time. Total is the number of attempts.
	Loaded bool
	Total  int
	// Attempts counts those that were read, and First and Newest are when they ended.
	Attempts      int
	First, Newest time.Time
	// Standing is that of the run if it works on the whole experiment, and else that of the store.
	job.Standing
	// Killed counts the runs that neither work nor wrote their end.
	Killed int
	// OneModel is true if the experiment has a single model.
	OneModel bool
	// Run is nil if no run works on the experiment.
	Run     *terminal.Progress
	Flights []session.Flight
	Strips  []session.LaneStrip
	// Headline has the lines with which the report begins, if no run works.
	Headline []document.Point
	// Last is the latest run, with its ID "" if there has been no run. Runs counts all of them.
	Last store.Run
	Runs int
	// Ended is the summary of Last if it has ended.
	Ended  session.Summary
	Lanes  []laneLine
	Faults []faultLine
	Series series
	// Unread counts the attempts of the store that cannot be read or proved, and UnreadRows the
	// other rows.
	Unread, UnreadRows int
	Rescue             string // advice about these
	// Trouble is why the moment may not be up to date, or "".
	Trouble string
}

// A laneLine describes one lane.
type laneLine struct {
	Model, Lane string
	State       *terminal.LaneState // nil if no run is working
	Waiting     int                 // requests of its models
	Strip       session.LaneStrip
	Lost        float64 // share of the strip that was not used
	Closed      string
	laneCount
	P50, P95 float64
}

// Name names the lane, with its model if the name of the lane lacks it.
func (l laneLine) Name() string { return strings.TrimSpace(l.Model + " " + l.Lane) }

// OrderName is the name of the lane in an order.
func (l laneLine) OrderName() string { return cmp.Or(l.Model, l.Lane) }

// Used returns the share of the lane's tightest limit that was in use while there was something to do.
func (l laneLine) Used() float64 { return 1 - l.Lost }

// Cached returns the share of the input tokens that the endpoint had cached.
func (l laneLine) Cached() float64 {
	return float64(l.CachedTokens) / float64(max(1, l.InputTokens))
}

// A faultLine describes the faults of one kind on one lane.
type faultLine struct {
	Kind assay.FaultKind
	Lane string
	faultCount
	Handling, Meaning string
	Bars              []int // faults by time
}

// KindName returns the kind as text.
func (l faultLine) KindName() string { return string(l.Kind) }

// look returns the present moment.
func (s *Server) look(ctx context.Context) *moment {
	models := s.job.Experiment.Models
	m := &moment{At: time.Now(), Experiment: s.name, OneModel: len(models) == 1}
	note := func(err error) {
		if err != nil && m.Trouble == "" && ctx.Err() == nil {
			m.Trouble = s.options.Words.Of(err)
		}
	}
	if s.index.isLoaded() {
		note(s.index.follow(ctx, s.db))
	}
	tally := s.index.tally()
	runs, err := session.Follow(ctx, s.db, s.name, models, tally)
	note(err)
	m.Runs, m.Last, m.Ended, m.Killed = len(runs.All), runs.Last(), runs.Ended, runs.Killed
	if err := s.ask(ctx, m); !errors.Is(err, session.ErrNoRun) {
		note(err)
	}
	note(s.index.readJournal(ctx, s.db, m.Run))
	if m.Run == nil && m.Runs > 0 {
		m.Strips, err = session.StripsOf(m.Last)
		note(err)
		if g := s.grid.Load(); g != nil && g.of == s.index.stateAt(m.Last) {
			m.Headline = g.Headline
		}
	}
	for _, name := range models {
		m.Standing.Add(tally.Standing(name))
	}
	switch {
	case m.Run != nil && m.Run.Planned == m.Planned:
		m.Standing = m.Run.Standing
	case m.Run != nil:
		m.Begun = m.Run.Begun
		m.Spent.Add(m.Begun.Bill)
	}
	s.index.describe(m)
	m.Unread, m.UnreadRows = s.db.Skipped(), s.db.SkippedRows()
	m.Rescue = s.options.Words.Hint(assay.HintLoss, assay.StorePath(s.store))
	return m
}

// ask asks the run that works on the store for its state, and keeps it if the run works on this
// experiment. It returns [session.ErrNoRun] if there is no run or it ends before it has answered.
func (s *Server) ask(ctx context.Context, m *moment) error {
	status, err := session.Send(ctx, s.store, session.Order{Do: "status"})
	if err != nil || status.Run == nil || status.Run.Experiment != s.name {
		return err
	}
	flights, err := session.Send(ctx, s.store, session.Order{Do: "flights"})
	if err != nil {
		return err
	}
	strips, err := session.Send(ctx, s.store, session.Order{Do: "strips"})
	if err != nil {
		return err
	}
	m.Run, m.Flights, m.Strips = status.Run, flights.Flights, strips.Strips
	return nil
}

func (x *index) isLoaded() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.loaded
}

// describe adds the figures of the index to a moment.
func (x *index) describe(m *moment) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	m.Attempts, m.First, m.Newest, m.Loaded = len(x.rows), x.first, x.newest, x.loaded
	m.Total, m.Trouble = x.total, cmp.Or(m.Trouble, x.trouble)
	m.Lanes = x.laneLines(m)
	m.Faults = x.faultLines()
	m.Series = x.series(m)
}

// laneLines returns the lanes, those that lost most of their capacity first.
func (x *index) laneLines(m *moment) (all []laneLine) {
	at := make(map[laneKey]int)
	line := func(k laneKey) *laneLine {
		if _, ok := at[k]; !ok {
			at[k] = len(all)
			l := laneLine{Model: k.model, Lane: k.lane}
			if c := x.lanes[k]; c != nil {
				l.laneCount, l.P50, l.P95 = *c, c.quantile(.5), c.quantile(.95)
			}
			all = append(all, l)
		}
		return &all[at[k]]
	}
	for _, s := range m.Strips {
		l := line(keyOfLane(s.Model, s.Lane))
		l.Strip, l.Lost = s, lost(s)
	}
	if m.Run != nil {
		for _, model := range m.Run.Models {
			for _, state := range model.Lanes {
				l := line(keyOfLane(model.Model, state.Lane))
				l.State, l.Waiting = &state, l.Waiting+model.Waiting
				if why, closed := strings.CutPrefix(state.Waits, "closed: "); closed {
					l.Closed = why
				}
			}
		}
	}
	for _, s := range m.Ended.Lanes {
		line(keyOfLane(s.Model, s.Lane)).Closed = s.Closed
	}
	for k := range x.lanes {
		if k.lane != "" {
			line(k)
		}
	}
	slices.SortFunc(all, func(a, b laneLine) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(a.Lane, b.Lane),
			cmp.Compare(a.Model, b.Model))
	})
	return all
}

// lost returns the share of a lane's time that was neither used nor idle for lack of trials.
func lost(s session.LaneStrip) float64 {
	sum, n := 0., 0
	for i, used := range s.Used {
		if s.States[i] != session.LaneIdle {
			sum, n = sum+1-used, n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// faultBars is the number of bars that show when faults happened.
const faultBars = 48

func (x *index) faultLines() (all []faultLine) {
	begin, end := x.first.UnixMilli(), x.newest.UnixMilli()
	for k, c := range x.faults {
		l := faultLine{Kind: k.kind, Lane: k.lane, faultCount: *c, Bars: make([]int, faultBars)}
		for _, at := range c.Times {
			i := 0
			if end > begin {
				i = int((at - begin) * (faultBars - 1) / (end - begin))
			}
			l.Bars[min(max(i, 0), faultBars-1)]++
		}
		l.Times = nil
		for _, rule := range assay.FaultTable {
			if rule.Kind == k.kind {
				l.Meaning, l.Handling = rule.When, rule.Then
			}
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b faultLine) int {
		return cmp.Or(cmp.Compare(b.Ended, a.Ended), cmp.Compare(b.Retried, a.Retried),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Lane, b.Lane))
	})
	return all
}
