package stat

import "math"

// A Pair holds the trials of one task on two sides under one condition: A of NA
// trials succeeded on side A, and B of NB on side B.
type Pair struct {
	A, NA int
	B, NB int
}

// difference returns the rate of side B minus the rate of side A.
func (p Pair) difference() float64 {
	return float64(p.B)/float64(p.NB) - float64(p.A)/float64(p.NA)
}

// chance returns the variance of the difference if the successes fall on the sides by chance: a
// hypergeometric number.
func (p Pair) chance() float64 {
	na, nb, full := float64(p.NA), float64(p.NB), float64(p.A+p.B)
	return full * (na + nb - full) / (na * nb * (na + nb - 1))
}

// A Cell is a Pair under a numbered condition. A gate also needs Losses, a value for each pair of
// trials, one of each side: the success of side A less that of side B. A trial of the side with fewer
// trials has several partners if the luck is not shared.
type Cell struct {
	Condition int
	Pair
	Losses []float64
}

// A Matched task has trials on both sides, under one or more conditions. Tasks
// that need the same sequence of tools have the same Sequence and are alike.
type Matched struct {
	Sequence int
	Cells    []Cell
}

// A Comparison describes how much two sides differ and whether chance can
// explain it. Rates are shares of 1, and differences are B minus A.
type Comparison struct {
	Tasks     int `json:"tasks"`     // tasks tried on both sides
	Sequences int `json:"sequences"` // their different sequences of tools
	Pairs     int `json:"pairs"`     // trials of one side with a partner on the other
	// Clusters is the number of independent observations: Tasks or Sequences.
	Clusters int `json:"clusters"`

	RateA      float64  `json:"rate_a"`
	RateB      float64  `json:"rate_b"`
	Difference float64  `json:"difference"`
	Interval   Interval `json:"interval"` // of Difference, 95 %

	// P is the two-sided p-value for no difference. It is below 0.05 if and only
	// if the interval does not contain 0.
	P      float64 `json:"p"`
	Method string  `json:"method"`

	// Conditions counts the conditions that the sides share. PConditions is the
	// p-value for the same difference under all of them; see [Compare]. It is 1
	// if there is only one.
	Conditions  int     `json:"conditions"`
	PConditions float64 `json:"p_conditions"`

	// OnlyA and OnlyB count the tasks on which that side did better. With one
	// trial per side, these are the discordant pairs.
	OnlyA int `json:"only_a"`
	OnlyB int `json:"only_b"`

	// CohenH is the effect size of two rates: 0.2 is small, 0.5 medium, 0.8
	// large. OddsRatio is OnlyB/OnlyA with half a task added to both, so it is
	// finite, and swapping the sides inverts it.
	CohenH    float64 `json:"cohen_h"`
	OddsRatio float64 `json:"odds_ratio"`

	// Detectable is the smallest difference that data with the observed scatter
	// would have shown in 80 of 100 runs; see [Compare]. It is not the power at
	// the observed difference, which would add no information to P. Power has the shares of runs
	// that would have shown some other differences.
	Detectable float64 `json:"detectable"`
	Power      Power   `json:"power"`

	// Mixed is a check by another method. It is nil if there are fewer than two
	// sequences, if each task has its own, or if all tasks have the same difference, which leaves
	// the model no variance to estimate.
	Mixed *Mixed `json:"mixed_model,omitempty"`
}

// Compare compares two sides over the tasks that both tried.
//
// # Weights
//
// A task's rate on a side is the mean of its rates under the conditions that
// both sides have, and a side's rate is the mean over tasks. So neither a
// condition nor a task counts for more because it was repeated more often. If
// trials were added up over conditions instead, a side with more repeats of the
// easy condition would look better (Simpson, "The interpretation of interaction
// in contingency tables", JRSS B 13, 1951).
//
// # P and Interval
//
// Both come from Student's t over the tasks' differences. The variance is the
// jackknife's over clusters, which are tasks or, with bySequence, all tasks of
// one sequence of tools. A cluster's differences may depend on each other in any
// way, so trials within tasks and tasks within sequences need no further levels
// (Cameron and Miller, "A practitioner's guide to cluster-robust inference",
// Journal of Human Resources 50, 2015; MacKinnon, Nielsen and Webb, "Fast and
// reliable jackknife and bootstrap methods for cluster-robust inference",
// Journal of Applied Econometrics 38, 2023: CV3). The degrees of freedom are
// Satterthwaite's for this variance and clusters of these sizes: one less than
// the number of clusters if these are equally large, and fewer if not (Bell and
// McCaffrey, "Bias reduction in standard errors for linear regression with
// multi-stage samples", Survey Methodology 28, 2002; Imbens and Kolesár, "Robust
// standard errors in small samples", Review of Economics and Statistics 98,
// 2016).
//
// Few tasks may show no difference although there is one. Half a task with a
// difference in favour of each side is therefore added, of the size that
// differences have, or half a cluster if no task differs or all do. With one trial per side, these are the pseudo-observations
// of Agresti and Min ("Simple improved confidence intervals for comparing
// matched proportions", Statistics in Medicine 24, 2005).
//
// Unequal numbers of trials make a difference skewed: one trial fails
// completely, ten fail by a tenth. Until the rare outcome occurs on the side
// with fewer trials, the differences seem to scatter less than they do. The variance is therefore
// at least half the variance under random reassignment of the trials to the sides, summed over the
// cells with unequal numbers.
//
// In simulations (20 to 100 tasks, or 7 to 50 sequences of unequal numbers of
// tasks; one or four conditions; equal and unequal numbers of trials; rates
// around two thirds), P is below 0.05 in 2.7 to 5.8 % of comparisons without a
// difference, and the interval contains the truth in 93.9 to 97.3 %. With 20
// tasks and one trial per side, 5.0 % of equal sides have such a P at the worst
// rate, and 0.2 % at a rate of 95 %, where seldom more than three tasks differ;
// no test calls more of these sides different without calling too many different at
// other rates. With repeats, coverage can fall to 88 % if 20 tasks agree but for a
// few that differ completely.
//
// Exact tests are not used, because they find too little in few tasks: with 20
// tasks and one trial per side, McNemar's exact test calls 1 to 2 % of equal
// sides different instead of 5 % (Fagerland, Lydersen and Laake, "The McNemar
// test for binary matched-pairs data: mid-p and asymptotic are better than exact
// conditional", BMC Medical Research Methodology 13, 2013).
//
// # PConditions
//
// PConditions compares the spread of the conditions' differences, weighted by
// tasks, with its distribution under the wild cluster bootstrap: each cluster's
// differences from the common one are multiplied by the same random weight
// (Cameron, Gelbach and Miller, "Bootstrap-based improvements for inference with
// clustered errors", Review of Economics and Statistics 90, 2008). The six
// weights are Webb's, which suit few clusters (MacKinnon and Webb, "Wild
// bootstrap inference for wildly different cluster sizes", Journal of Applied
// Econometrics 32, 2017). The differences are divided by √(1-h), where h is the cluster's share of
// the data (Davidson and Flachaire, "The wild bootstrap, tamed at last", Journal of Econometrics
// 146, 2008).
//
// In simulations (12, 20 and 60 tasks under 2 or 4 conditions that each task has all, half or one
// of), PConditions is below .05 in 2 to 6 % of comparisons with the same difference everywhere.
//
// # Detectable
//
// Detectable is the difference that exceeds the test's critical value in 80 of
// 100 runs, from the observed standard error (Bloom, "Minimum detectable
// effects", Evaluation Review 19, 1995). It allows for the scatter that such a difference itself
// adds, and for the uncertainty of the standard error. In simulations, new data with a difference
// of Detectable show it in 78 to 84 % of runs with 100 tasks, in 70 to 91 % with 25, and in 50 to
// 94 % with 10.
func Compare(tasks []Matched, bySequence bool) Comparison {
	x := contrastOf(tasks, bySequence)
	c := x.counts
	c.Interval, c.P, c.OddsRatio, c.Detectable = Interval{-1, 1}, 1, 1, 1
	c.PConditions = 1
	if c.Tasks == 0 {
		return c
	}
	c.Difference = c.RateB - c.RateA
	c.CohenH = cohenH(c.RateB, c.RateA)
	c.OddsRatio = (float64(c.OnlyB) + .5) / (float64(c.OnlyA) + .5)
	if c.Sequences > 1 && c.Sequences < c.Tasks && x.varies() {
		c.Mixed = mixed(tasks)
	}
	if c.Clusters < 2 {
		return c
	}
	e := x.estimate(x.typical())
	half := e.se * studentQuantile(.975, e.df)
	c.Interval = Interval{max(-1, e.mean-half), min(1, e.mean+half)}
	c.P = min(1, 2*studentCDF(-math.Abs(e.mean)/e.se, e.df))
	c.Detectable, c.Power = e.detectable(float64(c.Tasks)), powerOf(e.finds(float64(c.Tasks)))
	if c.Conditions > 1 {
		c.PConditions = x.conditions()
	}
	return c
}

// LossBounds bound the rate of side A less that of side B, each one-sided: it is above Upper in at most 5 %
// of such data, and below Lower in at most 0.5 %.
type LossBounds struct {
	Lower float64 `json:"lower_99_5"`
	Upper float64 `json:"upper_95"`
}

// LossBoundsOf returns bounds by the t of [Compare].
func LossBoundsOf(tasks []Matched, bySequence bool) LossBounds {
	x := contrastOf(tasks, bySequence)
	if x.counts.Clusters < 2 {
		return LossBounds{-1, 1}
	}
	e := x.estimate(x.typical())
	return LossBounds{
		Lower: max(-1, -e.mean-e.se*studentQuantile(.995, e.df)),
		Upper: min(1, -e.mean+e.se*studentQuantile(.95, e.df)),
	}
}

// A contrast holds the differences of tasks by cluster.
type contrast struct {
	counts   Comparison // the counts and rates
	tasks    []taskRates
	clusters []cluster
	cells    []cellOf
	// size and length are the sums of the squares and of the absolute values of
	// the tasks' differences. step is the mean unit of a task's difference, and
	// least is the variance of the sum of differences that unequal numbers of
	// trials require.
	size, length, step, least float64
}

// taskRates has the rates of one task.
type taskRates struct {
	cluster int
	a, b    float64
}

// A cluster counts tasks and adds up their differences.
type cluster struct{ n, sum float64 }

// A cellOf is a task's difference under one condition.
type cellOf struct {
	cluster, condition int
	difference         float64
}

func contrastOf(tasks []Matched, bySequence bool) *contrast {
	x := &contrast{}
	c := &x.counts
	sequences, conditions := make(map[int]int), make(map[int]int)
	for _, t := range tasks {
		t.Cells = both(t.Cells)
		if len(t.Cells) == 0 {
			continue
		}
		at := number(sequences, t.Sequence)
		if !bySequence {
			at = c.Tasks
		}
		if at == len(x.clusters) {
			x.clusters = append(x.clusters, cluster{})
		}
		for i := range t.Cells {
			t.Cells[i].Condition = number(conditions, t.Cells[i].Condition)
		}
		x.add(t, at)
	}
	m := max(1, float64(c.Tasks))
	// Rounding may exceed 1.
	c.RateA, c.RateB, x.step = min(1, c.RateA/m), min(1, c.RateB/m), x.step/m
	c.Sequences, c.Conditions, c.Clusters = len(sequences), len(conditions), len(x.clusters)
	c.Method = "t over tasks"
	if bySequence {
		c.Method = "t over sequences of tools"
	}
	return x
}

// varies reports whether tasks have different differences.
func (x *contrast) varies() bool {
	var sum float64
	for _, c := range x.clusters {
		sum += c.sum
	}
	return x.size-sum*sum/float64(x.counts.Tasks) > 1e-9
}

// number returns the number of a key in the order of their first use.
func number(known map[int]int, key int) int {
	n, ok := known[key]
	if !ok {
		n = len(known)
		known[key] = n
	}
	return n
}

// add adds a task to a cluster.
func (x *contrast) add(t Matched, at int) {
	c, k := &x.counts, float64(len(t.Cells))
	var a, b float64
	for _, p := range t.Cells {
		na, nb := float64(p.NA), float64(p.NB)
		a += float64(p.A) / na / k
		b += float64(p.B) / nb / k
		c.Pairs += min(p.NA, p.NB)
		x.step += (1/na + 1/nb) / 2 / (k * k)
		if p.NA != p.NB {
			x.least += p.chance() / (k * k) / 2
		}
		x.cells = append(x.cells, cellOf{at, p.Condition, p.difference()})
	}
	x.tasks = append(x.tasks, taskRates{at, a, b})
	d := b - a
	switch {
	case d > 1e-9: // differences of thirds have rounding errors
		c.OnlyB++
	case d < -1e-9:
		c.OnlyA++
	}
	c.Tasks++
	c.RateA += a
	c.RateB += b
	x.size += d * d
	x.length += math.Abs(d)
	x.clusters[at].n++
	x.clusters[at].sum += d
}

// both returns the cells that were tried on both sides.
func both(cells []Cell) []Cell {
	var out []Cell
	for _, p := range cells {
		if p.NA > 0 && p.NB > 0 {
			out = append(out, p)
		}
	}
	return out
}

// An estimate is a mean difference with its standard error and the degrees of freedom of that error.
// Typical is the size of a difference, in tasks. Rate is the mean rate of both sides, and step the
// mean unit of a task's difference.
type estimate struct{ mean, se, df, typical, rate, step float64 }

// typical returns the size of a difference, in tasks. One step of unknown size counts as a whole
// task, and as a whole cluster if no task differs or all differ completely, because then the data
// cannot show whether the tasks of a cluster do so together.
func (x *contrast) typical() float64 {
	m, n := float64(x.counts.Tasks), 0.
	for _, c := range x.clusters {
		n += c.n * c.n / m
	}
	rare := max(0, min(x.length, m-x.length))
	return (x.size+x.step)/(x.length+x.step) + (n-1)*x.step/(rare+x.step)
}

func (x *contrast) estimate(typical float64) estimate {
	m, g := float64(x.counts.Tasks), float64(len(x.clusters))
	e := estimate{typical: typical, rate: (x.counts.RateA + x.counts.RateB) / 2, step: x.step}
	var sum, variance float64
	for _, c := range x.clusters {
		sum += c.sum
	}
	e.mean = sum / (m + 1)
	sizes := make([]int, len(x.clusters))
	for i, c := range x.clusters {
		sizes[i] = int(c.n)
		off := (c.sum - c.n*e.mean) / (1 - c.n/(m+1))
		variance += off * off
	}
	variance = variance*(g-1)/g + e.typical*e.typical + e.mean*e.mean
	e.se = math.Sqrt(max(variance, x.least)) / (m + 1)
	e.df, _ = jackknife(sizes, m)
	return e
}

// jackknife returns Satterthwaite's degrees of freedom of the jackknife's
// variance over clusters of independent tasks, and the factor by which it
// exceeds the true variance of the mean if the tasks of a cluster agree.
func jackknife(clusters []int, tasks float64) (df, bias float64) {
	var trace, squares, all, own, kish float64
	g := float64(len(clusters))
	for _, n := range clusters {
		kish += float64(n) * float64(n) / tasks
	}
	for _, n := range clusters {
		c := float64(n)
		rest := 1 - c/tasks
		v, q := c/rest, c*c/tasks/(rest*rest)
		trace += v
		squares += v * v
		all += q
		own += q * q
		bias += q * (rest*rest + kish/tasks - c*c/(tasks*tasks))
	}
	return trace * trace / (squares + all*all - own), bias * (g - 1) / g / kish
}

// detectable returns the smallest difference that the test finds in 80 of 100 runs.
func (e estimate) detectable(tasks float64) float64 {
	finds := e.finds(tasks)
	return smallest(func(d float64) bool { return finds(d) >= .8 })
}

// finds returns the share of runs in which the test finds a difference. A mean difference of d
// requires a mean square of at least d times the typical size.
func (e estimate) finds(tasks float64) func(d float64) float64 {
	t := studentQuantile(.975, e.df)
	uncertain := math.Sqrt(1 + 3/e.df) // because the standard error is uncertain
	return func(d float64) float64 {
		own := max(0, d*e.typical-d*d) / (tasks + 1)
		square := e.se*e.se + e.added(d)/(tasks+1)
		return studentCDF(d/(uncertain*math.Sqrt(max(square, own)))-t, e.df)
	}
}

// added returns the variance that a task's difference gains if one side loses a share of its
// successes, or of its failures if they are fewer: its outcomes vary more at a rate nearer to one half.
func (e estimate) added(d float64) float64 {
	high := max(e.rate, 1-e.rate)
	low := max(0, high-d)
	return max(0, low*(1-low)-high*(1-high)) * e.step
}

// cohenH returns the difference of two rates after a transformation that makes
// equal steps equally hard to detect: 0.2 is small, 0.5 medium, 0.8 large
// (Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter
// 6). It is in [-π,π].
func cohenH(a, b float64) float64 {
	return 2 * (math.Asin(math.Sqrt(a)) - math.Asin(math.Sqrt(b)))
}
