// Package live shows the progress of a run. A meter counts events and returns a
// [Progress], and a view shows it on a terminal, as plain lines or as JSON.
//
// The package cannot slow down a run or change its results. The meter only
// counts, and a slow view shows the progress less often.
package live

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/assay-eval/assay"
)

// Meter counts events. It is safe for concurrent use. It ignores events of
// models that were not announced.
type Meter struct {
	start    time.Time
	complete func(*Progress)

	mu       sync.Mutex // guards the fields below
	models   []*gauge   // in the order of announcement
	byName   map[string]*gauge
	stopping bool
	notes    []string
}

// gauge holds one model's counters.
type gauge struct {
	state  ModelState
	tokens rate
}

// NewMeter returns a meter for a run that starts now. Unless it is nil, complete adds to a progress
// the figures that the meter cannot count.
func NewMeter(complete func(*Progress)) *Meter {
	return &Meter{start: time.Now(), complete: complete, byName: make(map[string]*gauge)}
}

// Model announces a model with the number of its planned trials, of those that are done, and of
// those that are full successes.
func (m *Meter) Model(name string, planned, done, full int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := &gauge{state: ModelState{Model: name, Faults: make(map[assay.FaultKind]int)}}
	g.state.Planned, g.state.Done, g.state.Full = planned, done, full
	m.models = append(m.models, g)
	m.byName[name] = g
}

// Started counts the start of an episode.
func (m *Meter) Started(model string) { m.with(model, func(g *gauge) { g.state.InFlight++ }) }

// Settled counts the end of a started episode with an outcome, which may be full success.
func (m *Meter) Settled(model string, full bool) {
	m.with(model, func(g *gauge) {
		g.state.InFlight--
		g.state.Done++
		if full {
			g.state.Full++
		}
	})
}

// Faulted counts the end of a started episode without an outcome. If parked is
// true, the run gives up on the trial.
func (m *Meter) Faulted(model string, parked bool) {
	m.with(model, func(g *gauge) {
		g.state.InFlight--
		if parked {
			g.state.Parked++
		}
	})
}

// Request counts a request and the kind of its fault, if it failed.
func (m *Meter) Request(model string, fault assay.FaultKind, usage assay.Usage) {
	m.with(model, func(g *gauge) {
		g.state.Requests++
		if fault != "" {
			g.state.Faults[fault]++
		}
		g.tokens.add(time.Since(m.start), usage.Total())
	})
}

// Skipped counts a trial that a stop rule gave up.
func (m *Meter) Skipped(model string) { m.with(model, func(g *gauge) { g.state.Skipped++ }) }

// Requeued undoes the count of a parked trial.
func (m *Meter) Requeued(model string, wasParked bool) {
	m.with(model, func(g *gauge) {
		if wasParked {
			g.state.Parked--
		}
	})
}

// Closed records why a model cannot serve any more.
func (m *Meter) Closed(model, why string) {
	m.with(model, func(g *gauge) { g.state.Closed = why })
	m.Note(model + " is closed: " + why)
}

// maxNotes is the maximum number of notes in a run.
const maxNotes = 50

// Note adds a note unless it is already there. Its text may come from an
// endpoint, so Note makes it one line without control characters.
func (m *Meter) Note(text string) {
	text = OneLine(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.notes) > maxNotes || slices.Contains(m.notes, text):
	case len(m.notes) == maxNotes:
		m.notes = append(m.notes, "further notes are not shown")
	default:
		m.notes = append(m.notes, text)
	}
}

// OneLine returns a text as one line without control characters.
func OneLine(text string) string {
	separator := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	return strings.Join(strings.FieldsFunc(text, separator), " ")
}

// Stopping records that the run starts no new trials.
func (m *Meter) Stopping() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = true
}

func (m *Meter) with(model string, f func(*gauge)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g := m.byName[model]; g != nil {
		f(g)
	}
}

// Progress returns a copy of the current state.
func (m *Meter) Progress() Progress {
	p := m.read()
	if m.complete != nil {
		m.complete(&p) // without the mutex, because it may take others
	}
	return p
}

func (m *Meter) read() Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	elapsed := time.Since(m.start)
	p := Progress{
		Elapsed: elapsed.Seconds(), Stopping: m.stopping,
		Notes: slices.Clone(m.notes), Models: []ModelState{},
	}
	for _, g := range m.models {
		state := g.state
		state.Pending = state.Planned - state.Done - state.Parked - state.Skipped
		state.Faults = maps.Clone(g.state.Faults)
		state.TokensPerMinute = g.tokens.perMinute(elapsed)
		p.Models = append(p.Models, state)
	}
	return p
}

// rate sums amounts over the last minute in cells of one second. Times are
// measured from the start of the run and never decrease.
type rate struct {
	cells [60]int
	last  int // second of the newest cell
}

func (r *rate) add(at time.Duration, n int) {
	r.advance(at)
	r.cells[r.last%60] += n
}

func (r *rate) advance(to time.Duration) {
	second := int(to / time.Second)
	if second-r.last >= 60 {
		r.cells, r.last = [60]int{}, second
	}
	for r.last < second {
		r.last++
		r.cells[r.last%60] = 0
	}
}

// perMinute returns the rate over the time that the cells cover. It is 0 in the
// first second, which is too short for an estimate.
func (r *rate) perMinute(now time.Duration) float64 {
	r.advance(now)
	sum := 0
	for _, n := range r.cells {
		sum += n
	}
	covered := now - time.Duration(max(0, r.last-59))*time.Second
	if covered < time.Second {
		return 0
	}
	return float64(sum) * float64(time.Minute) / float64(covered)
}
