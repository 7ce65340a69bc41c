package report

import (
	"cmp"
	"encoding/hex"
	"iter"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A taskCause is a cause at a task.
type taskCause struct {
	cause assay.Cause
	task  task
}

// A luck is one repeat of a task by a model. Its trials share much of their luck in all cells.
type luck struct {
	model  string
	task   task
	repeat int32
}

func (l luck) compare(o luck) int {
	return cmp.Or(
		cmp.Compare(l.model, o.model), cmp.Compare(l.task, o.task), cmp.Compare(l.repeat, o.repeat),
	)
}

// A counted experiment has its cells in the order of tables, and its outcomes by luck.
type counted struct {
	cells []*cell
	lucks map[luck]stat.Group
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

// countAll counts trials and attempts by cell, and outcomes by luck.
func countAll(
	trials iter.Seq[assay.Trial],
	attempts iter.Seq2[assay.Attempt, error],
	from *population[task],
	d Design,
) (*counted, error) {
	x := &counted{
		lucks: make(map[luck]stat.Group), failures: make(map[failure]*Example),
	}
	var cells []*cell
	index := make(map[assay.Cell]int32)
	// The map below may hold a million of these.
	type place struct {
		cell   int32 // ^cell after the trial is settled
		task   task
		repeat int32
		trialFacts
	}
	known := make(map[[16]byte]place)
	tasks := make(map[assay.TaskID]task)
	for trial := range trials {
		c, ok := index[trial.Cell]
		if !ok {
			c = int32(len(cells))
			index[trial.Cell] = c
			cells = append(cells, &cell{
				Cell: trial.Cell, sampling: trial.Sampling, runs: make(map[assay.RunID]int),
				floor: d.floor(trial.Cell), tally: tally{from: from},
			})
		}
		cells[c].plan(trial.Repeat)
		of, ok := tasks[trial.Task]
		if !ok {
			of = task(len(tasks))
			tasks[trial.Task] = of
			x.tasks = append(x.tasks, trial.Task)
		}
		known[key(trial.ID)] = place{c, of, int32(trial.Repeat), d.facts(&trial)}
	}
	var a assay.Attempt // one for all, because outcomes point at it
	o := &outcome{Attempt: &a}
	for next, err := range attempts {
		if err != nil {
			return nil, err
		}
		a = next
		id := key(a.ID)
		p, ok := known[id]
		if !ok {
			continue
		}
		settled := p.cell < 0
		if settled {
			p.cell = ^p.cell
		}
		c := cells[p.cell]
		o.task, o.floor, o.trialFacts = p.task, c.floor, p.trialFacts
		a.Sampling = c.sampling
		c.pay(&a, p.task)
		if settled || !a.Settles() || a.Superseded {
			continue
		}
		c.settle(o)
		c.runs[a.Run]++
		if !o.full() {
			x.fail(a.ID, c, a.Cause, p.task)
		}
		at := luck{c.Model, p.task, p.repeat}
		g := x.lucks[at]
		x.lucks[at] = stat.Group{Full: g.Full + int(flag(o.full())), N: g.N + 1}
		p.cell = ^p.cell
		known[id] = p
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
		survivable: !flawed && (d.Survivable == nil || d.Survivable(t)),
		open:       d.Open != nil && d.Open(t),
	}
}

// key shortens a trial's ID to 16 bytes. IDs that are not hexadecimal keep their first 16 bytes.
func key(id assay.TrialID) (k [16]byte) {
	if n, err := hex.Decode(k[:], []byte(id[:min(len(id), 32)])); err != nil || n < len(k) {
		copy(k[:], id)
	}
	return k
}
