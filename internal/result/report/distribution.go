package report

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Curve is a model's success by reliability in one variant.
type Curve struct {
	Model   string       `json:"model"`
	Variant string       `json:"variant"`
	Points  []CurvePoint `json:"points"`
}

// A CurvePoint has a rate and, as its ceiling, the best policy's mean chance.
type CurvePoint struct {
	Reliability float64       `json:"reliability"`
	Done        int           `json:"done"`
	Rate        float64       `json:"rate"`
	Interval    stat.Interval `json:"interval"`
	Best        *float64      `json:"best_possible"`
}

// A Repeat describes how much repeats of a task vary.
type Repeat struct {
	Model  string          `json:"model"`
	Passes []stat.Passes   `json:"passes"`
	Noise  stat.NoiseFloor `json:"noise"`
}

// curves returns a curve for each model and variant if the reliability varies. Cells are in the order
// of tables, so that the points of a curve are together and sorted.
func curves(cells []*cell) []Curve {
	out := []Curve{}
	by := variantFactor(cells)
	if len(levels(cells, reliability)) < 2 {
		return out
	}
	for _, p := range pool(cells, func(c assay.Cell) [3]string {
		return [3]string{c.Model, level(c, by), level(c, reliability)}
	}) {
		name := level(p.Cell, by)
		if n := len(out); n == 0 || out[n-1].Model != p.Model || out[n-1].Variant != name {
			out = append(out, Curve{Model: p.Model, Variant: name})
		}
		rate := p.among(done, full)
		point := CurvePoint{p.Reliability, p.n(done), rate.Rate, rate.Interval, nil}
		if best := ceiling(&p.tally); best.Known {
			point.Best = &best.Number
		}
		c := &out[len(out)-1]
		c.Points = append(c.Points, point)
	}
	return out
}

// mostFrequent returns the name with the largest count, the first in the alphabet if there are
// several, or "".
func mostFrequent(counts map[string]int) (most string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > counts[most] {
			most = name
		}
	}
	return most
}

// quantile returns the smallest value that at least a share of q of the counted values do not
// exceed.
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

// repeats covers models that tried a task more than once in a cell.
func (x *counted) repeats() []Repeat {
	out := []Repeat{}
	for _, m := range modelsOf(x.cells) {
		tasks := make(map[task]stat.Task)
		most := 0
		first := x.firstPlays(m)
		for _, c := range ofModel(x.cells, m) {
			for of, g := range first[c] {
				t := tasks[of]
				t.Cells = append(t.Cells, g)
				tasks[of] = t
				most = max(most, g.N)
			}
		}
		if most < 2 {
			continue
		}
		lucks := x.lucks(m)
		for _, at := range slices.SortedFunc(maps.Keys(lucks), luck.compare) {
			t := tasks[at.task]
			t.Repeats = append(t.Repeats, lucks[at])
			tasks[at.task] = t
		}
		from := x.cells[0].from
		var all []stat.Task
		for _, of := range slices.Sorted(maps.Keys(tasks)) {
			t := tasks[of]
			t.Sequence = from.of[of]
			all = append(all, t)
		}
		by := from.bySequence()
		r := Repeat{Model: m, Noise: stat.Noise(all, by), Passes: []stat.Passes{}}
		same, most := oneSet(all)
		for k := 1; k < most; k *= 2 {
			r.Passes = append(r.Passes, stat.PassK(same, k, by))
		}
		r.Passes = append(r.Passes, stat.PassK(same, most, by))
		out = append(out, r)
	}
	return out
}

// A luck is one repeat of a task. A model's trials share much of it in all cells.
type luck struct {
	task   task
	repeat int32
}

func (l luck) compare(o luck) int {
	return cmp.Or(cmp.Compare(l.task, o.task), cmp.Compare(l.repeat, o.repeat))
}

// lucks counts the outcomes of a model by luck, without those of replays.
func (x *counted) lucks(model string) map[luck]stat.Group {
	out := make(map[luck]stat.Group)
	for r := range x.plays(model) {
		out[luck{r.task, r.repeat}] = r.addTo(out[luck{r.task, r.repeat}])
	}
	return out
}

// firstPlays counts the outcomes of a model by cell and task, without those of replays: these share the
// luck of the first play, and the chance of a success in several trials is about trials that do not.
func (x *counted) firstPlays(model string) map[*cell]map[task]stat.Group {
	out := make(map[*cell]map[task]stat.Group)
	for r := range x.plays(model) {
		if out[r.cell] == nil {
			out[r.cell] = make(map[task]stat.Group)
		}
		out[r.cell][r.task] = r.addTo(out[r.cell][r.task])
	}
	return out
}

// plays yields the records of a model that have an outcome and are no replays.
func (x *counted) plays(model string) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		for i := range x.records {
			r := &x.records[i]
			if r.cell.Model == model && r.replay == 0 && r.settled() && !yield(r) {
				return
			}
		}
	}
}

func (r *record) addTo(g stat.Group) stat.Group {
	return stat.Group{Full: g.Full + int(r.counts>>full&1), N: g.N + 1}
}

// oneSet returns the tasks and cells with enough trials for every k up to the returned one, so that
// pass@k cannot fall and pass^k cannot rise because other tasks count. It is the largest k that at
// least half of the tasks have trials for.
func oneSet(all []stat.Task) (same []stat.Task, most int) {
	var trials []int
	for _, t := range all {
		n := 0
		for _, c := range t.Cells {
			n = max(n, c.N)
		}
		trials = append(trials, n)
	}
	slices.Sort(trials)
	most = trials[len(trials)/2]
	for _, t := range all {
		t.Cells = slices.DeleteFunc(slices.Clone(t.Cells), func(c stat.Group) bool { return c.N < most })
		if len(t.Cells) > 0 {
			same = append(same, t)
		}
	}
	return same, most
}

// A Bin counts outcomes with the same value.
type Bin struct {
	Value    float64
	Outcomes int
}

func (r GridRow) bins(kind histogramKind, value func(int) float64) (all []Bin) {
	if r.tally == nil {
		return nil
	}
	counts := r.tally.histograms[kind]
	for _, at := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, Bin{value(at), counts[at]})
	}
	return all
}

// Turns counts the outcomes of a group by their replies.
func (r GridRow) Turns() []Bin {
	return r.bins(turnCounts, func(n int) float64 { return float64(n) })
}

// Tokens counts the outcomes of a group by their tokens, exact to 2.5 %.
func (r GridRow) Tokens() []Bin { return r.bins(tokenBins, tokensOf) }

// BestAt averages the best policy's chance over the outcomes at a reliability. It returns nil if
// that was not measured.
func (a *Analysis) BestAt(reliability string) *float64 {
	sum, n := 0.0, 0
	for _, c := range a.Curves {
		for _, p := range c.Points {
			if p.Best != nil && assay.FormatReliability(p.Reliability) == reliability {
				sum, n = sum+*p.Best*float64(p.Done), n+p.Done
			}
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}
