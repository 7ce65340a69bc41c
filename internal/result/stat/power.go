package stat

import "math"

// power80 is the standard normal quantile of 80 %, which is the power at the
// smallest detectable difference. The tests are two-sided at 5 %.
const power80 = 0.8416212335729143

// Detectable returns the smallest difference that [Compare] will show (P at
// most 0.05) in 80 of 100 runs with the given numbers of tasks and of repeats
// per side. It is meant for planning a run. It assumes rates around one half,
// which give the largest result. It returns 1 if no smaller difference can be
// detected.
//
// The value of repeats depends on two correlations that are unknown before a
// run: within, of two repeats of a task on one side, and between, of two trials
// of a task on different sides. Repeats reduce only the share 1-within of the
// variance. At within = 0 they are as good as new tasks, which is never a
// cautious assumption; at 1 they are useless. One half describes tasks that are
// partly hard and partly a matter of luck. At between = 0, pairing gains
// nothing, so 0 is cautious. At between = within, both sides find the same
// tasks hard, and the differences between tasks cancel out. With one repeat,
// within has no effect.
//
// In simulations of Compare at the returned difference (10 to 100 tasks, 1 to
// 10 repeats), the power is 75 to 89 % with (within, between) of (0, 0) and
// (0.5, 0) for beta-binomial tasks, and with (0.5, 0.5) for tasks of normally
// distributed difficulty that the sides shift. With eight or nine tasks it is 79
// to 89 %. The power is too low if sides with much in common differ completely
// on a few tasks and not at all on the others. Such sides are less alike, and
// between = 0 describes them better.
func Detectable(tasks, repeats int, within, between float64) float64 {
	if tasks <= 0 || repeats <= 0 {
		return 1
	}
	r := float64(repeats)
	d := design{
		tasks: float64(tasks), step: 1 / r, rate: .5,
		own: (1-within)/r + within, between: between,
	}
	return d.detectable()
}

// A design holds the quantities that decide how small a difference can be
// shown.
type design struct {
	tasks float64
	step  float64 // unit of a task's difference: 1 with one trial per side
	rate  float64 // overall rate of both sides

	// own is the variance of a task's rate on one side relative to that of a
	// single trial; it is 1 with one trial. between is the correlation of two
	// trials of a task on different sides.
	own, between float64
}

// minTasks is the number of tasks that a test needs to show a difference that is
// not nearly complete.
const minTasks = 6

// detectable returns the smallest difference d that shows in 80 of 100 runs.
//
// Compare detects a mean difference x over m tasks if it exceeds t standard
// errors, roughly √m·x > z·√(s²+x²) with the scatter s² of the tasks'
// differences. This is √m·x > z's with z' = z/√(1-z²/m). If the true difference
// is d, four runs in five fall short of it by at most 0.84 standard errors:
// those of x, s/√m, and of s, which is s/√(2m) as for normal differences. So the
// condition has to hold at that distance below d, with the scatter that belongs
// to it.
//
// A correction of half a step accounts for the discreteness of differences.
//
// With one trial per side and many tasks, the result is the sample size of
// Connor, "Sample size for testing differences in proportions for the
// paired-sample design" (Biometrics 43, 1987), after Miettinen, "The matched
// pairs design in the case of all-or-none responses" (Biometrics 24, 1968).
// With repeats, the variance is Kish's, as in [Clustered].
func (x design) detectable() float64 {
	if x.tasks < minTasks {
		return 1
	}
	z := Z95 / math.Sqrt(1-Z95*Z95/x.tasks)
	below := power80 * math.Sqrt((1+z*z/(2*x.tasks))/x.tasks)
	return smallest(func(d float64) bool {
		seen := d - .5*x.step/x.tasks - below*math.Sqrt(x.scatter(d))
		return seen > 0 && seen*math.Sqrt(x.tasks) >= z*math.Sqrt(x.scatter(seen))
	})
}

// scatter returns the variance of the tasks' differences if the rates of the
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

// effectVariance returns the variance of the tasks' true differences around d.
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

// smallest returns the smallest difference in (0,1] from which on enough is
// true, or 1 if there is none.
func smallest(enough func(d float64) bool) float64 {
	low, high := 0., 1.
	for range 50 {
		if mid := (low + high) / 2; enough(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}
