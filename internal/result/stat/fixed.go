package stat

import "math"

// NoninferiorFixed tests whether side B is worse than side A by less than a margin on just these
// tasks, which are all that matter. Repeats are the sample: a task's trials are independent draws
// from the task's rates under its conditions. [Noninferior] asks the same about more tasks like
// these. Each task weighs the same, and so does each condition of a task.
//
// PFail is exact. If the sides are equal, the successes in a cell fall on either side by chance,
// so side B's number of them is hypergeometric, given the cell's total, and the test adds up these
// distributions over all cells (Agresti, "A survey of exact inference for contingency tables",
// Statistical Science 7, 1992, section 3; Good, Permutation, Parametric and Bootstrap Tests of
// Hypotheses, 2005, chapter 3). It holds for any number of tasks and trials, any rates and missing
// trials. Trials of both sides that share their luck make it conservative: given the totals, fewer
// trials can differ than are counted. So do sides that are equal on average but not on each task,
// if they have equal numbers of trials, because a mixture of two rates varies less than their mean.
//
// PPass is the p-value of the stratified score test of a risk difference, with the rates of a cell
// that are most likely at the margin (Miettinen and Nurminen, "Comparative analysis of two rates",
// Statistics in Medicine 4, 1985; Farrington and Manning, Statistics in Medicine 9, 1990). At rates
// of 0 or 1 it still allows for the loss that so few trials could have hidden.
//
// Lower and Upper are the bounds of the score test. In simulations (6 to 48 tasks, 1 to 16 trials a
// side; equal rates of .5 to 1, spread rates, and tasks that always have the same outcome; losses
// that are spread evenly, concentrated on few tasks, or mixed with gains; margins of 5, 10 and 20
// points), at most 6 % of sides that are worse by just the margin pass. TestFixedMargin repeats the
// worst of them.
func NoninferiorFixed(tasks []Matched, margin float64) Noninferiority {
	n := Noninferiority{Margin: margin, Lower: -1, Upper: 1, PPass: 1, PFail: 1}
	s := strataOf(tasks)
	if len(s) == 0 {
		return n
	}
	n.PFail = s.exact()
	n.PPass = normalCDF(-s.score(-margin))
	z := normalQuantile(1 - PassLevel)
	n.Lower = -smallest(func(loss float64) bool { return s.score(-loss) >= z })
	n.Upper = s.upper()
	size := SizeOf(tasks, false).Fixed()
	n.Finds, n.Passing = size.Fails(margin), size.Passes(margin)
	return n
}

// A weightedCell is a cell of a task with its weight in the difference of rates.
type weightedCell struct {
	Pair
	weight float64
}

type strata []weightedCell

// strataOf returns the cells that both sides tried.
func strataOf(tasks []Matched) (s strata) {
	n := 0
	for _, t := range tasks {
		first := len(s)
		for _, c := range t.Cells {
			if c.NA > 0 && c.NB > 0 {
				s = append(s, weightedCell{Pair: c.Pair})
			}
		}
		for i := range s[first:] {
			s[first+i].weight = 1 / float64(len(s)-first)
		}
		n += min(1, len(s)-first)
	}
	for i := range s {
		s[i].weight /= float64(n)
	}
	return s
}

// score returns the score statistic for a true difference: its distance from the one that was
// found, in standard errors.
func (s strata) score(difference float64) float64 {
	off := -difference
	for _, x := range s {
		off += x.weight * x.difference()
	}
	return off / math.Sqrt(s.variance(difference))
}

// variance returns the variance of the difference of rates, if each cell has a true difference.
func (s strata) variance(difference float64) (sum float64) {
	for _, x := range s {
		n := float64(x.NA + x.NB)
		a := x.likeliest(difference)
		b := a + difference
		sum += x.weight * x.weight * n / (n - 1) * (b*(1-b)/float64(x.NB) + a*(1-a)/float64(x.NA))
	}
	return sum
}

// likeliest returns the most likely rate of side A, given the difference of the true rates. It is
// the root of a cubic equation, in the trigonometric form of Farrington and Manning's appendix.
func (p Pair) likeliest(difference float64) float64 {
	a, na, b, nb := float64(p.A), float64(p.NA), float64(p.B), float64(p.NB)
	n, d := na+nb, difference
	square := ((nb+2*na)*d - n - b - a) / (3 * n)
	linear := ((na*d-n-2*a)*d + b + a) / (3 * n)
	constant := a * d * (1 - d) / n
	q := square*square*square - 1.5*square*linear + constant/2
	r := math.Copysign(math.Sqrt(max(0, square*square-linear)), q)
	angle := 0.
	if r != 0 {
		angle = math.Acos(min(1, max(-1, q/(r*r*r))))
	}
	rate := 2*r*math.Cos((math.Pi+angle)/3) - square
	return min(1, 1-d, max(0, -d, rate))
}

// upper returns the largest difference that the score test leaves.
func (s strata) upper() float64 {
	z := normalQuantile(1 - FailLevel)
	return 2*smallest(func(x float64) bool { return s.score(2*x-1) <= -z }) - 1
}

// RateBounds are one-sided bounds of a rate: it is below Lower in at most 5 % of such data
// ([PassLevel]), and above Upper in at most .5 % ([FailLevel]).
type RateBounds struct {
	Rate  float64 `json:"rate"`
	Lower float64 `json:"lower_95"`
	Upper float64 `json:"upper_995"`
}

// RateOfFixed returns the mean rate of just these tasks with its bounds. Each task weighs the same,
// and so does each of its cells.
//
// The bounds are Clopper and Pearson's (Biometrika 26, 1934) at the number of trials of equal
// weight that are worth as much (Korn and Graubard, "Confidence intervals for proportions with
// small expected number of positive counts estimated from survey data", Survey Methodology 24,
// 1998). Tasks of different rates make them conservative, because successes in trials of different
// rates vary less than in as many of the mean rate (Hoeffding, "On the distribution of the number
// of successes in independent trials", Annals of Mathematical Statistics 27, 1956).
func RateOfFixed(tasks []Task) RateBounds {
	var rate, squares float64
	for _, t := range tasks {
		for _, c := range t.Cells {
			weight := 1 / float64(len(tasks)*len(t.Cells))
			rate += weight * c.rate()
			squares += weight * weight / float64(c.N)
		}
	}
	if squares == 0 {
		return RateBounds{Upper: 1}
	}
	n := 1 / squares
	k := rate * n
	return RateBounds{rate, clopperLow(k, n, PassLevel), clopperHigh(k, n, FailLevel)}
}

// clopperLow and clopperHigh are the one-sided limits of Clopper and Pearson for k successes in n
// trials, which may be fractions.
func clopperLow(k, n, level float64) float64 {
	if k <= 0 {
		return 0
	}
	return smallest(func(rate float64) bool { return betaRegularized(rate, k, n-k+1) > level })
}

func clopperHigh(k, n, level float64) float64 {
	if k >= n {
		return 1
	}
	return smallest(func(rate float64) bool { return betaRegularized(1-rate, n-k, k+1) <= level })
}

// RateOfSample returns the rate of tasks like these with the bounds of [Clustered].
func RateOfSample(tasks []Task) RateBounds {
	groups := make([]Group, len(tasks))
	for i, t := range tasks {
		for _, c := range t.Cells {
			groups[i].Full += c.Full
			groups[i].N += c.N
		}
	}
	r := Clustered(groups, 1-2*PassLevel)
	return RateBounds{r.Rate, r.Interval.Low, Clustered(groups, 1-2*FailLevel).Interval.High}
}
