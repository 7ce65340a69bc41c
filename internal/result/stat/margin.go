package stat

import (
	"cmp"
	"math"
	"slices"
)

// The levels of both tests of a gate, one-sided.
const (
	// PassLevel is the largest share of passes among sides that are worse by just the margin.
	PassLevel = .05
	// FailLevel is the largest share of failures among sides that are equally good at every task.
	FailLevel = .01
)

// NewCell pairs trials in their order. A trial is true if it succeeded.
func NewCell(condition int, a, b []bool) Cell {
	c := Cell{Condition: condition}
	c.NA, c.NB = len(a), len(b)
	c.Losses = make([]float64, min(len(a), len(b)))
	share := func(trials []bool, sign float64) (full int) {
		for i, success := range trials {
			if success {
				k := len(c.Losses)
				partners := (len(trials) + k - 1 - i%k) / k // trials of the same pair on this side
				c.Losses[i%k] += sign / float64(partners)
				full++
			}
		}
		return full
	}
	c.A, c.B = share(a, 1), share(b, -1)
	return c
}

// GateData are the tasks that a gate judges. Both sides have trials in each cell, which has Losses.
// With SameLuck, the trials of a pair met the same luck.
type GateData struct {
	Tasks                []Matched
	SameLuck, BySequence bool
}

// A Noninferiority is the verdict on whether side B is worse than side A by less than a margin.
// Differences are B minus A, in shares of 1.
type Noninferiority struct {
	Margin float64 `json:"margin"`
	// Units counts the independent observations, and Difference is the mean over them: over tasks
	// or sequences of tools if the question is about similar tasks, and over pairs of trials, with
	// equal weights of tasks, if it is about these tasks.
	Units      int     `json:"units"`
	Difference float64 `json:"difference"`
	// Lower is a bound of the difference: it is below Lower in at most 5 % of such data.
	Lower float64 `json:"lower_95"`
	// PPass is the p-value for a side B that is worse by the margin, and PFail that for a side B
	// that is equally good at every task. Both are one-sided.
	PPass float64 `json:"p_pass"`
	PFail float64 `json:"p_fail"`
	// BaselineLower is a bound of side A's rate: it is below BaselineLower in at most 5 % of such
	// data. A side cannot lose more than it has, so there is no pass with a margin above it.
	BaselineLower float64 `json:"baseline_lower_95"`

	weights []float64
}

// Passes reports whether side B is shown to be worse by less than the margin. The level is
// [PassLevel], or less at an early look.
func (n Noninferiority) Passes(level float64) bool { return n.PPass <= level && n.CanLose() }

// Fails reports whether side B is shown to be worse. The level is [FailLevel], or less at an early
// look. A side that passes is not a failure, even if it fails: the margin allows for it.
func (n Noninferiority) Fails(level float64) bool { return n.PFail <= level }

// CanLose reports whether side A succeeds often enough to lose as much as the margin.
func (n Noninferiority) CanLose() bool { return n.BaselineLower >= n.Margin }

// Least returns the smallest loss that so many units rule out at a level, if none of them loses.
func (n Noninferiority) Least(level float64) float64 {
	if len(n.weights) == 0 {
		return 1
	}
	return gaffke{weights: n.weights, losses: make([]float64, len(n.weights))}.bound(level)
}

// LeastLoss returns the smallest loss that a number of units of equal weight rules out at a level, if
// none of them loses.
func LeastLoss(units int, level float64) float64 {
	return 1 - math.Pow(level, 1/float64(max(1, units)))
}

// UnitsNeeded returns how many units of equal weight rule out a loss at a level, if none loses.
func UnitsNeeded(margin, level float64) int {
	return int(math.Ceil(math.Log(level)/math.Log1p(-margin) - 1e-9))
}

// Similar tests whether side B is worse than side A by less than a margin on more tasks like these.
// The unit is the task or, with BySequence, the sequence of tools: its mean difference, each once.
//
// PPass is Gaffke's test of a bounded mean ("Three test statistics for a nonparametric one-sided
// hypothesis on the mean of a nonnegative variable", Mathematical Methods of Statistics 14, 2005;
// Learned-Miller and Thomas, "A new confidence interval for the mean of a bounded random variable",
// 2019). It holds for losses of any distribution, also if few tasks lose all: it is Clopper and
// Pearson's for losses of 0 and 1, and no distribution is known for which it is wrong in more than
// 5 %. Without a loss, n units rule out 1 - .05^(1/n), and nothing below that.
//
// PFail is the exact sign-flip test over the units. If the sides have unequal numbers of trials, the
// differences of equal sides are not symmetric. PFail is then the test of [GateData.These].
func (d GateData) Similar(margin float64) Noninferiority { return d.test(false, margin, true) }

// These tests whether side B is worse than side A by less than a margin on just these tasks, which
// are all that matter. The unit is the pair of trials of one task under one condition. Each task
// weighs the same, and so does each condition of a task.
//
// PPass is the test of [GateData.Similar]. If the pairs share their luck, PFail is the exact sign-flip
// test over pairs, which is McNemar's if all weights are equal. Otherwise the successes in a cell
// fall on either side by chance, so side B's number of them is hypergeometric, given the cell's
// total, and the test adds up these distributions over all cells (Agresti, "A survey of exact
// inference for contingency tables", Statistical Science 7, 1992, section 3; Good, Permutation,
// Parametric and Bootstrap Tests of Hypotheses, 2005, chapter 3).
func (d GateData) These(margin float64) Noninferiority { return d.test(true, margin, true) }

// Decide applies a rule, without the bound of the difference.
func (d GateData) Decide(rule GateRule) (pass, fail bool) {
	n := d.test(rule.These, rule.Margin, false)
	pass = n.Passes(rule.Pass)
	return pass, !pass && n.Fails(rule.Fail)
}

func (d GateData) test(these bool, margin float64, bound bool) Noninferiority {
	g := d.losses(these)
	n := Noninferiority{
		Margin: margin, Units: len(g.losses), weights: g.weights, Lower: -1, PPass: 1, PFail: 1,
	}
	if n.Units == 0 {
		return n
	}
	for i, l := range g.losses {
		n.Difference -= g.weights[i] * l
	}
	n.BaselineLower = RateOf(d.baseline(), these).Lower
	if n.PPass = g.p(margin); bound {
		n.Lower = -g.bound(PassLevel)
	}
	n.PFail = d.pFail(these, g)
	return n
}

// losses returns the losses of the units.
func (d GateData) losses(these bool) gaffke {
	if these {
		return d.pairs()
	}
	return d.clusters()
}

// pFail is the p-value for a side B that is equally good at every task, from the losses of the units.
func (d GateData) pFail(these bool, g gaffke) float64 {
	if these && !d.SameLuck || d.unequal() {
		return d.strata().exact()
	}
	flips := make([]float64, len(g.losses))
	for i, l := range g.losses {
		flips[i] = g.weights[i] * l
	}
	return flipTest(flips)
}

// unequal reports whether the sides have different numbers of trials anywhere.
func (d GateData) unequal() bool {
	for _, t := range d.Tasks {
		for _, c := range t.Cells {
			if c.NA != c.NB {
				return true
			}
		}
	}
	return false
}

// clusters returns the mean losses of tasks or sequences.
func (d GateData) clusters() (g gaffke) {
	var all []cluster
	of := clusterOf(&all, d.BySequence)
	for _, t := range d.Tasks {
		at := of(t.Sequence)
		at.n++
		for _, c := range t.Cells {
			for _, l := range c.Losses {
				at.sum += l / float64(len(c.Losses)*len(t.Cells))
			}
		}
	}
	for _, c := range all {
		g.losses = append(g.losses, c.sum/c.n)
		g.weights = append(g.weights, 1/float64(len(all)))
	}
	return g
}

// pairs returns the losses of pairs of trials.
func (d GateData) pairs() (g gaffke) {
	for _, t := range d.Tasks {
		for _, c := range t.Cells {
			for _, l := range c.Losses {
				g.losses = append(g.losses, l)
				g.weights = append(g.weights, 1/float64(len(d.Tasks)*len(t.Cells)*len(c.Losses)))
			}
		}
	}
	return g
}

// baseline returns the trials of side A.
func (d GateData) baseline() (tasks []Task) {
	of := clusterOf(&tasks, d.BySequence)
	for _, t := range d.Tasks {
		task := of(t.Sequence)
		task.Sequence = t.Sequence
		for _, c := range t.Cells {
			task.Cells = append(task.Cells, Group{Full: c.A, N: c.NA})
		}
	}
	return tasks
}

func (d GateData) strata() (s strata) {
	for _, t := range d.Tasks {
		for _, c := range t.Cells {
			s = append(s, weightedCell{c.Pair, 1 / float64(len(d.Tasks)*len(t.Cells))})
		}
	}
	return s
}

// A gaffke tests the weighted mean of losses in [-1,1].
type gaffke struct{ losses, weights []float64 }

// gaffkePoints is the number of points of the numerical integration, which is within 3e-7 of closed
// forms.
const gaffkePoints = 1000

// p returns the p-value for a mean loss of d: the probability that a sum of independent exponential
// variables times w(L - d) is at least 0, with one more unit that loses all.
func (g gaffke) p(d float64) float64 { return g.values(d).p(gaffkePoints) }

// bound returns the smallest mean loss that is ruled out at a level, within 1e-7. It looks for the root
// of log p by the Illinois method, in a bracket that bisection has narrowed.
func (g gaffke) bound(level float64) float64 {
	off := func(d float64) float64 {
		return math.Log(max(1e-300, g.values(d).p(gaffkePoints/3))) - math.Log(level)
	}
	low, high := bisect(6, -1, 1, func(d float64) bool { return off(d) > 0 })
	above, below := off(low), off(high)
	for range 30 {
		if high-low < 1e-7 || above <= 0 || below >= 0 {
			break
		}
		next := (low*below - high*above) / (below - above)
		switch x := off(next); {
		case math.Abs(x) < 1e-7:
			return next
		case x > 0:
			low, above, below = next, x, below/2
		default:
			high, below, above = next, x, above/2
		}
	}
	return high
}

// values returns the factors of the exponential variables, and how often each occurs.
func (g gaffke) values(d float64) (out factors) {
	all := make([]float64, 0, len(g.losses)+1)
	for i, l := range g.losses {
		all = append(all, g.weights[i]*(l-d))
	}
	all = append(all, slices.Max(g.weights)*(1-d))
	slices.Sort(all)
	for i, a := range all {
		if i == 0 || a-out[len(out)-1].a > 1e-12 {
			out = append(out, factor{a: a})
		}
		out[len(out)-1].n++
	}
	return out
}

// A factor occurs n times.
type factor struct{ a, n float64 }

type factors []factor

// p returns the probability that the sum of independent exponential variables with these factors is
// at least 0. It inverts the characteristic function (Gil-Pelaez, "Note on the inversion theorem",
// Biometrika 38, 1951).
func (f factors) p(points int) float64 {
	byValue := func(x, y factor) int { return cmp.Compare(x.a, y.a) }
	switch {
	case slices.MinFunc(f, byValue).a >= 0:
		return 1
	case slices.MaxFunc(f, byValue).a <= 0:
		return 0
	}
	squares := 0.
	for _, x := range f {
		squares += x.n * x.a * x.a
	}
	s := 1.5 / math.Sqrt(squares)
	sum := 0.
	for i := range points {
		x := (float64(i) + .5) / float64(points)
		t := s * x / (1 - x)
		logarithm, angle := 0., 0.
		for _, v := range f {
			logarithm += v.n * math.Log1p(v.a*v.a*t*t)
			angle += v.n * math.Atan(v.a*t)
		}
		if logarithm < 80 {
			sum += math.Exp(-logarithm/2) * math.Sin(angle) / (x * (1 - x)) // dt/t
		}
	}
	return min(1, max(0, .5+sum/float64(points)/math.Pi))
}

// Design describes more data like these; see [DesignOf].
func (d GateData) Design() Design { return DesignOf(d.baseline(), d.BySequence).WithLuckOf(d) }
