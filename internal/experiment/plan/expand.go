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

// Refs returns a library's tasks of a type and difficulty.
type Refs func(ctx context.Context, taskType, difficulty string) ([]assay.TaskRef, error)

// Applies reports whether a flawed variant has a severity for a task's plan. If it does not, a
// trial would measure no flaw, or the effect of a worse severity.
type Applies func(
	ctx context.Context, task assay.TaskRef, difficulty, variant, severity string,
) (bool, error)

// A Plan is the list of an experiment's trials. It keeps the tasks of each type
// and difficulty and makes a trial only when it is asked for.
type Plan struct {
	experiment    *Experiment
	parts         []Part
	strata        map[string][]*stratum // by model, longest first
	notApplicable []NotApplicable
	limit         int               // trials per model
	forks         map[string]forked // by model, in place of the trials of strata, or nil
}

// NotApplicable counts the tasks that a flawed variant leaves out at one severity in one task type
// because their plans have no such flaw. Tasks is 0 if it applies to all.
type NotApplicable struct {
	Variant  string `json:"variant"`
	Severity string `json:"severity"`
	TaskType string `json:"task_type"`
	// Tasks is the number left out, and Of the number considered. A task counts
	// once per difficulty.
	Tasks int `json:"left_out"`
	Of    int `json:"of"`
}

// Expand plans the experiment's trials over a library's tasks. The result is
// the union of the trials of its parts.
//
// A cell draws tasks without replacement in an order that depends on the seed,
// so all models, variants, difficulties and reliabilities get the same tasks. A
// flawed variant skips the tasks to which its flaw does not apply at a severity.
// Expand calls applies for flawed variants only; a nil applies means that every
// flaw applies to every task.
func (e *Experiment) Expand(ctx context.Context, refs Refs, applies Applies) (*Plan, error) {
	x := expansion{experiment: e, refs: refs}
	if err := x.allotAll(ctx); err != nil {
		return nil, err
	}
	for _, d := range x.draws {
		if err := d.findApplicable(ctx, applies); err != nil {
			return nil, err
		}
	}
	p := &Plan{
		experiment: e, parts: x.parts, strata: make(map[string][]*stratum),
		notApplicable: x.notApplicable(), limit: math.MaxInt,
	}
	shared := make(map[string][]*stratum) // by the parts that include the model
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

// An expansion is the state of [Experiment.Expand].
type expansion struct {
	experiment *Experiment
	refs       Refs
	parts      []Part
	draws      []*draw
	allotments []allotment
}

// An allotment is the number of tasks that the cells of a part take from a
// draw.
type allotment struct {
	part  int
	draw  *draw
	tasks int
}

// allotAll adds the parts and their allotments.
func (x *expansion) allotAll(ctx context.Context) error {
	e := x.experiment
	for i, spec := range e.parts() {
		x.parts = append(x.parts, e.newPart(spec))
		if len(e.Models) > 0 && len(x.parts[i].Models) == 0 {
			continue // it has no cells, so the library does not need its tasks
		}
		if err := x.allot(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// allot adds the allotments of a part.
func (x *expansion) allot(ctx context.Context, part int) error {
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
				for _, severity := range f.severities(variant) {
					if x.experiment.conditional(variant) {
						d.reserve(variant, severity, n)
					}
				}
			}
			x.allotments = append(x.allotments, allotment{part, d, n})
		}
	}
	return nil
}

// draw returns the draw of a type and difficulty, which is shared by all parts.
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
			i := slices.IndexFunc(all, func(n NotApplicable) bool {
				return n.Variant == f.variant && n.Severity == f.severity && n.TaskType == d.taskType
			})
			if i < 0 {
				i = len(all)
				all = append(all, NotApplicable{
					Variant: f.variant, Severity: f.severity, TaskType: d.taskType,
				})
			}
			all[i].Tasks += f.most - len(f.kept)
			all[i].Of += f.most
		}
	}
	slices.SortStableFunc(all, func(a, b NotApplicable) int {
		return cmp.Or(
			cmp.Compare(slices.Index(assay.Variants, a.Variant),
				slices.Index(assay.Variants, b.Variant)),
			cmp.Compare(slices.Index(assay.Severities, a.Severity),
				slices.Index(assay.Severities, b.Severity)),
			cmp.Compare(slices.Index(assay.TaskTypes, a.TaskType),
				slices.Index(assay.TaskTypes, b.TaskType)),
			cmp.Compare(a.Variant, b.Variant),
			cmp.Compare(a.TaskType, b.TaskType),
		)
	})
	return all
}

// strata returns the strata of the selected parts, each once, longest first.
func (x *expansion) strata(has func(part int) bool) []*stratum {
	var all []*stratum
	index := make(map[assay.Cell]*stratum)
	for _, a := range x.allotments {
		if !has(a.part) {
			continue
		}
		f := x.parts[a.part].factors
		for cell := range f.cells(a.draw.taskType, a.draw.difficulty) {
			s := index[cell]
			if s == nil {
				s = &stratum{cell: cell, plays: 1 + x.experiment.Replays}
				index[cell] = s
				all = append(all, s)
			}
			s.add(a.draw.take(cell.Variant, cell.Severity, a.tasks), f.Repeats)
		}
	}
	for _, s := range all {
		s.merge()
	}
	all = slices.DeleteFunc(all, func(s *stratum) bool {
		return s.planned == 0 || !x.experiment.only.has(s.cell)
	})
	slices.SortStableFunc(all, longestFirst)
	return all
}

// Parts returns the parts of the experiment, in the order of its file.
func (p *Plan) Parts() []Part { return p.parts }

// NotApplicable returns the tasks left out, in the order used in tables.
func (p *Plan) NotApplicable() []NotApplicable { return p.notApplicable }

// Limit returns a plan with only the first n trials of each model.
func (p *Plan) Limit(n int) *Plan {
	limited := *p
	limited.limit = max(0, min(n, p.limit))
	return &limited
}

// Planned returns the number of a model's trials.
func (p *Plan) Planned(model string) int {
	n := len(p.forks[model])
	if p.forks == nil {
		for _, s := range p.strata[model] {
			n += s.planned
		}
	}
	return min(n, p.limit)
}

// Cells yields a model's cells with their planned number of trials.
func (p *Plan) Cells(model string) iter.Seq2[assay.Cell, int] {
	return func(yield func(assay.Cell, int) bool) {
		for _, c := range p.forks[model].cells(p.limit) {
			if !yield(c.cell, c.planned) {
				return
			}
		}
		for s, n := range p.counts(model) {
			if !yield(s.of(model), n) {
				return
			}
		}
	}
}

// Tasks yields a model's cells with their tasks.
func (p *Plan) Tasks(model string) iter.Seq2[assay.Cell, []assay.TaskRef] {
	return func(yield func(assay.Cell, []assay.TaskRef) bool) {
		for _, c := range p.forks[model].cells(p.limit) {
			if !yield(c.cell, c.tasks) {
				return
			}
		}
		for s, n := range p.counts(model) {
			if !yield(s.of(model), s.tasks[:min(n, len(s.tasks))]) {
				return
			}
		}
	}
}

// counts yields a model's strata with their number of trials within the limit.
func (p *Plan) counts(model string) iter.Seq2[*stratum, int] {
	return func(yield func(*stratum, int) bool) {
		strata := p.strata[model]
		if p.forks != nil {
			return
		}
		rounds, rest := p.rounds(strata)
		last := interleave(remaining(rounds, slices.Clone(strata)))
		last = last[:min(rest, len(last))]
		for _, s := range strata {
			n := min(s.planned, rounds)
			if slices.Contains(last, s) {
				n++
			}
			if n > 0 && !yield(s, n) {
				return
			}
		}
	}
}

// rounds returns the number of complete rounds of [Plan.Trials] within the
// limit, and the number of trials in the incomplete round that follows.
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

// Trials yields a model's trials in rounds. Each round has one trial of every
// cell that has any left, so a run that stops early leaves balanced results.
// Within a round the task types take turns, longest expected work first, so
// even a run shorter than one round covers all types instead of only pipelines,
// for example.
func (p *Plan) Trials(model string) iter.Seq[assay.Trial] {
	return p.Some(model, func(int) bool { return true })
}

// Some yields the trials of [Plan.Trials] at the places, counted from 0, for
// which want returns true. Making a trial takes a microsecond; skipping one is
// almost free.
func (p *Plan) Some(model string, want func(place int) bool) iter.Seq[assay.Trial] {
	if p.forks != nil {
		return p.forks[model].some(p.limit, want)
	}
	set := p.experiment.Setting(model)
	return func(yield func(assay.Trial) bool) {
		place, strata := 0, slices.Clone(p.strata[model])
		order := interleave(strata)
		for round := 0; len(strata) > 0; round++ {
			for _, s := range order {
				if place == p.limit {
					return
				}
				if want(place) {
					task, repeat, replay := s.at(round)
					trial := assay.NewTrial(s.of(model), task, set, p.experiment.Seed, repeat)
					if replay > 0 {
						trial = trial.Replayed(replay)
					}
					if !yield(trial) {
						return
					}
				}
				place++
			}
			if strata = remaining(round+1, strata); len(strata) < len(order) {
				order = interleave(strata)
			}
		}
	}
}
