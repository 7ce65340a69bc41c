package report

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// An Analysis is all that a report says of an experiment.
type Analysis struct {
	*Table
	Alarms []Alarm `json:"alarms"`
	// Cells are all that were planned, in that order.
	Cells []CellRow `json:"cells"`
	// Pivots show rates of full success by model and the levels of a factor, one for
	// each that varies; none where there are several parts, which have their own.
	Pivots []Pivot `json:"pivots"`
	// Main are the models' main metrics.
	Main []Metrics `json:"main"`
	// Variants compares each variant with the optimal one or, without it, with the
	// first, on the same tasks, model by model. Models compares models two by two.
	Variants []Paired `json:"variant_comparisons"`
	Models   []Paired `json:"model_comparisons"`
	Curves   []Curve  `json:"reliability"`
	Spreads  []Spread `json:"distributions"`
	Repeats  []Repeat `json:"repeats"`
	Lanes    []Lane   `json:"lanes"`
	// Others are aggregates of other systems.
	Others []Other `json:"others"`
	// Facts are what it takes to do the same again.
	Facts []Fact `json:"reproduction"`

	// shown are rates by model and variant for a chart: over all cells where every
	// variant has the same conditions, else under the condition that most have.
	shown     []shownRate
	condition string // in words, and what is averaged over; empty for all
	// byReliability is of the cells that the curves are of; nil without any.
	byReliability *Pivot
}

type shownRate struct {
	model, variant string
	PivotCell
}

// A CellRow counts the trials of one cell.
type CellRow struct {
	Row
	TaskType string `json:"task_type"`
}

// A Paired is a comparison of two sides on the same tasks, the conditions beside
// what is compared being the same. See [stat.Compare].
type Paired struct {
	// Model is whose variants are compared; empty where models are.
	Model string `json:"model,omitempty"`
	A     string `json:"a"`
	B     string `json:"b"`
	stat.Comparison
	// Q is P adjusted for all comparisons of its list, by Benjamini and Hochberg's
	// procedure: taking those below .05 for real, one in twenty of them is not.
	Q float64 `json:"q"`
}

// Significant says that the difference is taken for real.
func (p Paired) Significant() bool { return p.Tasks > 0 && p.Q < level05 }

// level05 is the level of tests.
const level05 = 0.05

// A Curve is a model's success by reliability, in one variant.
type Curve struct {
	Model   string       `json:"model"`
	Variant string       `json:"variant"`
	Points  []CurvePoint `json:"points"`
}

// A CurvePoint has the mean chance of the best policy beside the rate.
type CurvePoint struct {
	Reliability float64       `json:"reliability"`
	Done        int           `json:"done"`
	Rate        float64       `json:"rate"`
	Interval    stat.Interval `json:"interval"`
	Best        *float64      `json:"best_possible"`
}

// A Spread tells what a model's outcomes took. Quantiles are of outcomes; those of
// tokens are exact to 2.5 %.
type Spread struct {
	Model string `json:"model"`
	Done  int    `json:"done"`
	// Turns counts outcomes by their replies.
	Turns        map[int]int `json:"turns"`
	TurnQuarts   [3]float64  `json:"turn_quartiles"`
	TokenQuarts  [3]float64  `json:"token_quartiles"`
	Token95      float64     `json:"tokens_95"`
	tokens       map[int]int
	CostUSD      float64  `json:"cost_usd"` // of all attempts
	CostPerFull  *float64 `json:"cost_per_full_success"`
	TokensPer    float64  `json:"tokens_per_trial"`
	CallsPer     float64  `json:"calls_per_trial"`
	WastedShare  float64  `json:"wasted_share"` // of calls
	MistakeShare float64  `json:"mistake_share"`
	Assisted     Share    `json:"assisted"` // outcomes with a correction
	SecondsPer   float64  `json:"working_s_per_trial"`
	Adherence    float64  `json:"adherence"`
	Given        *float64 `json:"given_adherence"`
	Success      Share    `json:"full_success"`
}

// A Repeat tells what repeats of tasks say of a model.
type Repeat struct {
	Model  string          `json:"model"`
	Passes []stat.Passes   `json:"passes"`
	Noise  stat.NoiseFloor `json:"noise"`
}

// A Lane tells how full a lane was in a run.
type Lane struct {
	Run       assay.RunID        `json:"run"`
	Model     string             `json:"model"`
	Lane      string             `json:"lane"`
	Requests  int                `json:"requests"`
	Occupancy float64            `json:"occupancy"`
	UsedS     float64            `json:"used_s"`
	WaitedS   map[string]float64 `json:"waited_s"`
}

// Other is what another system reports, labelled as such.
type Other struct {
	Name   string     `json:"name"` // of the file
	Source string     `json:"source"`
	Note   string     `json:"note"`
	Rows   []OtherRow `json:"rows"`
}

// An OtherRow is a group of the other system's aggregates.
type OtherRow struct {
	Model       string        `json:"model"`
	Variant     string        `json:"variant"`
	Difficulty  string        `json:"difficulty"`
	Reliability float64       `json:"reliability"`
	N           int           `json:"n"`
	Full        int           `json:"full_success"`
	Partial     int           `json:"partial_success"`
	FullRate    float64       `json:"full_success_rate"`
	Interval    stat.Interval `json:"full_success_95"`
	Corrected   bool          `json:"corrected"`
}

// A Fact is a name and its value.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Beside is what a report says that attempts do not.
type Beside struct {
	Lanes  []Lane
	Others []Other
	Facts  []Fact
	// Unread, once all attempts were read, counts those that could not be; nil for none.
	Unread func() int
	// Unplanned names what runs with other plans of the experiment's name tried, and
	// this plan does not have.
	Unplanned []string
	// Stopped says which cells or models were given up before their time, and why.
	Stopped []string
	// Skipped counts, by model, the trials that were given up so. They are not pending.
	Skipped map[string]int
	// Prompts has a digest of what models are told at first, over the same sample of
	// tasks, by variant and severity; see [PromptKey]. Nil for not known.
	Prompts map[string]string
}

// PromptKey names a variant together with its severity.
func PromptKey(variant, severity string) string { return gradedName(variant, severity) }

// Analyze makes the tables and figures of an experiment from its planned trials, each
// of them once, and from attempts, those at one trial oldest first. An attempt
// counts by its trial alone: the outcome of a trial that another experiment
// shares counts here too, and attempts at other trials are passed over. The
// first outcome settles a trial; a later one adds its cost and nothing else.
//
// Attempts are read once. What is kept grows with the cells and their tasks and, by a
// mark for each, with the trials.
func (d Design) Analyze(experiment string, trials iter.Seq[assay.Trial], attempts iter.Seq2[assay.Attempt, error], b Beside) (*Analysis, error) {
	cells, lucks, err := count(trials, attempts)
	if err != nil {
		return nil, err
	}
	a := &Analysis{
		Table: d.table(experiment, cells), Cells: []CellRow{}, Pivots: d.pivots(cells), Curves: curves(d.curved(cells)),
		Spreads: spreads(cells), Repeats: repeats(cells, lucks), Lanes: orEmpty(b.Lanes), Others: orEmpty(b.Others), Facts: orEmpty(b.Facts),
		Variants: compareVariants(cells), Models: compareModels(cells), Main: []Metrics{},
	}
	for _, n := range b.Skipped {
		a.Skipped += n
	}
	a.shown, a.condition = shown(cells)
	if len(a.Curves) > 0 {
		a.byReliability = new(Part{Varies: []string{reliability}}.pivot(d.curved(cells), d.LeftOut))
	}
	for _, c := range cells {
		r := CellRow{c.row(), c.TaskType}
		r.Model, r.Variant, r.Severity, r.Difficulty, r.Reliability = c.Model, c.Variant, c.Severity, c.Difficulty, c.Reliability
		a.Cells = append(a.Cells, r)
	}
	for _, m := range (Part{}).models(cells) {
		a.Main = append(a.Main, m.metrics(m.key))
	}
	if variantFactor(cells) == variant {
		b.Prompts = plainKeys(b.Prompts)
	}
	a.Alarms = alarms(a, cells, b)
	return a, nil
}

// plainKeys names variants without their severities, of which there is one.
func plainKeys(prompts map[string]string) map[string]string {
	out := make(map[string]string, len(prompts))
	for name, digest := range prompts {
		name, _, _ := strings.Cut(name, ", ")
		out[name] = digest
	}
	return out
}

func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

// curved are the cells whose success by reliability tells something: those of the
// part that is about it, where there are several parts.
func (d Design) curved(cells []*cell) []*cell {
	if len(d.Parts) < 2 {
		return cells
	}
	for _, p := range d.Parts {
		if p.factor() == reliability {
			return where(cells, p.has)
		}
	}
	return nil
}

// shown pools cells by model and variant.
func shown(cells []*cell) (rates []shownRate, name string) {
	by := variantFactor(cells)
	at := make(map[condition]map[string]bool) // the variants under each condition
	all := make(map[string]bool)
	for _, c := range cells {
		k := conditionOf(c.Cell)
		if at[k] == nil {
			at[k] = make(map[string]bool)
		}
		at[k][level(c.Cell, by)] = true
		all[level(c.Cell, by)] = true
	}
	var most condition
	balanced := true
	for _, c := range cells { // the first of those that have most
		if k := conditionOf(c.Cell); len(at[k]) > len(at[most]) {
			most = k
		}
		balanced = balanced && len(at[conditionOf(c.Cell)]) == len(all)
	}
	if !balanced {
		cells = where(cells, func(c assay.Cell) bool { return conditionOf(c) == most })
		name = fmt.Sprintf("%s, reliability %s", readable(most.difficulty), assay.FormatReliability(most.reliability))
	}
	type key struct{ model, variant string }
	pools, averaged := pool(cells, func(c assay.Cell) key { return key{c.Model, level(c, by)} })
	if len(averaged) > 0 {
		name += "; averaged over " + readableList(averaged)
	}
	for _, p := range pools {
		rates = append(rates, shownRate{p.key.model, p.key.variant, newPivotCell(p.key.variant, &p.tally)})
	}
	models, variants := modelsOf(cells), levels(cells, by)
	slices.SortStableFunc(rates, func(x, y shownRate) int {
		return cmp.Or(cmp.Compare(slices.Index(models, x.model), slices.Index(models, y.model)),
			cmp.Compare(slices.Index(variants, x.variant), slices.Index(variants, y.variant)))
	})
	return rates, strings.TrimPrefix(name, "; ")
}

// variantFactor is the variant, together with its severity where that varies.
func variantFactor(cells []*cell) string {
	if severityVaries(cells) {
		return Graded
	}
	return variant
}

// pivots makes a table for each factor that varies. Several parts have tables of
// their own, and over all of their cells rates would compare what is not alike.
func (d Design) pivots(cells []*cell) []Pivot {
	out := []Pivot{}
	if len(d.Parts) > 1 {
		return out
	}
	for _, f := range []string{taskType, difficulty, variant, reliability} {
		if len(levels(cells, f)) > 1 {
			out = append(out, Part{Varies: []string{f}}.pivot(cells, d.LeftOut))
		}
	}
	return out
}

// compareVariants compares each variant of a model, in each severity, with its optimal
// one or, where they share no task under the same conditions, with the first that does.
func compareVariants(cells []*cell) []Paired {
	by := variantFactor(cells)
	out := []Paired{}
	for _, m := range modelsOf(cells) {
		mine := where(cells, func(c assay.Cell) bool { return c.Model == m })
		names := levels(mine, by)
		if i := slices.Index(names, optimal); i > 0 {
			names = slices.Insert(slices.Delete(names, i, i+1), 0, optimal)
		}
		for i, name := range names {
			for _, reference := range names[:i] {
				if p := (Paired{Model: m, A: name, B: reference, Comparison: pairUp(mine, name, reference, by)}); p.Tasks > 0 {
					out = append(out, p)
					break
				}
			}
		}
	}
	return adjust(out)
}

// mostModels are compared with each other, two by two; of further ones those of a
// family are.
const mostModels = 16

// compareModels compares models two by two.
func compareModels(cells []*cell) []Paired {
	models := modelsOf(cells)
	out := []Paired{}
	for i, a := range models {
		for k, b := range models[i+1:] {
			if i+1+k >= mostModels && !sameFamily(a, b) {
				continue
			}
			if p := (Paired{A: a, B: b, Comparison: pairUp(cells, a, b, model)}); p.Tasks > 0 {
				out = append(out, p)
			}
		}
	}
	return adjust(out)
}

func modelsOf(cells []*cell) []string { return levels(cells, model) }

// adjust fills in Q.
func adjust(all []Paired) []Paired {
	p := make([]float64, len(all))
	for i := range all {
		p[i] = all[i].P
	}
	for i, q := range stat.BenjaminiHochberg(p) {
		all[i].Q = q
	}
	return all
}

// pairUp compares the cells at two levels of a factor: those that are the same in
// everything else, over the tasks that both tried.
func pairUp(cells []*cell, a, b, factor string) stat.Comparison {
	return stat.Compare(pairs(cells, a, b, factor))
}

func pairs(cells []*cell, a, b, factor string) []stat.Pair {
	type side = map[assay.Cell]*cell
	at := map[string]side{a: make(side), b: make(side)}
	for _, c := range cells {
		if s, ok := at[level(c.Cell, factor)]; ok {
			s[without(c.Cell, factor)] = c
		}
	}
	sums := make(map[task]stat.Pair)
	for condition, x := range at[a] {
		y := at[b][condition]
		if y == nil {
			continue
		}
		for of, g := range x.tasks {
			if h, ok := y.tasks[of]; ok {
				p := sums[of]
				sums[of] = stat.Pair{A: p.A + int(g.full), NA: p.NA + int(g.done), B: p.B + int(h.full), NB: p.NB + int(h.done)}
			}
		}
	}
	out := make([]stat.Pair, 0, len(sums))
	for _, of := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, sums[of])
	}
	return out
}

// without is a cell's condition beside a factor.
func without(c assay.Cell, factor string) assay.Cell {
	switch factor {
	case model:
		c.Model = ""
	case variant, Graded:
		c.Variant, c.Severity = "", ""
	case severity:
		c.Severity = ""
	case difficulty:
		c.Difficulty = ""
	case taskType:
		c.TaskType = ""
	case reliability:
		c.Reliability = 0
	}
	return c
}

// curves are there where the reliability varies.
func curves(cells []*cell) []Curve {
	out := []Curve{}
	by := variantFactor(cells)
	if len(levels(cells, reliability)) < 2 {
		return out
	}
	type key struct{ model, variant string }
	type point struct {
		key
		reliability float64
	}
	pools, _ := pool(cells, func(c assay.Cell) point {
		return point{key{c.Model, level(c, by)}, c.Reliability}
	})
	index := make(map[key]int)
	for _, p := range pools {
		i, ok := index[p.key.key]
		if !ok {
			i = len(out)
			index[p.key.key] = i
			out = append(out, Curve{Model: p.key.model, Variant: p.key.variant})
		}
		r := p.row()
		out[i].Points = append(out[i].Points, CurvePoint{p.key.reliability, r.Done, r.FullRate, r.FullInterval, r.Best})
	}
	for _, c := range out {
		slices.SortFunc(c.Points, func(x, y CurvePoint) int { return cmp.Compare(x.Reliability, y.Reliability) })
	}
	return out
}

func spreads(cells []*cell) []Spread {
	pools, _ := pool(cells, func(c assay.Cell) string { return c.Model })
	out := []Spread{}
	for _, p := range pools {
		n := float64(max(1, p.done))
		calls := float64(max(1, p.calls))
		s := Spread{
			Model: p.key, Done: p.done, Turns: orNone(p.turnCounts), tokens: p.tokenBins, CostUSD: p.costUSD,
			TokensPer: float64(p.input+p.output) / n, CallsPer: float64(p.calls) / n,
			WastedShare: float64(p.wasted) / calls, MistakeShare: float64(p.mistakes) / calls,
			Assisted:   p.among(func(o outcomes) int32 { return o.assisted }),
			SecondsPer: float64(p.working) / 1000 / n,
			Adherence:  p.adherence / n,
			Success:    p.among(func(o outcomes) int32 { return o.full }),
		}
		for i, q := range []float64{.25, .5, .75} {
			s.TurnQuarts[i] = quantile(p.turnCounts, q, func(turns int) float64 { return float64(turns) })
			s.TokenQuarts[i] = quantile(p.tokenBins, q, tokensOf)
		}
		s.Token95 = quantile(p.tokenBins, .95, tokensOf)
		if p.full > 0 && p.costUSD > 0 {
			s.CostPerFull = new(p.costUSD / float64(p.full))
		}
		if p.givenN > 0 {
			s.Given = new(p.given / float64(p.givenN))
		}
		out = append(out, s)
	}
	return out
}

func orNone(m map[int]int) map[int]int {
	if m == nil {
		return map[int]int{}
	}
	return m
}

// quantile is the least value that a share of q of the counted ones do not exceed.
func quantile(counts map[int]int, q float64, value func(int) float64) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	due := int(math.Ceil(q * float64(total)))
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		if due -= counts[v]; due <= 0 {
			return value(v)
		}
	}
	return 0
}

// repeats tells of models whose tasks were tried more than once in a cell.
func repeats(cells []*cell, lucks map[luck]stat.Group) []Repeat {
	out := []Repeat{}
	for _, m := range modelsOf(cells) {
		tasks := make(map[task]stat.Task)
		most := 0
		for _, c := range where(cells, func(c assay.Cell) bool { return c.Model == m }) {
			for of, o := range c.tasks {
				t := tasks[of]
				t.Cells = append(t.Cells, stat.Group{Full: int(o.full), N: int(o.done)})
				tasks[of] = t
				most = max(most, int(o.done))
			}
		}
		if most < 2 {
			continue
		}
		for _, at := range slices.SortedFunc(maps.Keys(lucks), luck.compare) {
			if at.model == m {
				t := tasks[at.task]
				t.Repeats = append(t.Repeats, lucks[at])
				tasks[at.task] = t
			}
		}
		var all []stat.Task
		for _, of := range slices.Sorted(maps.Keys(tasks)) {
			all = append(all, tasks[of])
		}
		r := Repeat{Model: m, Noise: stat.Noise(all), Passes: []stat.Passes{}}
		for k := 1; k <= most; k *= 2 {
			r.Passes = append(r.Passes, stat.PassK(all, k))
		}
		if last := r.Passes[len(r.Passes)-1].K; last < most {
			r.Passes = append(r.Passes, stat.PassK(all, most))
		}
		out = append(out, r)
	}
	return out
}

// sized takes a model's name apart at the number of its parameters, as in
// qwen2.5-7b-instruct. Of a mixture of experts, as in Qwen3-235B-A22B, active is how many
// of them take part in a token.
var (
	sized  = regexp.MustCompile(`(?i)^(.*?)(\d+(?:\.\d+)?)b(?:$|([-_.:@].*)$)`)
	active = regexp.MustCompile(`(?i)[-_]a\d+(?:\.\d+)?b($|[-_.:@])`)
)

func sameFamily(a, b string) bool {
	x, _, ok := familyOf(a)
	y, _, also := familyOf(b)
	return ok && also && x == y
}

// familyOf returns what models of one family have in common, and the parameters in
// billions; false for a name that does not tell.
func familyOf(model string) (family string, billions float64, ok bool) {
	m := sized.FindStringSubmatch(active.ReplaceAllString(model, "$1"))
	if m == nil {
		return "", 0, false
	}
	billions, err := strconv.ParseFloat(m[2], 64)
	return strings.ToLower(m[1] + "*" + m[3]), billions, err == nil
}
