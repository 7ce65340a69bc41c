package plan

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"

	"github.com/assay-eval/assay"
)

// Refs returns the tasks that a library has of a type and difficulty.
type Refs func(ctx context.Context, taskType, difficulty string) ([]assay.TaskRef, error)

// Applies reports whether a flawed variant changes a task's plan. Where it does
// not, a trial would measure nothing.
type Applies func(ctx context.Context, task assay.TaskRef, difficulty, variant string) (bool, error)

// A Plan is an experiment's trials. It holds a list of tasks for each type and
// difficulty; trials are made when they are asked for.
type Plan struct {
	experiment    *Experiment
	parts         []Part
	strata        map[string][]*stratum // by model, the longest first
	notApplicable []NotApplicable
	limit         int // trials of a model
}

// NotApplicable counts the tasks that are left out of the cells of a flawed
// variant and a type, because the flaw does not apply to them.
type NotApplicable struct {
	Variant  string
	TaskType string
	// Tasks are left out of Of. A task counts once for each difficulty.
	Tasks, Of int
}

// Expand plans the experiment's trials over a library's tasks: the union of
// those of its parts. A cell takes its tasks without replacement in an order
// that the seed decides, so that all models, variants, difficulties and
// reliabilities meet the same tasks. Tasks to which a flawed variant does not
// apply are left out of its cells; applies is asked for no other variant, and
// nil stands for always.
func (e *Experiment) Expand(ctx context.Context, refs Refs, applies Applies) (*Plan, error) {
	x := expansion{experiment: e, refs: refs}
	for i, spec := range e.parts() {
		x.parts = append(x.parts, newPart(spec, e.Models))
		if len(e.Models) > 0 && len(x.parts[i].Models) == 0 {
			continue // it has no cell, so the library need not have its tasks
		}
		if err := x.claim(ctx, i); err != nil {
			return nil, err
		}
	}
	for _, d := range x.draws {
		if err := d.sift(ctx, applies); err != nil {
			return nil, err
		}
	}
	p := &Plan{experiment: e, parts: x.parts, strata: make(map[string][]*stratum), notApplicable: x.notApplicable(), limit: math.MaxInt}
	shared := make(map[string][]*stratum) // by which parts are for the model
	for _, model := range e.Models {
		has := func(part int) bool { return slices.Contains(x.parts[part].Models, model) }
		key := ""
		for i := range x.parts {
			key += fmt.Sprint(has(i), " ")
		}
		if _, ok := shared[key]; !ok {
			shared[key] = x.strata(has)
		}
		p.strata[model] = shared[key]
	}
	return p, nil
}

// An expansion is the work of [Experiment.Expand].
type expansion struct {
	experiment *Experiment
	refs       Refs
	parts      []Part
	draws      []*draw
	claims     []claim
}

// A claim is how many tasks of a draw the cells of a part take.
type claim struct {
	part  int
	draw  *draw
	tasks int
}

// claim finds the tasks of a part.
func (x *expansion) claim(ctx context.Context, part int) error {
	f := x.parts[part].factors
	for _, difficulty := range f.Difficulties {
		for _, taskType := range f.TaskTypes {
			d, err := x.draw(ctx, taskType, difficulty)
			if err != nil {
				return err
			}
			n, err := d.count(x.experiment, part, f.TasksPerType)
			if err != nil {
				return err
			}
			for _, variant := range f.Variants {
				d.reserve(variant, n)
			}
			x.claims = append(x.claims, claim{part, d, n})
		}
	}
	return nil
}

// draw returns the draw of a type and difficulty, which all parts share.
func (x *expansion) draw(ctx context.Context, taskType, difficulty string) (*draw, error) {
	for _, d := range x.draws {
		if d.taskType == taskType && d.difficulty == difficulty {
			return d, nil
		}
	}
	d, err := x.experiment.draw(ctx, x.refs, taskType, difficulty)
	x.draws = append(x.draws, d)
	return d, err
}

func (x *expansion) notApplicable() []NotApplicable {
	var all []NotApplicable
	for _, d := range x.draws {
		for _, f := range d.flawed {
			i := slices.IndexFunc(all, func(n NotApplicable) bool { return n.Variant == f.variant && n.TaskType == d.taskType })
			if i < 0 {
				i = len(all)
				all = append(all, NotApplicable{Variant: f.variant, TaskType: d.taskType})
			}
			all[i].Tasks += f.most - len(f.kept)
			all[i].Of += f.most
		}
	}
	all = slices.DeleteFunc(all, func(n NotApplicable) bool { return n.Tasks == 0 })
	slices.SortStableFunc(all, func(a, b NotApplicable) int {
		return cmp.Or(
			cmp.Compare(slices.Index(assay.Variants, a.Variant), slices.Index(assay.Variants, b.Variant)),
			cmp.Compare(slices.Index(assay.TaskTypes, a.TaskType), slices.Index(assay.TaskTypes, b.TaskType)),
		)
	})
	return all
}

// strata returns the cells of some parts, each once, the longest first.
func (x *expansion) strata(has func(part int) bool) []*stratum {
	var all []*stratum
	index := make(map[assay.Cell]*stratum)
	for _, c := range x.claims {
		if !has(c.part) {
			continue
		}
		f := x.parts[c.part].factors
		for cell := range f.cells(c.draw.taskType, c.draw.difficulty) {
			s := index[cell]
			if s == nil {
				s = &stratum{cell: cell}
				index[cell] = s
				all = append(all, s)
			}
			s.add(c.draw.take(cell.Variant, c.tasks), f.Repeats)
		}
	}
	for _, s := range all {
		s.settle()
	}
	all = slices.DeleteFunc(all, func(s *stratum) bool { return s.planned == 0 })
	slices.SortStableFunc(all, longestFirst)
	return all
}

// Parts returns the parts of the experiment, in the order of its file.
func (p *Plan) Parts() []Part { return p.parts }

// NotApplicable returns what was left out, in the order of tables.
func (p *Plan) NotApplicable() []NotApplicable { return p.notApplicable }

// Limit returns a plan that has only the first n trials of each model.
func (p *Plan) Limit(n int) *Plan {
	limited := *p
	limited.limit = max(0, min(n, p.limit))
	return &limited
}

// Planned is the number of a model's trials.
func (p *Plan) Planned(model string) int {
	n := 0
	for _, s := range p.strata[model] {
		n += s.planned
	}
	return min(n, p.limit)
}

// Cells yields one model's cells, each with its planned number of trials.
func (p *Plan) Cells(model string) iter.Seq2[assay.Cell, int] {
	return func(yield func(assay.Cell, int) bool) {
		strata := p.strata[model]
		rounds, rest := p.rounds(strata)
		last := inTurn(after(rounds, slices.Clone(strata)))
		last = last[:min(rest, len(last))]
		for _, s := range strata {
			n := min(s.planned, rounds)
			if slices.Contains(last, s) {
				n++
			}
			if n > 0 && !yield(s.of(model), n) {
				return
			}
		}
	}
}

// rounds returns how many rounds of [Plan.Trials] are within the limit, and
// how many trials of the one after them.
func (p *Plan) rounds(strata []*stratum) (whole, rest int) {
	longest := 0
	for _, s := range strata {
		longest = max(longest, s.planned)
	}
	trials := func(rounds int) (n int) {
		for _, s := range strata {
			n += min(s.planned, rounds)
		}
		return n
	}
	whole = sort.Search(longest, func(rounds int) bool { return trials(rounds+1) > p.limit })
	return whole, p.limit - trials(whole)
}

// Trials yields one model's trials in rounds, each of which has one trial of
// every cell that has any left, so that a run that is stopped early leaves
// balanced results. Within a round the types of task take turns, those that are
// expected to take longest first, so that a run of less than a round is balanced
// over the types too, and does not have, say, pipelines alone.
func (p *Plan) Trials(model string) iter.Seq[assay.Trial] {
	return p.Some(model, func(int) bool { return true })
}

// Some yields those of [Plan.Trials] whose place, from 0, want asks for. Making
// a trial costs a microsecond, and passing one over nothing.
func (p *Plan) Some(model string, want func(place int) bool) iter.Seq[assay.Trial] {
	set := p.experiment.Setting()
	return func(yield func(assay.Trial) bool) {
		place, strata := 0, slices.Clone(p.strata[model])
		order := inTurn(strata)
		for round := 0; len(strata) > 0; round++ {
			for _, s := range order {
				if place == p.limit {
					return
				}
				if want(place) {
					task, repeat := s.at(round)
					if !yield(assay.NewTrial(s.of(model), task, set, p.experiment.Seed, repeat)) {
						return
					}
				}
				place++
			}
			if strata = after(round+1, strata); len(strata) < len(order) {
				order = inTurn(strata)
			}
		}
	}
}
