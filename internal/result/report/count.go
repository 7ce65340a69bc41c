package report

import (
	"encoding/hex"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A taskCause is a cause at a task.
type taskCause struct {
	cause assay.Cause
	task  task
}

// A record is a planned trial. A report may have a million of them.
type record struct {
	cell     *cell
	task     task
	repeat   int32
	replay   int32
	unpriced int32  // tokens of unknown cost
	counts   uint32 // a bit for each kind of its outcome; 0 without one
	blocked  uint8  // 1 + the place of the first of [contentFaults] that it has met; 0 without one
	effects  effects
	best     float64
	usd      float64 // of all attempts
	trialFacts
}

func (r *record) settled() bool { return r.counts != 0 } // done is one of the kinds

func (r *record) outcomes() (out outcomes) {
	for k := range out {
		out[k] = int32(r.counts >> k & 1)
	}
	return out
}

// A counted experiment has its cells in the order of tables, and its trials.
type counted struct {
	cells   []*cell
	records []record
	// runs has more of the outcomes of records, if a task is repeated.
	runs runs
	// asksHarm means that the experiment says something about harm: a tool states the severity of its
	// effect, or something happened that nobody asked for.
	asksHarm bool
	design   Design
	// tasks names the tasks by number, and failures has a trial of each kind.
	tasks    []assay.TaskID
	failures map[failure]*Example
}

// A failure is a kind of outcome that is not full success: the outcomes of a cell with a cause,
// or of a model at a task.
type failure struct {
	cell  *cell // nil for a model's failures at a task
	cause assay.Cause
	model string
	task  task
}

// fail remembers the failed trial whose ID comes first, because the order of attempts is up to
// chance.
func (x *counted) fail(id assay.TrialID, c *cell, cause assay.Cause, of task) {
	e := &Example{id, &c.Cell, cause}
	for _, f := range []failure{{cell: c, cause: cause}, {model: c.Model, task: of}} {
		if first := x.failures[f]; first == nil || id < first.Trial {
			x.failures[f] = e
		}
	}
}

// countAll counts trials and attempts by cell.
func countAll(
	trials iter.Seq[assay.Trial],
	attempts iter.Seq2[assay.Attempt, error],
	from *population[task],
	d Design,
) (*counted, error) {
	x := &counted{failures: make(map[failure]*Example), design: d, asksHarm: d.StatesHarm}
	var cells []*cell
	index := make(map[assay.Cell]int32)
	known := make(map[[16]byte]int32) // places in records
	tasks := make(map[assay.TaskID]task)
	asked := false
	for trial := range trials {
		c, ok := index[trial.Cell]
		if !ok {
			c = int32(len(cells))
			index[trial.Cell] = c
			cells = append(cells, &cell{
				Cell: trial.Cell, sampling: trial.Sampling, runs: make(map[assay.RunID]int),
				tally: tally{from: from},
			})
		}
		asked = asked || trial.AsksConfidence
		cells[c].plan(trial.Repeat, trial.Replay)
		of, ok := tasks[trial.Task]
		if !ok {
			of = task(len(tasks))
			tasks[trial.Task] = of
			x.tasks = append(x.tasks, trial.Task)
		}
		known[key(trial.ID)] = int32(len(x.records))
		x.records = append(x.records, record{
			cell: cells[c], task: of, repeat: int32(trial.Repeat), replay: int32(trial.Replay),
			trialFacts: d.facts(&trial),
		})
	}
	x.runs.begin(x.records, asked)
	var a assay.Attempt // one for all, because outcomes point at it
	o := &outcome{Attempt: &a}
	for next, err := range attempts {
		if err != nil {
			return nil, err
		}
		a = next
		at, ok := known[key(a.ID)]
		if !ok {
			continue
		}
		r := &x.records[at]
		c := r.cell
		o.task, o.trialFacts = r.task, r.trialFacts
		if o.floor, o.floorKnown = 0, false; a.Settles() {
			var ceiling *float64
			if o.measured() {
				ceiling = &a.Best
			}
			o.floor, o.floorKnown = d.floor(c.Cell, ceiling)
		}
		a.Cell, a.Sampling = c.Cell, c.sampling // attempts may lack their trials
		c.pay(o)
		r.usd += a.CostUSD
		r.unpriced += int32(a.UnpricedTokens)
		if i := slices.Index(contentFaults[:], a.FaultKind); i >= 0 && r.blocked == 0 {
			r.blocked = uint8(i) + 1
		}
		if r.settled() || !a.Settles() || a.Superseded {
			continue
		}
		r.counts, r.best = c.settle(o), a.Best
		r.effects = effectsOf(&a)
		x.asksHarm = x.asksHarm || r.effects > compliant
		x.runs.add(at, &a)
		c.runs[a.Run]++
		if !o.full() {
			x.fail(a.ID, c, a.Cause, r.task)
		}
	}
	for i := range x.records {
		if r := &x.records[i]; r.blocked > 0 && !r.settled() {
			r.cell.blocked[r.blocked-1]++
		}
	}
	for _, c := range cells {
		if !slices.Contains(d.Models, c.Model) {
			d.Models = append(d.Models, c.Model)
		}
	}
	slices.SortStableFunc(cells, func(a, b *cell) int { return d.Compare(a.Cell, b.Cell) })
	x.cells = cells
	return x, nil
}

// facts returns what the plan knows of a trial.
func (d Design) facts(t *assay.Trial) trialFacts {
	flawed := IsFlawed(t.Variant)
	return trialFacts{
		hurts:      flawed && (d.Hurts == nil || d.Hurts(t)),
		survivable: plainOf(t.Variant) == assay.Optimal && (d.Survivable == nil || d.Survivable(t)),
		open:       t.LimitsBest() || d.Open != nil && d.Open(t),
		winnable:   d.Winnable == nil || d.Winnable(t),
	}
}

// key shortens a trial's ID to 16 bytes. IDs that are not hexadecimal keep their first 16 bytes.
func key(id assay.TrialID) (k [16]byte) {
	if n, err := hex.Decode(k[:], []byte(id[:min(len(id), 32)])); err != nil || n < len(k) {
		copy(k[:], id)
	}
	return k
}

// A Progress has the intervals of a report while outcomes come in. The zero Progress is empty.
type Progress struct {
	from   population[assay.TaskID]
	models map[string]map[assay.TaskID]stat.Group
}

// Add adds outcomes of a model at a task with its required tools.
func (p *Progress) Add(model string, of assay.TaskID, required []string, some stat.Group) {
	p.from.add(of, strings.Join(required, " "))
	if p.models == nil {
		p.models = make(map[string]map[assay.TaskID]stat.Group)
	}
	if p.models[model] == nil {
		p.models[model] = make(map[assay.TaskID]stat.Group)
	}
	at := p.models[model][of]
	p.models[model][of] = stat.Group{Full: at.Full + some.Full, N: at.N + some.N}
}

// Rate returns the rate of full success of models together.
func (p *Progress) Rate(models ...string) stat.Rate {
	all := make(map[assay.TaskID]stat.Group)
	for _, m := range models {
		for of, g := range p.models[m] {
			all[of] = stat.Group{Full: all[of].Full + g.Full, N: all[of].N + g.N}
		}
	}
	p.from.cluster = stat.Auto
	p.from.describe()
	groups := p.from.groups(slices.Sorted(maps.Keys(all)), func(of assay.TaskID) stat.Group {
		return all[of]
	})
	return stat.Clustered(groups, 1-level05)
}
