package stat

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// A Shared task was tried by several models under one or more conditions. Cells has the trials of
// each model under each condition, as Cells[condition][model]. Tasks that need the same sequence of
// tools have the same Sequence and are alike. A task with the Weight 2 counts like two; 0 is 1.
type Shared struct {
	Sequence int
	Weight   float64
	Cells    [][]Group
}

func (t Shared) weight() float64 {
	if t.Weight == 0 {
		return 1
	}
	return t.Weight
}

// A Ranking orders models by their rates over the same tasks. It never contradicts itself: a model
// that beats another has the higher rate, beats everything that the other beats, and is beaten by
// nothing that does not beat the other.
type Ranking struct {
	Tasks     int `json:"tasks"` // tasks with trials of every model under the same condition
	Sequences int `json:"sequences"`
	// Clusters is the number of independent observations: Tasks or Sequences. Needed is how many
	// models like these can always be told apart in, if one is better on each of them. Fewer may
	// show a difference, but not between all models.
	Clusters int `json:"clusters"`
	Needed   int `json:"clusters_needed"`

	Models []Ranked `json:"models"` // as they were given
	// Order lists the models by rate, the highest first.
	Order []int `json:"order"`

	place []int       // of each model in Order
	p     [][]float64 // by place: that the one on the left is not better; 1 on and below the diagonal
}

// A Ranked model is better than the models that it beats. So many beat it, and it beats so many,
// that its rank is between First and Last.
type Ranked struct {
	Rate  float64 `json:"rate"`
	First int     `json:"first_rank"`
	Last  int     `json:"last_rank"`
	// Best is true if the first model in the order does not beat this one.
	Best bool `json:"best"`
}

// RankLevel is the largest share of rankings of equal models in which one beats another.
const RankLevel = .05

// P returns the p-value for two models that are equally good, adjusted for all pairs of models. It
// is 1 unless a has the higher rate.
func (r *Ranking) P(a, b int) float64 { return r.p[r.place[a]][r.place[b]] }

// Beats reports whether model a is significantly better than model b.
func (r *Ranking) Beats(a, b int) bool { return r.P(a, b) <= RankLevel }

// Splits reports whether all models up to a place in the order, from 0, beat all models after it.
func (r *Ranking) Splits(place int) bool {
	return place+1 < len(r.Order) && r.p[place][place+1] <= RankLevel
}

// Rank ranks models over the tasks that all of them tried under the same conditions. A task's rate
// is the mean of its rates under the conditions, and a model's rate is the mean over tasks, as in
// [Compare].
//
// If two models are equal, the difference on a task or, with bySequence, on all tasks of a sequence
// may as well have the opposite sign. All pairs are tested together: the largest difference of a
// pair, in units of its own standard deviation under such changes of signs, is compared with the
// largest one after the same changes for all models (Westfall and Young, Resampling-Based Multiple
// Testing, 1993; Romano and Wolf, "Exact and approximate stepdown methods for multiple hypothesis
// testing", JASA 100, 2005). The standard deviation is at least the one that unequal numbers of
// trials require; see [Compare]. Up to 14 clusters, all changes of signs are used, else 9,999.
//
// A model beats another only if it and every model with a higher or an equal rate differ from the
// other and from every model with a lower or an equal rate. This only removes differences, so the
// ranking keeps the level of the test.
func Rank(tasks []Shared, bySequence bool) *Ranking {
	x := fieldOf(tasks, bySequence)
	r := &Ranking{Tasks: x.tasks, Sequences: x.sequences, Clusters: len(x.sums)}
	k := x.models
	for i := range k {
		r.Order = append(r.Order, i)
		r.Models = append(r.Models, Ranked{Rate: x.rate(i)})
	}
	slices.SortStableFunc(r.Order, func(a, b int) int {
		return cmp.Compare(r.Models[b].Rate, r.Models[a].Rate)
	})
	r.place = make([]int, k)
	for place, i := range r.Order {
		r.place[i] = place
	}
	r.Needed = clustersNeeded(k)
	r.close(x.test())
	for place, i := range r.Order {
		m := &r.Models[i]
		m.First, m.Last, m.Best = 1, k, r.p[0][place] > RankLevel
		for other := range r.Order {
			if r.p[other][place] <= RankLevel {
				m.First++
			}
			if r.p[place][other] <= RankLevel {
				m.Last--
			}
		}
	}
	return r
}

// clustersNeeded returns in how many clusters each pair of models can differ significantly although
// each pair differs in its own way: so many that all pairs together have few changes of signs.
func clustersNeeded(models int) int {
	pairs := float64(models*(models-1)) / 2
	return 1 + int(math.Ceil(math.Log2(max(1, pairs/RankLevel))))
}

// close arranges p-values of pairs of models by their places, and makes them obey the order.
func (r *Ranking) close(p [][]float64) {
	k := len(r.Order)
	rate := func(place int) float64 { return r.Models[r.Order[place]].Rate }
	// Models with equal rates have no order among themselves.
	from, to := make([]int, k), make([]int, k)
	for i := range k {
		if from[i] = i; i > 0 && rate(i-1)-rate(i) < 1e-9 {
			from[i] = from[i-1]
		}
		for j := from[i]; j <= i; j++ {
			to[j] = i
		}
	}
	closed := make([][]float64, k)
	for i := range closed {
		closed[i] = slices.Repeat([]float64{1}, k)
		for j := k - 1; j > to[i]; j-- {
			closed[i][j] = p[r.Order[i]][r.Order[j]]
			if i > 0 {
				closed[i][j] = max(closed[i][j], closed[i-1][j])
			}
			if j < k-1 {
				closed[i][j] = max(closed[i][j], closed[i][j+1])
			}
		}
	}
	r.p = make([][]float64, k)
	for i := range r.p {
		r.p[i] = slices.Repeat([]float64{1}, k)
		for j := to[i] + 1; j < k; j++ {
			r.p[i][j] = closed[to[i]][from[j]]
		}
	}
}

// A field has the sums of the rates of models over the tasks of each cluster.
type field struct {
	models, tasks, sequences int
	weights                  float64     // of all tasks
	sums                     [][]float64 // by cluster and model
	// least is the variance of the sum of differences of two models that unequal numbers of trials
	// require.
	least [][]float64
}

func fieldOf(tasks []Shared, bySequence bool) (x field) {
	sequences := make(map[int]int)
	for _, t := range tasks {
		var cells [][]Group
		for _, c := range t.Cells {
			x.models = max(x.models, len(c))
			if len(observed(c)) == len(c) {
				cells = append(cells, c)
			}
		}
		if x.least == nil {
			x.least = square(x.models)
		}
		if len(cells) == 0 {
			continue
		}
		at := number(sequences, t.Sequence)
		if !bySequence {
			at = x.tasks
		}
		if at == len(x.sums) {
			x.sums = append(x.sums, make([]float64, x.models))
		}
		x.tasks++
		x.weights += t.weight()
		for _, c := range cells {
			x.add(c, t.weight()/float64(len(cells)), x.sums[at])
		}
	}
	x.sequences = len(sequences)
	return x
}

func square(n int) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, n)
	}
	return out
}

// add adds a condition, with its weight in the task.
func (x *field) add(cell []Group, weight float64, sums []float64) {
	for i, g := range cell {
		sums[i] += weight * g.rate()
		for j, h := range cell {
			if g.N != h.N {
				x.least[i][j] += weight * weight * Pair{g.Full, g.N, h.Full, h.N}.chance() / 2
			}
		}
	}
}

func (x *field) rate(model int) (sum float64) {
	for _, s := range x.sums {
		sum += s[model]
	}
	return min(1, sum/max(1e-12, x.weights)) // rounding may exceed 1
}

// test returns the p-value of each pair of models, adjusted for all pairs.
func (x *field) test() [][]float64 {
	k := x.models
	p, seen, scale := square(k), square(k), square(k)
	var pairs []float64 // the scales of all pairs i < j
	for i := range k {
		for j := range i {
			var sum, squares float64
			for _, s := range x.sums {
				sum += s[i] - s[j]
				squares += (s[i] - s[j]) * (s[i] - s[j])
			}
			if v := max(squares, x.least[i][j]); v > 1e-12 {
				scale[i][j] = 1 / math.Sqrt(v)
			}
			seen[i][j] = math.Abs(sum) * scale[i][j]
			pairs = append(pairs, scale[i][j])
		}
	}
	largest := make([]float64, 0, maxFlips)
	for signed := range flips(x.sums, k) {
		top, at := 0., 0
		for i, a := range signed {
			for _, b := range signed[:i] {
				top = max(top, math.Abs(a-b)*pairs[at])
				at++
			}
		}
		largest = append(largest, top)
	}
	slices.Sort(largest)
	for i := range k {
		for j := range i {
			// Statistics that differ only by rounding count as equal.
			below, _ := slices.BinarySearch(largest, seen[i][j]-1e-9)
			p[i][j] = float64(len(largest)-below) / float64(len(largest))
			p[j][i] = p[i][j]
		}
	}
	return p
}

// maxFlips is how many changes of signs are used, with the data as they are.
const maxFlips = 10_000

// flips yields the sums of k columns over rows after changes of the rows' signs, the unchanged ones
// first. It yields half of all changes if these are few, because the other half has the opposite
// sums, and else random ones, always the same. The sums are only valid until the next.
func flips(rows [][]float64, k int) func(yield func([]float64) bool) {
	n, exact := maxFlips, false
	if len(rows) < bits.Len(maxFlips)+1 { // 2^(rows-1) is below maxFlips
		n, exact = 1<<max(0, len(rows)-1), true
	}
	sums := make([]float64, n*k)
	r := rand.New(rand.NewPCG(1993, 2005))
	const width = 8
	table := make([]float64, k<<width)
	for start := 0; start < len(rows); start += width {
		block := rows[start:min(start+width, len(rows))]
		for pattern := range 1 << len(block) {
			at := table[pattern*k:][:k]
			clear(at)
			for c, row := range block {
				sign := 1 - 2*float64(pattern>>c&1)
				for i, v := range row {
					at[i] += sign * v
				}
			}
		}
		for draw := range n {
			pattern := 0
			switch {
			case exact:
				pattern = draw >> start & (1<<len(block) - 1)
			case draw > 0:
				pattern = int(r.Uint32() & (1<<len(block) - 1))
			}
			for i, v := range table[pattern*k:][:k] {
				sums[draw*k+i] += v
			}
		}
	}
	return func(yield func([]float64) bool) {
		for draw := range n {
			if !yield(sums[draw*k:][:k]) {
				return
			}
		}
	}
}
