package report

import (
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A run has what the profile needs of an outcome besides its record.
type run struct {
	tools                         int32 // a place in runs.paths
	tokens, turns, calls, working int32 // working time in milliseconds
	// confidence is -1 if the model stated none.
	confidence float64
}

// Runs are kept if a task is repeated or a model is asked for its confidence, in the places of their records.
type runs struct {
	all []run
	// paths are the different sequences of tools that succeeded, with their numbers.
	paths        [][]int
	known, names map[string]int
}

func (x *runs) begin(records []record, asked bool) {
	if !asked && !slices.ContainsFunc(records, func(r record) bool { return r.repeat > 1 || r.replay > 0 }) {
		return
	}
	x.all = make([]run, len(records))
	x.known, x.names = make(map[string]int), make(map[string]int)
}

func (x *runs) add(at int32, a *assay.Attempt) {
	if x.all == nil {
		return
	}
	name := strings.Join(a.ExecutedTools, "\n")
	path, ok := x.known[name]
	if !ok {
		path = len(x.paths)
		x.known[name] = path
		var tools []int
		for _, tool := range a.ExecutedTools {
			n, ok := x.names[tool]
			if !ok {
				n = len(x.names)
				x.names[tool] = n
			}
			tools = append(tools, n)
		}
		x.paths = append(x.paths, tools)
	}
	tokens := a.Total() - a.ConfidenceInputTokens - a.ConfidenceOutputTokens
	r := run{int32(path), int32(tokens), int32(a.Outcome.Turns), int32(a.ToolCalls), int32(a.WorkingMS), -1}
	if a.Confidence != nil {
		r.confidence = *a.Confidence
	}
	x.all[at] = r
}

// leastWorking is the mean working time in milliseconds from which it says something about a model.
// Simulated models take less, and what they take depends on the machine.
const leastWorking = 1000

// used returns what a run took of each resource.
func (r run) used(timed bool) [stat.Resources]float64 {
	used := [stat.Resources]float64{
		float64(r.tokens), float64(r.turns), float64(r.calls), float64(r.working),
	}
	if r.tokens == 0 {
		used[0] = math.NaN()
	}
	if !timed {
		used[3] = math.NaN()
	}
	return used
}

// repeated returns the outcomes of a model by task and cell.
func (x *counted) repeated(model string) (all []stat.Repeated) {
	numbers := make(map[assay.Cell]int)
	working, n := 0., 0.
	for i := range x.records {
		if r := &x.records[i]; r.cell.Model == model && r.settled() {
			working, n = working+float64(x.runs.all[i].working), n+1
		}
	}
	for at, i := range x.byTask(model, func(i int) bool { return x.records[i].settled() }) {
		r := &x.records[i]
		if at.task == len(all) {
			all = append(all, stat.Repeated{Sequence: x.cells[0].from.of[r.task]})
		}
		t := &all[at.task]
		if at.condition == len(t.Conditions) {
			t.Conditions = append(t.Conditions, nil)
			t.Names = append(t.Names, x.conditionOf(r.cell, numbers))
		}
		t.Conditions[at.condition] = append(t.Conditions[at.condition], stat.Run{
			Luck: int(r.repeat), Full: r.counts>>full&1 > 0, Tools: x.runs.paths[x.runs.all[i].tools],
			Used: x.runs.all[i].used(working >= leastWorking*n),
		})
	}
	return all
}

// A slot numbers the task of a record, and its cell among those of the task, in the order of records.
type slot struct{ task, condition int }

// byTask yields the places of a model's records that count, with their slots. The number of a new task or
// condition is that of those before it.
func (x *counted) byTask(model string, counts func(i int) bool) iter.Seq2[slot, int] {
	type unit struct {
		task task
		cell *cell
	}
	return func(yield func(slot, int) bool) {
		tasks, slots, conditions := make(map[task]int), make(map[unit]slot), make(map[task]int)
		for i := range x.records {
			r := &x.records[i]
			if r.cell.Model != model || !counts(i) {
				continue
			}
			if _, known := tasks[r.task]; !known {
				tasks[r.task] = len(tasks)
			}
			at, known := slots[unit{r.task, r.cell}]
			if !known {
				at = slot{tasks[r.task], conditions[r.task]}
				slots[unit{r.task, r.cell}] = at
				conditions[r.task]++
			}
			if !yield(at, i) {
				return
			}
		}
	}
}

// conditionOf numbers cells by everything but the type of task.
func (x *counted) conditionOf(c *cell, numbers map[assay.Cell]int) int {
	key := withoutType(c.Cell)
	if _, ok := numbers[key]; !ok {
		numbers[key] = len(numbers)
	}
	return numbers[key]
}

// A profile has the figures of a model's repeats. Replays are consistent with each other, with the
// same luck.
type profile struct {
	stat.Consistent
	replays stat.Consistent
	stat.Variances
	stat.Predictable
	harm stat.Harmful
}

// stated returns the confidence of a model by task and cell.
func (x *counted) stated(model string) (all []stat.Stated) {
	for at, i := range x.byTask(model, func(i int) bool { return x.records[i].settled() && x.runs.all[i].confidence >= 0 }) {
		r := &x.records[i]
		if at.task == len(all) {
			all = append(all, stat.Stated{Sequence: x.cells[0].from.of[r.task]})
		}
		t := &all[at.task]
		if at.condition == len(t.Conditions) {
			t.Conditions = append(t.Conditions, nil)
		}
		t.Conditions[at.condition] = append(t.Conditions[at.condition],
			stat.Statement{Confidence: x.runs.all[i].confidence, Full: r.counts>>full&1 > 0})
	}
	return all
}

// profile has a row for each model that tried a task more than once in a cell, or stated its confidence.
// It is nil without one.
func (x *counted) profile() *Grid {
	var rows []GridRow
	measures := union(Tables["profile"], Tables["variance"], Tables["predictability"], Tables["published"],
		[]*Measure{ReliabilityDiagram})
	for _, m := range modelsOf(x.cells) {
		if x.runs.all == nil {
			break
		}
		runs, bySequence := x.repeated(m), x.cells[0].from.bySequence()
		p := profile{
			stat.Consistency(runs, false, bySequence), stat.Consistency(runs, true, bySequence),
			stat.SplitVariance(runs, bySequence), stat.Predictability(x.stated(m), bySequence), x.harm(m),
		}
		if p.Outcome.Tasks+p.replays.Outcome.Tasks+p.Runs == 0 {
			continue
		}
		row := GridRow{Cell: assay.Cell{Model: m}}
		for _, of := range measures {
			row.Values = append(row.Values, of.profile(&p))
		}
		rows = append(rows, row)
	}
	if rows == nil {
		return nil
	}
	return NewGrid([]string{model}, measures, rows...)
}

// profileMeasure declares a measure of a model's repeats.
func profileMeasure(key, head, means string, of func(*profile) stat.Estimate) *Measure {
	m := measure(key, head, AsPercent, means, nil)
	m.profile = func(p *profile) Value { return estimated(of(p)) }
	return m
}

func estimated(e stat.Estimate) Value {
	if e.Tasks == 0 {
		return Value{}
	}
	return Value{Known: true, Number: e.Value, Interval: &e.Interval, N: e.Tasks, raw: e}
}

// predicted declares a measure of a model's confidence that has no interval.
func predicted(key, head, format, means string, of func(*profile) Value) *Measure {
	m := measure(key, head, format, means, nil)
	m.profile = func(p *profile) Value {
		if p.Runs == 0 {
			return Value{}
		}
		return of(p)
	}
	return m
}

// Diagram returns how often runs of a model succeeded, by the confidence that it stated.
func (r GridRow) Diagram() []stat.ConfidenceBin {
	bins, _ := r.Get(ReliabilityDiagram).raw.([]stat.ConfidenceBin)
	return bins
}
