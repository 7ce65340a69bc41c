// Package live shows how a run goes: a meter folds events into snapshots, and
// a view shows them on a terminal, as plain lines or as JSON.
//
// Nothing here can slow a run or change its results: the meter only counts,
// and a view that lags sees fewer snapshots.
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

// Meter counts. It is safe for concurrent use. Events of models that it does
// not know are passed over.
type Meter struct {
	start time.Time
	waits func(model string) string

	mu       sync.Mutex // guards what follows
	models   []*gauge   // as announced
	byName   map[string]*gauge
	stopping bool
	notes    []string
}

// gauge is one model's counters.
type gauge struct {
	state  ModelState
	tokens rate
	ends   rate // of episodes, in outcomes
}

// NewMeter returns a meter of a run that begins now. Waits says what a model's
// requests wait for; it may be nil.
func NewMeter(waits func(model string) string) *Meter {
	if waits == nil {
		waits = func(string) string { return "" }
	}
	return &Meter{start: time.Now(), waits: waits, byName: make(map[string]*gauge)}
}

// Model announces a model, once, with what is planned and what is done already.
func (m *Meter) Model(name string, planned, done int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := &gauge{state: ModelState{Name: name, Planned: planned, Done: done, Faults: make(map[assay.FaultKind]int)}}
	m.models = append(m.models, g)
	m.byName[name] = g
}

// Started counts an episode in flight.
func (m *Meter) Started(model string) { m.with(model, func(g *gauge) { g.state.InFlight++ }) }

// Settled counts an episode that Started counted and that ended in an outcome.
func (m *Meter) Settled(model string) {
	m.with(model, func(g *gauge) {
		g.state.InFlight--
		g.state.Done++
		g.ends.add(time.Since(m.start), 1)
	})
}

// Faulted counts an episode that Started counted and that ended without an
// outcome. Parked says that the run gives its trial up.
func (m *Meter) Faulted(model string, parked bool) {
	m.with(model, func(g *gauge) {
		g.state.InFlight--
		if parked {
			g.state.Parked++
		}
	})
}

// Request counts an exchange, with the kind of its fault or "".
func (m *Meter) Request(model string, fault assay.FaultKind, usage assay.Usage) {
	m.with(model, func(g *gauge) {
		g.state.Requests++
		if fault != "" {
			g.state.Faults[fault]++
		}
		g.tokens.add(time.Since(m.start), usage.Total())
	})
}

// Skipped counts a trial that a stop rule gives up.
func (m *Meter) Skipped(model string) { m.with(model, func(g *gauge) { g.state.Skipped++ }) }

// Requeued takes back that a trial was given up.
func (m *Meter) Requeued(model string, wasParked bool) {
	m.with(model, func(g *gauge) {
		if wasParked {
			g.state.Parked--
		}
	})
}

// Closed says why a model can serve nothing more.
func (m *Meter) Closed(model, why string) {
	m.with(model, func(g *gauge) { g.state.Closed = why })
	m.Note(model + " is closed: " + why)
}

// maxNotes bounds the notes of a run.
const maxNotes = 50

// Note adds a note, once, as one line without control characters: its text can
// come from an endpoint.
func (m *Meter) Note(text string) {
	text = oneLine(text)
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

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }), " ")
}

// Stopping notes that the run starts nothing new.
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

// Snapshot returns the present state, which shares nothing with the meter.
func (m *Meter) Snapshot() Snapshot {
	s := m.read()
	for i := range s.Models { // without the mutex, for waits may take another
		s.Models[i].Waits = m.waits(s.Models[i].Name)
	}
	return s
}

func (m *Meter) read() Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	elapsed := time.Since(m.start)
	s := Snapshot{Elapsed: elapsed, Stopping: m.stopping, Notes: slices.Clone(m.notes)}
	for _, g := range m.models {
		state := g.state
		state.Faults = maps.Clone(g.state.Faults)
		state.TokensPerMinute = g.tokens.perMinute(elapsed)
		if pace := g.ends.perMinute(elapsed); pace > 0 && state.Closed == "" && !m.stopping {
			state.Left = time.Duration(float64(state.Pending()) / pace * float64(time.Minute))
		}
		s.Models = append(s.Models, state)
	}
	return s
}

// rate sums amounts over the last minute, in cells of a second. Its times
// count from the start of the run and never go back.
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

// perMinute divides by the time that the cells cover. Within the first second
// it is 0, for that says nothing yet.
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
