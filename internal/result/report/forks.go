package report

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/stat"
)

// Forks says what faults of tools have caused, from forks of the attempts that met them: from the same
// beginning, some forks meet the fault again, and some are spared it.
type Forks struct {
	Experiment string `json:"experiment"`
	Of         string `json:"of"`
	Planned    int    `json:"planned"`
	Done       int    `json:"done"`
	// Points counts the calls that met a fault and have forks, and Compared those of them that have
	// outcomes on both sides.
	Points   int `json:"points"`
	Compared int `json:"compared"`
	// Effects has a row for each model and kind of fault, and Places divides these rows by where in the
	// plan the call was.
	Effects []ForkEffect `json:"effects"`
	Places  []ForkEffect `json:"places"`
	// Spent is what the forks have used; their beginnings cost nothing.
	Spent assay.Spend `json:"spent"`
}

// A ForkEffect compares the forks that were spared a fault, which are side A, with those that met it.
// A point counts as much as any other. The points of a task are one cluster, because their forks have the
// same goal, and often the same beginning.
type ForkEffect struct {
	Fault assay.ToolFault `json:"fault"`
	Class string          `json:"class"`
	Place string          `json:"place,omitempty"`
	// Calls counts the points, and OfTasks the tasks that they belong to, over which the intervals are.
	Calls   int    `json:"calls"`
	OfTasks int    `json:"tasks"`
	Method  string `json:"method"`
	// Pending counts the forks of the kind, of all models, that have no outcome.
	Pending int `json:"pending"`
	// Sequences is nil, and hides that of Paired from JSON, which counts tasks here.
	Sequences *int `json:"sequences,omitempty"`
	Paired
	// Lost is the share of the successes of A that the fault costs.
	Lost stat.Loss `json:"lost"`
}

// A forkGroup has the points of a row.
type forkGroup struct {
	model, place string
	fault        assay.ToolFault
}

// forkPlaces are the thirds of a plan, in order, and calls that are right for none of its steps.
var forkPlaces = []string{"first third", "middle", "last third", "outside the plan"}

func placeOf(p assay.ForkPoint) string {
	if p.Step == 0 {
		return forkPlaces[3]
	}
	return forkPlaces[3*(p.Step-1)/p.Steps]
}

// AnalyzeForks computes the effects from the attempts at the trials of an experiment that has forks.
func AnalyzeForks(
	experiment string, f *plan.Forks, planned int, attempts iter.Seq2[assay.Attempt, error],
) (*Forks, error) {
	out := &Forks{
		Experiment: experiment, Of: f.Of, Planned: planned, Points: len(f.Points),
		Effects: []ForkEffect{}, Places: []ForkEffect{},
	}
	points := make(map[string]assay.ForkPoint, len(f.Points))
	pending := make(map[assay.ToolFault]int)
	for _, p := range f.Points {
		points[p.String()] = p.ForkPoint
		pending[p.Fault] += 2 * p.Each
	}
	latest := make(map[assay.TrialID]assay.Attempt)
	for a, err := range attempts {
		if err != nil {
			return nil, err
		}
		out.Spent = out.Spent.Add(a.Spend)
		if a.Settles() {
			latest[a.ID] = a // a later round counts instead of an earlier one
		}
	}
	type point struct {
		model, of string
		task      assay.TaskID
	}
	pairs := make(map[point]*stat.Pair)
	for _, a := range latest {
		pending[points[a.Of].Fault]--
		of := point{a.Model, a.Of, a.Task}
		p := pairs[of]
		if p == nil {
			p = new(stat.Pair)
			pairs[of] = p
		}
		full := int(flag(a.Level == assay.FullSuccess))
		if a.Spared {
			p.A, p.NA = p.A+full, p.NA+1
		} else {
			p.B, p.NB = p.B+full, p.NB+1
		}
	}
	out.Done = len(latest)

	tasks := make(map[assay.TaskID]int)
	groups := make(map[forkGroup][]stat.Matched)
	order := func(a, b point) int { return cmp.Or(cmp.Compare(a.model, b.model), cmp.Compare(a.of, b.of)) }
	for _, of := range slices.SortedFunc(maps.Keys(pairs), order) {
		pair, at := pairs[of], points[of.of]
		if pair.NA == 0 || pair.NB == 0 {
			continue
		}
		out.Compared++
		if _, known := tasks[of.task]; !known {
			tasks[of.task] = len(tasks)
		}
		m := stat.Matched{Sequence: tasks[of.task], Cells: []stat.Cell{{Pair: *pair}}}
		for _, place := range []string{"", placeOf(at)} {
			g := forkGroup{of.model, place, at.Fault}
			groups[g] = append(groups[g], m)
		}
	}
	for _, g := range slices.SortedFunc(maps.Keys(groups), forkGroup.compare) {
		c := stat.Compare(groups[g], true)
		e := ForkEffect{
			Calls: c.Tasks, OfTasks: c.Clusters, Method: "t over tasks", Pending: pending[g.fault],
			Fault: g.fault, Class: g.fault.Rule().Class(), Place: g.place, Lost: stat.Lost(groups[g], true),
			Paired: Paired{
				Model: g.model, A: "spared", B: "fault", Comparison: c, data: groups[g],
			},
		}
		if g.place == "" {
			out.Effects = append(out.Effects, e)
		} else {
			out.Places = append(out.Places, e)
		}
	}
	for _, family := range [][]ForkEffect{out.Effects, out.Places} {
		var tests []*Paired
		for i := range family {
			tests = append(tests, &family[i].Paired)
		}
		adjust(tests)
	}
	return out, nil
}

func (g forkGroup) compare(h forkGroup) int {
	return cmp.Or(
		cmp.Compare(slices.Index(assay.ToolFaults, g.fault), slices.Index(assay.ToolFaults, h.fault)),
		cmp.Compare(g.model, h.model),
		cmp.Compare(slices.Index(forkPlaces, g.place), slices.Index(forkPlaces, h.place)),
	)
}

// Effect returns the row of a model and a kind of fault, or nil.
func (f *Forks) Effect(model string, fault assay.ToolFault) *ForkEffect {
	i := slices.IndexFunc(f.Effects, func(e ForkEffect) bool { return e.Model == model && e.Fault == fault })
	if i < 0 {
		return nil
	}
	return &f.Effects[i]
}
