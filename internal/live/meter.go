// Package live shows how a run goes: a meter folds events into snapshots, and
// a view shows them on a terminal, as plain lines or as JSON.
//
// Nothing here can slow a run or change its results: the meter only counts,
// and a view that lags sees fewer snapshots.
package live

import (
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

// A Snapshot is the state of a run at one moment.
type Snapshot struct {
	Elapsed time.Duration
	Models  []ModelState
	// Stopping says that the run starts nothing new.
	Stopping bool
	// Notes are what the user should know, oldest first; only added to.
	Notes []string
}

// A ModelState is one model's part of a [Snapshot].
type ModelState struct {
	Name string
	// Planned counts the experiment's trials of the model, Done those with an
	// outcome, of this run or an earlier one.
	Planned, Done int
	// Parked counts the trials that this run gave up.
	Parked   int
	InFlight int // episodes
	// Requests counts exchanges; Faults those of them that failed, by kind.
	Requests int
	Faults   map[assay.FaultKind]int
	// TokensPerMinute is over the last minute, or since the start.
	TokensPerMinute float64
	// Waits says what requests of the model wait for now; empty for nothing.
	Waits string
	// Left is the time until the model is done at the pace of the last minute;
	// 0 when that is not known.
	Left   time.Duration
	Closed string
}

// Owed is how many trials have no outcome and were not given up.
func (m ModelState) Owed() int { return m.Planned - m.Done - m.Parked }

// Total sums the models up; it has no name and waits for nothing.
func (s Snapshot) Total() ModelState {
	total := ModelState{Name: "all", Faults: make(map[assay.FaultKind]int)}
	for _, m := range s.Models {
		total.Planned += m.Planned
		total.Done += m.Done
		total.Parked += m.Parked
		total.InFlight += m.InFlight
		total.Requests += m.Requests
		total.TokensPerMinute += m.TokensPerMinute
		total.Left = max(total.Left, m.Left)
		for k, n := range m.Faults {
			total.Faults[k] += n
		}
	}
	return total
}

// Meter counts. It is safe for concurrent use.
type Meter struct {
	start time.Time
	waits func(model string) string

	mu       sync.Mutex
	models   []*gauge
	byName   map[string]*gauge
	stopping bool
	notes    []string
}

// gauge is one model's counters.
type gauge struct {
	state  ModelState
	tokens rate
	ends   rate
}

// NewMeter returns a meter. Waits says what a model's requests wait for; it
// may be nil.
func NewMeter(waits func(model string) string) *Meter {
	if waits == nil {
		waits = func(string) string { return "" }
	}
	return &Meter{start: time.Now(), waits: waits, byName: make(map[string]*gauge)}
}

// Model announces a model with what is planned and what is done already.
func (m *Meter) Model(name string, planned, done int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := &gauge{state: ModelState{Name: name, Planned: planned, Done: done, Faults: make(map[assay.FaultKind]int)}}
	m.models = append(m.models, g)
	m.byName[name] = g
}

// Started counts an episode in flight.
func (m *Meter) Started(model string) { m.with(model, func(g *gauge) { g.state.InFlight++ }) }

// Settled counts an episode that ended in an outcome.
func (m *Meter) Settled(model string) {
	m.with(model, func(g *gauge) {
		g.state.InFlight--
		g.state.Done++
		g.ends.add(time.Now(), 1)
	})
}

// Faulted counts an episode that ended without an outcome.
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
		g.tokens.add(time.Now(), usage.Total())
	})
}

// Closed notes why a model can serve nothing more.
func (m *Meter) Closed(model, why string) {
	m.with(model, func(g *gauge) { g.state.Closed = why })
}

// maxNotes bounds the notes of a run.
const maxNotes = 50

// Note adds a note, once.
func (m *Meter) Note(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.notes) < maxNotes && !slices.Contains(m.notes, text) {
		m.notes = append(m.notes, text)
	}
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

// Snapshot returns the present state.
func (m *Meter) Snapshot() Snapshot {
	now := time.Now()
	s := m.count(now)
	for i := range s.Models {
		s.Models[i].Waits = m.waits(s.Models[i].Name)
	}
	return s
}

func (m *Meter) count(now time.Time) Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Snapshot{Elapsed: now.Sub(m.start), Stopping: m.stopping, Notes: slices.Clone(m.notes)}
	for _, g := range m.models {
		state := g.state
		state.Faults = make(map[assay.FaultKind]int, len(g.state.Faults))
		for k, n := range g.state.Faults {
			state.Faults[k] = n
		}
		state.TokensPerMinute = g.tokens.perMinute(now, m.start)
		if pace := g.ends.perMinute(now, m.start); pace > 0 {
			state.Left = time.Duration(float64(state.Owed()) / pace * float64(time.Minute))
		}
		s.Models = append(s.Models, state)
	}
	return s
}

// rate sums amounts over the last minute in cells of a second.
type rate struct {
	cells [60]int
	last  int64 // second of the newest cell
}

func (r *rate) add(now time.Time, n int) {
	r.advance(now.Unix())
	r.cells[now.Unix()%60] += n
}

func (r *rate) advance(second int64) {
	if second-r.last >= 60 {
		r.cells = [60]int{}
		r.last = second
	}
	for r.last < second {
		r.last++
		r.cells[r.last%60] = 0
	}
}

func (r *rate) perMinute(now, start time.Time) float64 {
	r.advance(now.Unix())
	sum := 0
	for _, n := range r.cells {
		sum += n
	}
	span := min(time.Minute, now.Sub(start))
	if span < time.Second {
		return 0
	}
	return float64(sum) * float64(time.Minute) / float64(span)
}
