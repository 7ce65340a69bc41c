package stat

import (
	"iter"
	"math"
	"slices"
)

// Resources are what [Run.Used] has: tokens, turns, calls and working time.
const Resources = 4

// A Run is one execution of a task under a condition.
type Run struct {
	// Luck numbers the luck of the world. Runs of a task with the same number had the same.
	Luck int
	Full bool
	// Tools are the numbers of the tools whose calls succeeded, in order.
	Tools []int
	// Used is what the run took of each resource, NaN if that is unknown.
	Used [Resources]float64
}

// A Repeated task has its runs by condition.
type Repeated struct {
	Sequence   int
	Conditions [][]Run
	// Names are the numbers of the conditions. Only [SplitVariance] needs them.
	Names []int
}

// An Estimate is the mean over tasks of a figure of a task, with its 95 % interval. Without tasks,
// the value is 0 and meaningless.
type Estimate struct {
	Value    float64  `json:"value"`
	Interval Interval `json:"interval"`
	Tasks    int      `json:"tasks"` // that have the figure
}

// Consistent says how alike runs of one task are, from 0 to 1. All of its estimates are means over pairs of
// runs, so their expectation does not depend on the number of runs; those that were published are
// not.
type Consistent struct {
	// Outcome is 1 - 4p(1-p) for a task of rate p: 1 if it always or never succeeds, 0 if it is a
	// toss-up.
	Outcome Estimate
	// What and Order compare successful runs. What is 1 less the Jensen-Shannon divergence, with
	// logarithms to base 2, of the shares of tools in two runs (Lin, "Divergence measures based on the
	// Shannon entropy", IEEE Transactions on Information Theory 37, 1991). Order is 1 less their edit
	// distance (Levenshtein, Soviet Physics Doklady 10, 1966) divided by the longer length.
	What, Order Estimate
	// Resources is exp(-v), where v is the coefficient of variation of two runs, averaged over the
	// resources.
	Resources Estimate
	// PublishedOutcome and PublishedResources are the estimators of "Towards a science of AI agent
	// reliability" (arXiv 2602.16666, 2026): (2p-1)² with the observed rate p of a task, and exp(-v)
	// with the coefficient of variation of all its runs. The former is too high with few runs,
	// by 4p(1-p)/K with K runs, and both change with their number. Its two measures of trajectories
	// are What and Order.
	PublishedOutcome, PublishedResources Estimate
}

// Consistency estimates how alike runs of a task under the same condition are: runs with different
// luck or, with sameLuck, with the same. A task's figure is the mean over its conditions that have
// such a pair, and each task weighs the same.
//
// The unbiased estimate of p(1-p) is half the share of pairs that differ (Hoeffding, "A class of
// statistics with asymptotically normal distribution", Annals of Mathematical Statistics 19, 1948).
// For K runs with luck of their own, Outcome is therefore the mean over tasks of 1 - 4p(1-p)K/(K-1)
// with the observed rates p. It can be negative.
//
// The interval of Outcome is that of [PassK] for the share of pairs that differ. Those of the others are
// made for values that vary less than outcomes do: in simulations (10, 30 and 100 tasks, of which 10 to
// 100 % differ from the others), they hold the truth in 94 to 97 %. With bySequence, the sequences of
// tools count as independent, not the tasks.
func Consistency(tasks []Repeated, sameLuck, bySequence bool) Consistent {
	var flips, what, order, resources, outcomes, variations []value
	for _, t := range tasks {
		var of consistencySums
		for _, runs := range t.Conditions {
			of.add(runs, sameLuck)
		}
		for _, f := range []struct {
			to  *[]value
			sum average
		}{
			{&flips, of.flips},
			{&what, of.what},
			{&order, of.order},
			{&resources, of.resources},
			{&outcomes, of.outcome},
			{&variations, of.variation},
		} {
			if f.sum.n > 0 {
				*f.to = append(*f.to, value{t.Sequence, f.sum.mean()})
			}
		}
	}
	c := Consistent{
		What: meanOf(what, bySequence), Order: meanOf(order, bySequence),
		Resources:        meanOf(resources, bySequence),
		PublishedOutcome: meanOf(outcomes, bySequence), PublishedResources: meanOf(variations, bySequence),
	}
	flip, i := mean(flips, bySequence)
	c.Outcome = Estimate{1 - 2*flip, Interval{1 - 2*i.High, 1 - 2*i.Low}, len(flips)}
	c.Outcome.Interval.Low = max(c.Outcome.Interval.Low, min(0, c.Outcome.Value)) // the truth is not negative
	return c
}

// meanOf returns the mean of one value in [0,1] per task, whose interval uses how much the values vary.
//
// It is the interval of [mean], with two differences. The variance is shrunk towards that of outcomes of
// 0 and 1 with the weight of one task against the cube of the number of clusters that differ from the
// most frequent value: if hardly any does, the next one may differ more. The quantile is always
// Student's.
func meanOf(values []value, bySequence bool) Estimate {
	sum := 0.
	for _, v := range values {
		sum += v.value
	}
	return estimateOf(clustersOf(values, bySequence), sum, float64(len(values)), len(values))
}

// estimateOf returns that mean for clusters of tasks, which have a sum and a weight together.
func estimateOf(clusters []cluster, sum, weight float64, tasks int) Estimate {
	e := Estimate{Interval: Interval{0, 1}, Tasks: tasks}
	if e.Tasks == 0 {
		return e
	}
	var squares, s float64
	p := min(1, max(0, sum/weight)) // undo rounding
	alike := make(map[float64]int)
	frequent := 0
	for _, c := range clusters {
		squares += c.n * c.n
		s += (c.sum - c.n*p) * (c.sum - c.n*p)
		at := math.Round(1e9 * c.sum / c.n)
		alike[at]++
		frequent = max(frequent, alike[at])
	}
	n := float64(len(clusters))
	others := math.Pow(n-float64(frequent), 3)
	share := 1.
	if p*(1-p) > 0 && n > 1 {
		share = (others*min(1, s/squares/(p*(1-p))*n/(n-1)) + 1) / (others + 1)
	}
	z := Z95
	if share < 1 {
		z = studentQuantile(.975, n-1)
	}
	e.Value, e.Interval = p, wilson(p, weight*weight/squares/share, z)
	return e
}

// An average is a mean of values that come one by one.
type average struct{ sum, n float64 }

func (a *average) add(v float64) { a.sum, a.n = a.sum+v, a.n+1 }

func (a average) mean() float64 { return a.sum / a.n }

// join adds the mean of another average, if it has one, as one value.
func (a *average) join(o average) {
	if o.n > 0 {
		a.add(o.mean())
	}
}

// consistencySums average over the conditions of a task.
type consistencySums struct{ flips, what, order, resources, outcome, variation average }

func (s *consistencySums) add(runs []Run, sameLuck bool) {
	var flips, what, order, resources average
	for a, b := range pairs(runs, sameLuck) {
		flips.add(float64(unlike(a.Full, b.Full)))
		if a.Full && b.Full {
			w, o := 1., 1.
			if !slices.Equal(a.Tools, b.Tools) {
				w, o = 1-divergence(a.Tools, b.Tools), sameOrder(a.Tools, b.Tools)
			}
			what.add(w)
			order.add(o)
		}
		if v, ok := variation([]*Run{a, b}); ok {
			resources.add(math.Exp(-v))
		}
	}
	s.flips.join(flips)
	s.what.join(what)
	s.order.join(order)
	s.resources.join(resources)
	if flips.n == 0 {
		return
	}
	rate, all := average{}, make([]*Run, len(runs))
	for i := range runs {
		rate.add(float64(unlike(runs[i].Full, false)))
		all[i] = &runs[i]
	}
	s.outcome.add((2*rate.mean() - 1) * (2*rate.mean() - 1))
	if v, ok := variation(all); ok {
		s.variation.add(math.Exp(-v))
	}
}

func unlike(a, b bool) int {
	if a != b {
		return 1
	}
	return 0
}

// neighbours bounds the pairs of a run, so that the work does not grow with the square of the number
// of runs. A mean over some pairs has the same expectation as that over all.
const neighbours = 50

// pairs yields the pairs of runs that had the same luck, or different luck.
func pairs(runs []Run, sameLuck bool) iter.Seq2[*Run, *Run] {
	return func(yield func(*Run, *Run) bool) {
		for i := range runs {
			n := 0
			for j := i + 1; j < len(runs) && n < neighbours; j++ {
				if (runs[i].Luck == runs[j].Luck) != sameLuck {
					continue
				}
				if n++; !yield(&runs[i], &runs[j]) {
					return
				}
			}
		}
	}
}

// divergence returns the Jensen-Shannon divergence of the shares of tools in two runs. It is 1 if only
// one of them used any.
func divergence(a, b []int) (sum float64) {
	if len(a) == 0 || len(b) == 0 {
		return float64(unlike(len(a) == 0, len(b) == 0))
	}
	shares := make(map[int][2]float64)
	for i, tools := range [][]int{a, b} {
		for _, t := range tools {
			s := shares[t]
			s[i] += 1 / float64(len(tools))
			shares[t] = s
		}
	}
	numbers := make([]int, 0, len(shares)) // in order, for the same rounding every time
	for t := range shares {
		numbers = append(numbers, t)
	}
	slices.Sort(numbers)
	for _, t := range numbers {
		s := shares[t]
		for _, p := range s {
			if p > 0 {
				sum += p / 2 * math.Log2(2*p/(s[0]+s[1]))
			}
		}
	}
	return min(1, max(0, sum))
}

// sameOrder returns 1 less the edit distance of two runs' tools, divided by the longer length.
func sameOrder(a, b []int) float64 {
	longer := max(len(a), len(b))
	if longer == 0 {
		return 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		before := row[0]
		row[0] = i + 1
		for j, y := range b {
			change := before
			if x != y {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, before+1, row[j]+1)
		}
	}
	return 1 - float64(row[len(b)])/float64(longer)
}

// variation returns the coefficient of variation of runs, averaged over the resources that are known
// of all of them. It returns false if none is.
func variation(runs []*Run) (float64, bool) {
	var all average
	for k := range Resources {
		var of average
		for _, r := range runs {
			of.add(r.Used[k])
		}
		squares := 0. // relative to the mean, so that they are the same in each unit
		for _, r := range runs {
			d := r.Used[k]*of.n/of.sum - 1
			squares += d * d
		}
		switch {
		case math.IsNaN(of.sum):
		case of.sum == 0:
			all.add(0)
		default:
			all.add(math.Sqrt(squares / (of.n - 1)))
		}
	}
	return all.mean(), all.n > 0
}
