package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Ranking orders the models that can be compared, by one test over the trials that all of them
// have done. Rates, order, signs and the best models come from it, so that they cannot disagree.
type Ranking struct {
	// Condition names the trials: those with the right plan, or else the first variant without a
	// flaw, and with the most reliable tools.
	Condition string `json:"condition"`
	// Averaged names the factors that vary among these trials.
	Averaged []string `json:"averaged_over"`
	*stat.Ranking
	Names []string `json:"names"` // of the models
	// Pairs has the pairs of models of which the first is significantly better.
	Pairs []RankedPair `json:"better"`
}

// A RankedPair is two models of which A is better. P is adjusted for all pairs of models.
type RankedPair struct {
	A string  `json:"a"`
	B string  `json:"b"`
	P float64 `json:"p"`
}

// decides reports whether the trials can show that a model is better than another, and one has
// succeeded. Two models need at least six independent tasks: with five, the larger of two equal
// chances of signs is 1 in 16.
func (r *Ranking) decides() bool {
	return r.Clusters >= minClusters && r.Models[r.Order[0]].Rate > 0
}

const minClusters = 6

// between returns the p-value of two ranked models, and false if they are not both ranked.
func (r *Ranking) between(a, b string) (p float64, ok bool) {
	i, k := slices.Index(r.Names, a), slices.Index(r.Names, b)
	if i < 0 || k < 0 {
		return 1, false
	}
	return min(r.P(i, k), r.P(k, i)), true
}

// A field is the trials on which models are compared.
type field struct {
	// deciders are the models that decide which trials count, in the order of tables.
	deciders []string
	// own is true if the deciders have no trial in common, so that each model has its own.
	own bool
	// common has the cells of all models with only the trials that all deciders have done, and
	// plain those of the condition on which models are ranked.
	common, plain []*cell
	condition     string
	// weights are those of tasks under a condition, which has no model. A missing one is 1.
	weights map[assay.Cell]float64
}

// A condition is a cell without a model, and a meeting is a trial under it.
type meeting struct {
	condition int32
	task      task
	repeat    int32
	replay    int32
}

// newField finds the trials that models have in common: the same repeat of the same task under the
// same condition. Models that cannot be the best do not decide which trials count.
func (x *counted) newField(stopped bool) *field {
	f := &field{deciders: deciders(x.cells)}
	conditions := make(map[assay.Cell]int32)
	numbers := make(map[*cell]int32)
	for _, c := range x.cells {
		at := without(c.Cell, model)
		if _, ok := conditions[at]; !ok {
			conditions[at] = int32(len(conditions))
		}
		numbers[c] = conditions[at]
	}
	met := make(map[meeting]int32)
	at := func(r *record) meeting { return meeting{numbers[r.cell], r.task, r.repeat, r.replay} }
	for i, name := range f.deciders {
		for k := range x.records {
			r := &x.records[k]
			if m := at(r); r.cell.Model == name && r.settled() && met[m] == int32(i) {
				met[m] = int32(i) + 1
			}
		}
	}
	f.own = true
	for _, n := range met {
		f.own = f.own && n < int32(len(f.deciders))
	}
	restricted := make(map[*cell]*cell)
	for k := range x.records {
		r := &x.records[k]
		if !r.settled() || !f.own && met[at(r)] < int32(len(f.deciders)) {
			continue
		}
		c := restricted[r.cell]
		if c == nil {
			c = &cell{Cell: r.cell.Cell, tally: tally{from: r.cell.from}}
			restricted[r.cell] = c
		}
		c.addRecord(r, x.design)
	}
	for _, c := range x.cells {
		if restricted[c] != nil {
			f.common = append(f.common, restricted[c])
		}
	}
	f.choosePlain()
	if stopped {
		f.weigh(x)
	}
	return f
}

// addRecord counts the outcome of a trial, and what it cost.
func (c *cell) addRecord(r *record, d Design) {
	one := r.outcomes()
	c.plan(int(r.repeat), int(r.replay))
	c.count(r.task, one)
	if floor, ok := d.floor(c.Cell, &r.best); ok && one[measured] > 0 {
		c.amounts[floored]++
		c.amounts[floors] += floor
		c.amounts[ceilings] += r.best
	}
	bump(&c.spent, r.task, r.usd)
	c.amounts[unpriced] += float64(r.unpriced)
}

// choosePlain finds the condition on which models are ranked. A mean over plans, reliabilities, interfaces
// or phrasings would depend on the mixture that was planned.
func (f *field) choosePlain() {
	plain, name := plainCells(f.common)
	if len(plain) == 0 && len(f.common) > 0 { // flawed plans only
		plain, name = f.common, FlawedPlans
	}
	most := 0.
	for _, c := range plain {
		most = max(most, c.Reliability)
	}
	f.plain = where(plain, func(c assay.Cell) bool { return c.Reliability == most })
	if name == "" {
		return
	}
	plan := map[string]string{
		RightPlan: "the right plan", assay.Baseline: "no plan", FlawedPlans: FlawedPlans,
	}[name]
	conditions := []string{cmp.Or(plan, "variant "+name)}
	for _, of := range []struct{ factor, words string }{{phrasing, "plain words"}, {interfaces, "own interfaces"}} {
		if all := levels(f.plain, of.factor); len(all) > 1 && all[0] == assay.Plain {
			f.plain = where(f.plain, func(c assay.Cell) bool { return level(c, of.factor) == assay.Plain })
			conditions = append(conditions, of.words)
		}
	}
	tools := Reliable
	if most < 1 {
		tools = "reliability " + assay.FormatReliability(most)
	}
	f.condition = strings.Join(conditions, ", ") + " and " + tools
}

// weigh makes tasks count as planned after a rule has stopped a part of the trials under a condition:
// the tasks that are left stand for those that are missing.
func (f *field) weigh(x *counted) {
	planned, done := make(map[assay.Cell]map[task]bool), make(map[assay.Cell]map[task]bool)
	put := func(all map[assay.Cell]map[task]bool, c *cell, of task) {
		at := without(c.Cell, model)
		if all[at] == nil {
			all[at] = make(map[task]bool)
		}
		all[at][of] = true
	}
	for i := range x.records {
		put(planned, x.records[i].cell, x.records[i].task)
	}
	for _, c := range f.common {
		for of := range c.tasks {
			put(done, c, of)
		}
	}
	f.weights = make(map[assay.Cell]float64)
	for c, tasks := range done {
		f.weights[c] = float64(len(planned[c])) / float64(len(tasks))
	}
}

// shared returns the tasks of models' trials, in the order of the models, for package stat.
func (f *field) shared(cells []*cell, models []string) (tasks []stat.Shared, bySequence bool) {
	type place struct {
		task   task
		strata assay.Cell // what weights depend on
	}
	conditions := make(map[place]map[assay.Cell][]stat.Group)
	for _, c := range cells {
		m := slices.Index(models, c.Model)
		if m < 0 {
			continue
		}
		bySequence = c.from.bySequence()
		at := without(c.Cell, model)
		for of, o := range c.tasks {
			p := place{task: of, strata: assay.Cell{Difficulty: c.Difficulty, TaskType: c.TaskType}}
			if conditions[p] == nil {
				conditions[p] = make(map[assay.Cell][]stat.Group)
			}
			if conditions[p][at] == nil {
				conditions[p][at] = make([]stat.Group, len(models))
			}
			g := &conditions[p][at][m]
			g.Full, g.N = g.Full+int(o[full]), g.N+int(o[done])
		}
	}
	places := slices.SortedFunc(maps.Keys(conditions), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.task, b.task), compareCells(a.strata, b.strata))
	})
	for _, p := range places {
		t := stat.Shared{}
		for _, at := range slices.SortedFunc(maps.Keys(conditions[p]), compareCells) {
			t.Cells = append(t.Cells, conditions[p][at])
			t.Weight += cmp.Or(f.weights[at], 1) / float64(len(conditions[p]))
		}
		t.Sequence = cells[0].from.of[p.task]
		tasks = append(tasks, t)
	}
	return tasks, bySequence
}

func compareCells(a, b assay.Cell) int {
	return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Severity, b.Severity),
		cmp.Compare(a.Difficulty, b.Difficulty), cmp.Compare(a.TaskType, b.TaskType),
		cmp.Compare(a.Reliability, b.Reliability), cmp.Compare(a.Faults, b.Faults),
		cmp.Compare(a.Interface, b.Interface), cmp.Compare(a.Phrasing, b.Phrasing))
}

// rank ranks the deciders. It returns nil if there are fewer than two, or no trial in common.
func (f *field) rank(x *counted) *Ranking {
	if len(f.deciders) < 2 || f.own || len(f.plain) == 0 {
		return nil
	}
	tasks, bySequence := f.shared(f.plain, f.deciders)
	r := &Ranking{
		Condition: f.condition, Averaged: averagedBy(f.plain, func(c assay.Cell) string { return c.Model }),
		Ranking: stat.Rank(tasks, bySequence), Names: f.deciders, Pairs: []RankedPair{},
	}
	if !r.decides() || slices.ContainsFunc(f.deciders, func(m string) bool { return !x.complete(m) }) {
		for i := range r.Models {
			r.Models[i].Best = false
		}
	}
	for _, i := range r.Order {
		for _, k := range r.Order {
			if r.Beats(i, k) {
				r.Pairs = append(r.Pairs, RankedPair{r.Names[i], r.Names[k], r.P(i, k)})
			}
		}
	}
	return r
}

// deciders returns the models that can be the best: at least 95 % of their trials are done, and the
// missing ones are missing by chance. Simulated models only can if there are no others. Without any,
// it returns all models with outcomes.
func deciders(cells []*cell) (names []string) {
	models := slices.DeleteFunc(byModel(cells), func(m *cell) bool { return m.n(done) == 0 })
	simulated := !slices.ContainsFunc(models, func(m *cell) bool { return !Simulated(m.Model) })
	for _, m := range models {
		if Simulated(m.Model) == simulated && m.complete() {
			names = append(names, m.Model)
		}
	}
	if len(names) > 0 {
		return names
	}
	for _, m := range models {
		if Simulated(m.Model) == simulated {
			names = append(names, m.Model)
		}
	}
	return names
}

// complete reports whether a model, by its name, can be the best.
func (x *counted) complete(model string) bool {
	t := sum(ofModel(x.cells, model))
	return t.complete()
}

// complete reports whether a model can be the best.
func (t *tally) complete() bool {
	return t.selected() == "" && float64(t.n(done)) >= Enough*float64(t.planned)
}
