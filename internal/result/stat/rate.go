package stat

import (
	"math"
	"slices"
)

// Wilson returns the score interval of a rate of k in n (Wilson, "Probable
// inference", JASA 22, 1927). Unlike the textbook interval, it keeps its level
// near 0 and 1 and for small n. Averaged over rates of 1 to 99 %, its coverage
// is 95 %; at single rates it varies with the steps of k. Without observations
// the interval is [0,1].
//
// Wilson assumes that the n trials are independent. If tasks were repeated, use
// [Clustered].
func Wilson(k, n int, z float64) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	return wilson(float64(k)/float64(n), float64(n), z)
}

// wilson returns the score interval of a rate p in n independent trials. Here n
// may be a fraction.
func wilson(p, n, z float64) Interval {
	zz := z * z
	center := (p + zz/(2*n)) / (1 + zz/n)
	half := z / (1 + zz/n) * math.Sqrt(p*(1-p)/n+zz/(4*n*n))
	i := Interval{max(0, center-half), min(1, center+half)}
	if p <= 0 {
		i.Low = 0
	}
	if p >= 1 {
		i.High = 1
	}
	return i
}

// A Rate is the share of fulfilled trials, with its uncertainty.
type Rate struct {
	Rate     float64  `json:"rate"` // over all trials
	Interval Interval `json:"interval"`

	Tasks  int `json:"tasks"`
	Trials int `json:"trials"`

	// Correlation is the intra-cluster correlation of two trials of one task.
	// At 0, repeats are as good as new tasks; at 1, repeats add no information.
	Correlation float64 `json:"correlation"`

	// DesignEffect is the factor by which repeats inflate the variance of the
	// rate. The trials contain as much information as Trials/DesignEffect
	// independent ones.
	DesignEffect float64 `json:"design_effect"`
}

// Clustered returns the rate over all trials with an interval of the level conf
// (such as 0.95) that takes repeats within tasks into account.
//
// It is Wilson's score interval at the effective sample size n/deff with deff =
// 1 + (Σn²/Σn - 1)ρ (Kish, Survey Sampling, 1965). Korn and Graubard use this
// sample size in another interval ("Confidence intervals for proportions with
// small expected number of positive counts estimated from survey data", Survey
// Methodology 24, 1998). With one trial per task it equals Wilson's interval.
// It is never narrower than Wilson's interval over all trials, and never wider
// than the interval of tasks whose repeats all agree.
//
// In simulations (20 to 200 tasks, 1 to 8 repeats, rates of 5 to 95 %, ρ up to
// 0.8), coverage averaged over rates is at least 94 %. It is at most 96 % if
// there are 100 tasks or ρ >= 0.5. With fewer tasks and ρ near 0 it is up to 98
// %, because so few tasks cannot show that repeats are independent. At single
// rates near 0 or 1 it falls to 92 %, as Wilson's own does: with 20 tasks and a
// rate of 5 %, the whole rate depends on one task.
//
// Clustered assumes that the tasks are a sample of all possible tasks, and that
// a task's number of repeats is unrelated to its rate.
func Clustered(groups []Group, conf float64) Rate {
	groups = observed(groups)
	r := Rate{Interval: Interval{0, 1}, Tasks: len(groups), DesignEffect: 1}
	var full, squares int
	for _, g := range groups {
		full += g.Full
		r.Trials += g.N
		squares += g.N * g.N
	}
	if r.Trials == 0 {
		return r
	}
	n := float64(r.Trials)
	r.Rate = float64(full) / n
	r.Correlation = correlation(groups)
	r.DesignEffect = 1 + (float64(squares)/n-1)*r.Correlation
	r.Interval = wilson(r.Rate, n/r.DesignEffect, critical(groups, r.Correlation, conf))
	return r
}

// correlation estimates the intra-cluster correlation with the
// analysis-of-variance estimator (Ridout, Demétrio and Firth, "Estimating
// intraclass correlation for binary data", Biometrics 55, 1999). It clamps the
// estimate to [0,1] and shrinks it towards 1, with the weight of half a task
// against the tasks that showed the rarer outcome. It returns 0 if no task has
// repeats.
//
// The shrinkage matters if the rarer outcome is so rare that the estimator
// cannot see it. If there is one success in all, the estimate is 0, although we
// do not know whether its task would succeed again; without any success there
// is no estimate at all. The interval must then allow for a correlation of 1.
// Without shrinkage, coverage falls to 86 % (20 tasks with 8 repeats, ρ = 0.5,
// a rate of 5 %).
func correlation(groups []Group) float64 {
	rare := rarer(groups)
	if !slices.ContainsFunc(groups, func(g Group) bool { return g.N > 1 }) {
		return 0
	}
	if len(groups) < 2 || rare == 0 {
		return 1
	}
	between, within, size := meanSquares(groups)
	rho := (between - within) / (between + (size-1)*within)
	return (rare*min(1, max(0, rho)) + .5) / (rare + .5)
}

// meanSquares returns the mean squares of the analysis of variance, between and within groups, and
// the mean number of trials of a group, lower if they are unequal.
func meanSquares(groups []Group) (between, within, size float64) {
	var full, n, squares float64
	for _, g := range groups {
		full += float64(g.Full)
		n += float64(g.N)
		squares += float64(g.N) * float64(g.N)
	}
	for _, g := range groups {
		e := float64(g.Full) - full/n*float64(g.N)
		between += e * e / float64(g.N)
		within += float64(g.Full) * float64(g.N-g.Full) / float64(g.N)
	}
	m := float64(len(groups))
	return between / max(1, m-1), within / max(1, n-m), (n - squares/n) / max(1, m-1)
}

// rarer returns the number of groups that showed a success or a failure,
// whichever is smaller.
func rarer(groups []Group) float64 {
	var succeed, fail float64
	for _, g := range groups {
		if g.Full > 0 {
			succeed++
		}
		if g.Full < g.N {
			fail++
		}
	}
	return min(succeed, fail)
}

// critical returns the two-sided quantile for an interval that depends on an
// estimated correlation. It is Student's quantile with the degrees of freedom
// that match the relative variance of the design effect (Satterthwaite,
// Biometrics Bulletin 2, 1946), based on Fisher's variance of an intraclass
// correlation (Statistical Methods for Research Workers, 1925). If there are no
// repeats, or all repeats agree, only the rate is estimated and the normal
// quantile applies.
func critical(groups []Group, rho, conf float64) float64 {
	var n float64
	for _, g := range groups {
		n += float64(g.N)
	}
	m := float64(len(groups))
	upper := (1 + conf) / 2
	if repeats := n / m; repeats > 1 && rho < 1 {
		return studentQuantile(upper, (m-1)*repeats/((repeats-1)*(1-rho)*(1-rho)))
	}
	return normalQuantile(upper)
}
