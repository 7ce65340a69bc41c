package job

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// Trials counts the planned trials of an experiment by how they stand. Each of them is in exactly one
// of the four states.
type Trials struct {
	Planned int `json:"planned"`
	// Done counts the trials that have an outcome from any run.
	Done int `json:"done"`
	// Pending counts the trials that are still to run, including those in flight.
	Pending int `json:"pending"`
	// Parked counts the trials that the latest run gave up because of faults, or because their model
	// could not serve any more.
	Parked int `json:"parked"`
	// Skipped counts the trials without an outcome in cells that stop rules have stopped, except for
	// those in flight.
	Skipped int `json:"skipped"`
}

// Add adds the counts of other trials.
func (t *Trials) Add(o Trials) {
	t.Planned += o.Planned
	t.Done += o.Done
	t.Pending += o.Pending
	t.Parked += o.Parked
	t.Skipped += o.Skipped
}

// Unfinished returns the number of trials that are pending or parked.
func (t *Trials) Unfinished() int { return t.Pending + t.Parked }

// A Standing is how the planned trials of a model, or of an experiment, stand, with what all attempts
// on disk at them have met and cost.
type Standing struct {
	Trials
	InFlight int `json:"in_flight"`
	// Full and Partial count full and partial successes among the trials that are done.
	Full    int `json:"full_success"`
	Partial int `json:"partial_success"`
	assay.FaultCount
	// Spent is what the attempts on disk have used, and those that have begun.
	Spent assay.Bill `json:"spent"`
	Begun Begun      `json:"begun,omitzero"`
}

// Add adds the counts of other trials.
func (s *Standing) Add(o Standing) {
	s.Trials.Add(o.Trials)
	s.InFlight += o.InFlight
	s.Full += o.Full
	s.Partial += o.Partial
	s.Merge(o.FaultCount)
	s.Spent.Add(o.Spent)
	s.Begun.Add(o.Begun)
}

// A RunCount counts what the attempts of one run came to. Interrupted ones are left out.
type RunCount struct {
	// Outcomes and Faults count the attempts that ended in either.
	Outcomes map[assay.Level]int
	Faults   map[assay.FaultKind]int
	// OtherSettings counts the attempts in which the endpoint reported another setting than was asked.
	OtherSettings map[string]int
}

// NewRunCount returns a count of no attempts.
func NewRunCount() *RunCount {
	return &RunCount{make(map[assay.Level]int), make(map[assay.FaultKind]int), make(map[string]int)}
}

func (c *RunCount) count(a *assay.Attempt) {
	if a.Settles() {
		c.Outcomes[a.Level]++
	} else {
		c.Faults[a.FaultKind]++
	}
	for _, what := range a.Unlike() {
		c.OtherSettings[a.Model+": "+what]++
	}
}

// Add adds the counts of other attempts.
func (c *RunCount) Add(o *RunCount) {
	addTo(c.Outcomes, o.Outcomes)
	addTo(c.Faults, o.Faults)
	addTo(c.OtherSettings, o.OtherSettings)
}

func addTo[K comparable](sum, more map[K]int) {
	for key, n := range more {
		sum[key] += n
	}
}

// Settled returns the number of attempts that ended in outcomes.
func (c *RunCount) Settled() int { return total(c.Outcomes) }

// Faulted returns the number of attempts that ended in faults.
func (c *RunCount) Faulted() int { return total(c.Faults) }

func total[K comparable](by map[K]int) (sum int) {
	for _, n := range by {
		sum += n
	}
	return sum
}

// A Tally is the only place that counts how an experiment stands. A run feeds it with what happens,
// and other processes with what the store holds; both then say the same. It is safe for concurrent
// use.
type Tally struct {
	rules *Stopper

	mu     sync.Mutex // guards the fields below
	models map[string]*modelCount
	cells  map[assay.Cell]*cellCount
	run    assay.RunID // the latest
	// parked has the trials without an outcome whose latest attempt was parked.
	parked map[assay.TrialID]parking
}

type modelCount struct {
	Standing // without its trials
	runs     map[assay.RunID]*RunCount
	closed   string
}

type cellCount struct {
	planned, done, inFlight int
	parked                  map[assay.RunID]int
}

// A parking is the attempt at which a run gave up on a trial, when, and why.
type parking struct {
	assay.Cell
	run    assay.RunID
	number int
	at     time.Time
	kind   assay.FaultKind
	reason string
}

// A Parked counts the trials of a model that the latest run gave up after faults of one kind, by the
// words of the faults. Latest has those of the latest one.
type Parked struct {
	Model   string
	Kind    assay.FaultKind
	Trials  int
	Reasons map[string]int
	Latest  string
}

// NewTally returns a tally of planned trials, of which none is done. The stopper judges the outcomes.
func NewTally(rules *Stopper, planned iter.Seq2[assay.Cell, int]) *Tally {
	t := &Tally{
		rules: rules, models: make(map[string]*modelCount), cells: make(map[assay.Cell]*cellCount),
		parked: make(map[assay.TrialID]parking),
	}
	for c, n := range planned {
		t.cell(c).planned += n
	}
	return t
}

func (t *Tally) cell(c assay.Cell) *cellCount {
	if t.cells[c] == nil {
		t.cells[c] = &cellCount{parked: make(map[assay.RunID]int)}
	}
	return t.cells[c]
}

func (t *Tally) model(name string) *modelCount {
	if t.models[name] == nil {
		t.models[name] = &modelCount{runs: make(map[assay.RunID]*RunCount)}
	}
	return t.models[name]
}

// empty returns a tally of the same trials with the same rules, of which none is done.
func (t *Tally) empty() *Tally {
	return NewTally(NewStopper(plan.Budgets{}, t.rules.rules), func(yield func(assay.Cell, int) bool) {
		for cell, c := range t.cells {
			if !yield(cell, c.planned) {
				return
			}
		}
	})
}

// Begin notes that an attempt at a trial begins. It ends with [Tally.Save] or [Tally.Drop].
func (t *Tally) Begin(c assay.Cell) { t.fly(c, 1) }

// Drop notes that an attempt that began counts for nothing but its cost.
func (t *Tally) Drop(c assay.Cell) { t.fly(c, -1) }

func (t *Tally) fly(c assay.Cell, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cell(c).inFlight += n
	t.model(c.Model).InFlight += n
}

// Save counts an attempt that began in this process and is on disk. It returns the stops that its
// outcome causes.
func (t *Tally) Save(a *assay.Attempt) []Stop {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !a.OnlyCosts() { // otherwise it is dropped, too
		t.cell(a.Cell).inFlight--
		t.model(a.Model).InFlight--
	}
	return t.countLocked(a, true)
}

// countLocked counts an attempt on disk. Its outcome settles the trial if it is the first one.
func (t *Tally) countLocked(a *assay.Attempt, first bool) (stops []Stop) {
	m, c := t.model(a.Model), t.cell(a.Cell)
	m.Spent.Add(a.Bill())
	if a.OnlyCosts() {
		return nil
	}
	m.FaultCount.Add(a)
	if m.runs[a.Run] == nil {
		m.runs[a.Run] = NewRunCount()
	}
	m.runs[a.Run].count(a)
	t.unparkLocked(a.ID)
	switch {
	case a.Settles() && first:
		c.done++
		switch a.Level {
		case assay.FullSuccess:
			m.Full++
		case assay.PartialSuccess:
			m.Partial++
		}
		return t.rules.Outcome(a.Cell, a.Level, a.Callless())
	case a.Parked && first:
		reason, _, _ := strings.Cut(a.FaultDetail, "\n")
		t.parked[a.ID] = parking{a.Cell, a.Run, a.Number, a.FinishedAt, a.FaultKind, reason}
		c.parked[a.Run]++
	}
	return nil
}

func (t *Tally) unparkLocked(id assay.TrialID) {
	if p, ok := t.parked[id]; ok {
		t.cell(p.Cell).parked[p.run]--
		delete(t.parked, id)
	}
}

// Unpark takes back a trial that was parked, and returns the number of the attempt that parked it. It is
// 0 if there is none.
func (t *Tally) Unpark(id assay.TrialID) (number int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	number = t.parked[id].number
	t.unparkLocked(id)
	return number
}

// Requeue takes back trials that were parked by the attempts with these numbers. Times would not do, because
// the clock of a machine may be set back during a run.
func (t *Tally) Requeue(parkedBy map[assay.TrialID]int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, number := range parkedBy {
		if t.parked[id].number <= number {
			t.unparkLocked(id)
		}
	}
}

// SetRun names the latest run. Earlier runs have parked and closed nothing for it.
func (t *Tally) SetRun(id assay.RunID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run = id
	for _, m := range t.models {
		m.closed = ""
	}
}

// Close notes that a model cannot serve any more in the latest run, which parks its pending trials.
func (t *Tally) Close(model, why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.model(model).closed = cmp.Or(t.model(model).closed, why)
}

// Closed returns why a model cannot serve any more, or "".
func (t *Tally) Closed(model string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.model(model).closed
}

// Standing returns how the trials of a model stand.
func (t *Tally) Standing(model string) Standing {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.model(model)
	s := m.Standing
	s.Merge(assay.FaultCount{}) // a copy of its maps
	s.Trials = t.trialsLocked(model)
	s.Spent.Add(s.Begun.Bill)
	if m.closed != "" {
		s.Parked += s.Pending - s.InFlight
		s.Pending = s.InFlight
	}
	return s
}

// trialsLocked counts the trials of a model as if it could serve.
func (t *Tally) trialsLocked(model string) (sum Trials) {
	for cell, c := range t.cells {
		if cell.Model == model {
			sum.Add(c.trials(t.rules.stopOf(cell) != nil, t.run))
		}
	}
	return sum
}

func (c *cellCount) trials(stopped bool, run assay.RunID) Trials {
	out := Trials{Planned: c.planned, Done: c.done}
	switch {
	case stopped:
		out.Pending = c.inFlight
		out.Skipped = c.planned - c.done - c.inFlight
	default:
		out.Parked = c.parked[run]
		out.Pending = c.planned - c.done - out.Parked
	}
	return out
}

// Cells returns the planned cells with their trials that are planned and done.
func (t *Tally) Cells() map[assay.Cell]Trials {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make(map[assay.Cell]Trials, len(t.cells))
	for cell, c := range t.cells {
		all[cell] = Trials{Planned: c.planned, Done: c.done}
	}
	return all
}

// Stops returns the stops that skip trials, with how many, by the names of their cells: the outcomes of
// one moment may be stored in another order than they are counted in.
func (t *Tally) Stops() []Stop {
	t.mu.Lock()
	defer t.mu.Unlock()
	stops := t.rules.Stops()
	slices.SortFunc(stops, func(a, b Stop) int { return cmp.Compare(cellName(a.Cell), cellName(b.Cell)) })
	for cell, c := range t.cells {
		stop := t.rules.stopOf(cell)
		if stop == nil {
			continue
		}
		at := slices.IndexFunc(stops, func(s Stop) bool { return s.Cell == stop.Cell })
		stops[at].Skipped += c.trials(true, "").Skipped
	}
	return slices.DeleteFunc(stops, func(s Stop) bool { return s.Skipped == 0 })
}

// InRun returns what the attempts of the latest run at the trials of a model came to.
func (t *Tally) InRun(model string) *RunCount { return t.inRuns(model, false) }

// InRuns returns what the attempts of all runs at the trials of a model came to.
func (t *Tally) InRuns(model string) *RunCount { return t.inRuns(model, true) }

func (t *Tally) inRuns(model string, all bool) *RunCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	sum := NewRunCount()
	for run, c := range t.model(model).runs {
		if all || run == t.run {
			sum.Add(c)
		}
	}
	return sum
}

// Parked lists the trials that are parked after faults, by model and kind of fault.
func (t *Tally) Parked() (all []Parked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	type key struct {
		model string
		kind  assay.FaultKind
	}
	groups, latest := make(map[key]*Parked), make(map[key]parking)
	for _, p := range t.parked {
		if p.run != t.run || t.rules.stopOf(p.Cell) != nil {
			continue
		}
		k := key{p.Model, p.kind}
		g := groups[k]
		if g == nil {
			g = &Parked{Model: p.Model, Kind: p.kind, Reasons: make(map[string]int)}
			groups[k] = g
		}
		g.Trials++
		g.Reasons[p.reason]++
		if l := latest[k]; cmp.Or(p.at.Compare(l.at), cmp.Compare(p.reason, l.reason)) > 0 {
			g.Latest, latest[k] = p.reason, p
		}
	}
	for _, g := range groups {
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b Parked) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Kind, b.Kind))
	})
	return all
}

// ParkedFor counts the parked trials by the reason, except for those of some models.
func (t *Tally) ParkedFor(except ...string) map[string]int {
	reasons := make(map[string]int)
	for _, p := range t.Parked() {
		if !slices.Contains(except, p.Model) {
			addTo(reasons, p.Reasons)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, m := range t.models {
		if rest := t.trialsLocked(name).Pending - m.InFlight; m.closed != "" && rest > 0 && !slices.Contains(except, name) {
			reasons[m.closed] += rest
		}
	}
	return reasons
}
