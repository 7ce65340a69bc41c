package stat

import "math"

// A Power has the shares of runs in which a two-sided test at 5 % finds a difference of 5, 10 and 20
// points.
type Power struct {
	At5  float64 `json:"5"`
	At10 float64 `json:"10"`
	At20 float64 `json:"20"`
}

func powerOf(finds func(difference float64) float64) Power {
	return Power{finds(.05), finds(.1), finds(.2)}
}

// PowerOf returns the shares of runs in which [Compare] will find differences. The arguments and
// the assumptions are those of [Detectable].
func PowerOf(clusters []int, repeats int, within, between float64) Power {
	if len(clusters) == 0 || repeats <= 0 {
		return Power{}
	}
	return powerOf(designOf(clusters, repeats, within, between).finds())
}

// Detectable returns the smallest difference that [Compare] will show (P at
// most 0.05) in 80 of 100 runs with clusters of the given numbers of tasks and
// the given number of repeats per side. It is meant for planning a run. It
// assumes rates around one half, which give the largest result. It returns 1 if
// no smaller difference can be detected.
//
// Each task is a separate cluster, or all tasks of a sequence of tools are one. Tasks of a cluster
// are taken to be as alike as repeats of a task, which is cautious.
//
// The value of repeats depends on two correlations that are unknown before a
// run: within, of two repeats of a task on one side, and between, of two trials
// of a task on different sides. Repeats reduce only the share 1-within of the
// variance. At within = 0 they are as good as new tasks, which is never a
// cautious assumption; at 1 they are useless. One half describes tasks that are
// partly hard and partly a matter of luck. At between = 0, pairing has no benefit, so 0 is
// cautious. At between = within, both sides find the same tasks hard, and the differences between
// tasks cancel out. With one repeat, within has no effect.
//
// In simulations of Compare at the returned difference (10 to 100 tasks, 1 to
// 10 repeats), the power is 75 to 89 % with (within, between) of (0, 0) and
// (0.5, 0) for beta-binomial tasks, and with (0.5, 0.5) for tasks of normally
// distributed difficulty that the sides shift. With eight or nine tasks it is 79
// to 89 %. With 13, 25 and 50 sequences of equal and unequal numbers of tasks it
// is 79 to 85 %. The power is too low if sides with much in common differ completely
// on a few tasks and not at all on the others. Such sides are less alike, and
// between = 0 describes them better.
func Detectable(clusters []int, repeats int, within, between float64) float64 {
	if len(clusters) == 0 || repeats <= 0 {
		return 1
	}
	return designOf(clusters, repeats, within, between).detectable()
}

// designOf returns the design of clusters of the given numbers of tasks.
func designOf(clusters []int, repeats int, within, between float64) design {
	var tasks, squares float64
	for _, n := range clusters {
		tasks += float64(n)
		squares += float64(n) * float64(n)
	}
	effective := tasks * tasks / squares
	r := float64(repeats) * tasks / effective
	d := design{
		tasks: tasks, clusters: effective, step: 1 / r, rate: .5,
		own: (1-within)/r + within, between: between,
	}
	d.df, d.bias = jackknife(clusters, tasks)
	return d
}

// A design holds the quantities that decide how small a difference can be
// shown.
type design struct {
	// clusters is the number of equal clusters that show as much as these. df and bias come from
	// [jackknife].
	tasks, clusters, df, bias float64

	step float64 // unit of a cluster's difference: 1 with one trial per side
	rate float64 // overall rate of both sides

	// own is the variance of a cluster's rate on one side relative to the variance of a single
	// trial; it is 1 with one trial. between is the correlation of two trials of a cluster on
	// different sides.
	own, between float64
}

// minFreedom is the number of degrees of freedom above which a test can show a
// difference that is not nearly complete.
const minFreedom = 4.5

// detectable returns the smallest difference that shows in 80 of 100 runs.
func (x design) detectable() float64 {
	finds := x.finds()
	return smallest(func(d float64) bool { return finds(d) >= .8 })
}

// finds returns the share of runs in which a difference d shows.
//
// Compare detects a mean difference x over m clusters of n tasks in all if it
// exceeds t standard errors, whose square is about s²/m + (πs²/2 + x²)/n². Here
// s² is the scatter of the clusters' differences, and the rest is the scatter of the half tasks
// which Compare adds; a normal variable's mean square divided by its mean size is √(π/2)·s. This
// gives the least x, with the scatter that belongs to it. If the true difference is d, x scatters
// around it with the error s/√m, and so does the least one with the error of s, which is 1/√(2df)
// as for normal differences.
//
// A correction of half a step accounts for the discreteness of differences. With
// unequal clusters, m is Kish's number of equal ones.
//
// With one trial per side and many tasks, the result is the sample size of
// Connor, "Sample size for testing differences in proportions for the
// paired-sample design" (Biometrics 43, 1987), after Miettinen, "The matched
// pairs design in the case of all-or-none responses" (Biometrics 24, 1968).
// With repeats, the variance is Kish's, as in [Clustered].
func (x design) finds() func(d float64) float64 {
	if !(x.df > minFreedom) {
		return func(float64) float64 { return 0 }
	}
	t, z := x.critical(.025)
	least := smallest(func(d float64) bool { return d >= z*math.Sqrt(x.scatter(d)) })
	return func(d float64) float64 {
		error := x.spread(t) * math.Sqrt(x.scatter(d))
		return normalCDF((d - .5*x.step/x.clusters - least) / max(1e-9, error))
	}
}

// critical returns the critical value of Student's t at a one-sided level, and the size that the
// mean difference must have, in standard deviations of a cluster's difference.
func (x design) critical(level float64) (t, z float64) {
	t = studentQuantile(1-level, x.df)
	n := x.tasks * x.tasks
	return t, t * math.Sqrt((x.bias/x.clusters+math.Pi/2/n)/(1-t*t/n))
}

// spread returns the standard deviation of the mean difference less its critical value, in standard
// deviations of a cluster's difference.
func (x design) spread(t float64) float64 { return math.Sqrt((1 + t*t/(2*x.df)) / x.clusters) }

// scatter returns the variance of the clusters' differences if the rates of the
// two sides differ by d.
func (x design) scatter(d float64) float64 {
	// Use rates around the mean rate, or at the border if that is too close.
	low := min(1-d, max(0, x.rate-d/2))
	high := low + d // at most 1, although 1-low-d may be below 0 by rounding
	a, b := high*(1-high), low*(1-low)
	v := x.own*(a+b) - 2*x.between*math.Sqrt(a*b) + effectVariance(x.between, d)
	// Differences with a mean of d in steps have a mean square of at least
	// d·step, because the effect itself causes discordant pairs.
	return max(v, d*x.step-d*d, 0)
}

// effectVariance returns the variance of the clusters' true differences around d.
// Sides that find the same tasks hard do not differ by the same d on all of
// them, because there is no room for a difference if both sides nearly always
// or nearly never succeed.
//
// For normal difficulties with the correlation λ and a small shift, the
// variance is d²(1/√(1-λ²)-1), from the mean square of the shifted density
// divided by its squared mean (elementary). Outcomes correlate by rho =
// 2/π·asin λ at rates of one half (Sheppard, Philosophical Transactions A 192,
// 1899). The upper bound is the variance of an effect that changes some tasks
// completely and leaves the others as they are.
func effectVariance(rho, d float64) float64 {
	if rho <= 0 {
		return 0
	}
	return min((1/math.Cos(math.Pi*rho/2)-1)*d*d, rho*d*(1-d))
}

// smallest returns the smallest difference in (0,1] from which on enough is true, or 1 if there is
// no such difference.
func smallest(enough func(d float64) bool) float64 {
	_, high := bisect(50, 0, 1, func(d float64) bool { return !enough(d) })
	return high
}

// bisect narrows a range whose lower part has a property, by steps that halve it.
func bisect(steps int, low, high float64, has func(float64) bool) (float64, float64) {
	for range steps {
		if mid := (low + high) / 2; has(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return low, high
}
