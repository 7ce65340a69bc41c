package stat

import "math"

// power80 is the standard normal quantile of 80 %, the power that the least
// detectable differences have; their tests are two-sided at 5 %.
const power80 = 0.8416212335729143

// Detectable returns, before a run, the least difference that [Compare] shows
// (P at most 0.05) in 80 of 100 runs over so many tasks with so many repeats on
// either side, for rates around one half, where it is largest. It is 1 where
// nothing less can be detected.
//
// What repeats are worth depends on two correlations that nobody knows before a
// run: within, of two repeats of a task on one side, and between, of two trials
// of a task on different sides. Repeats thin out only the share 1-within of the
// variance: at 0 they are as good as new tasks, which is never cautious, at 1
// they tell nothing. One half stands for tasks that are partly hard and partly a
// matter of luck. For between 0 is cautious: pairing gains nothing. At between =
// within the sides find the same tasks hard, and what the tasks are cancels. With
// one repeat within plays no part.
//
// In simulations of Compare at the returned difference (10 to 100 tasks, 1 to 10
// repeats) the power is 80 to 90 % with within and between of 0 and 0 and of 0.5
// and 0 (beta-binomial tasks) and 82 to 89 % with 0.5 and 0.5 (tasks of normal
// difficulty, which the sides shift). With eight or nine tasks it is 78 to 92 %;
// with six or seven it may be no more than 60 %, for nearly all of them have to
// side one way. It falls short, too, where sides with much in common differ on a
// few tasks entirely and on the others not at all: they are less alike then, and
// the truth is nearer to between = 0.
func Detectable(tasks, repeats int, within, between float64) float64 {
	if tasks <= 0 || repeats <= 0 {
		return 1
	}
	r := float64(repeats)
	return design{tasks: float64(tasks), step: 1 / r, rate: .5, own: (1-within)/r + within, between: between}.detectable()
}

// A design is what decides how small a difference shows.
type design struct {
	tasks float64
	step  float64 // the unit of a task's difference: 1 with one trial a side
	rate  float64 // of both sides together

	// own is the variance of a task's rate on one side, in units of that of a
	// single trial there: 1 with one trial. between is the correlation of two
	// trials of a task on different sides.
	own, between float64
}

// fewest is how many tasks a difference needs to show at all: of five that side
// one way the sign flip's p-value is 2/2⁵.
const fewest = 6

// detectable is the least difference d that shows in 80 of 100 runs.
//
// The sign flip calls a mean difference x over m tasks if √m·x > z·√(s²+x²), where
// s² is the scatter of the tasks' differences about x, for their mean square is
// what random signs vary by. That is √m·x > z's with z' = z/√(1-z²/m). Four runs in
// five with the truth d are no further below it than 0.84 standard errors: of x,
// s/√m, and of s, which is s/√(2m) as for normal differences. So the condition has
// to hold there, at the scatter that belongs there. A correction of a step and a
// half stands for the test's whole steps: half of the two from one sum to the
// next, and half as much again because the level of the exact test stays below
// 5 %.
//
// With one trial a side and many tasks it is the sample size of Connor, "Sample
// size for testing differences in proportions for the paired-sample design"
// (Biometrics 43, 1987), after Miettinen, "The matched pairs design in the case of
// all-or-none responses" (Biometrics 24, 1968); with repeats the variance is that
// of Kish, as in [Clustered].
func (x design) detectable() float64 {
	if x.tasks < fewest {
		return 1
	}
	z := Z95 / math.Sqrt(1-Z95*Z95/x.tasks)
	below := power80 * math.Sqrt((1+z*z/(2*x.tasks))/x.tasks)
	return least(func(d float64) bool {
		seen := d - 1.5*x.step/x.tasks - below*math.Sqrt(x.scatter(d))
		return seen > 0 && seen*math.Sqrt(x.tasks) >= z*math.Sqrt(x.scatter(seen))
	})
}

// scatter is the variance of the tasks' differences where the rates of the two
// sides lie d apart.
func (x design) scatter(d float64) float64 {
	// Around the mean rate, or at the border where that is close to it.
	low := min(1-d, max(0, x.rate-d/2))
	high := low + d // at most 1, where 1-low-d may be below 0 by rounding
	a, b := high*(1-high), low*(1-low)
	v := x.own*(a+b) - 2*x.between*math.Sqrt(a*b) + uneven(x.between, d)
	// Differences of d on average in steps have at least the mean square d·step:
	// the effect brings its own discordance.
	return max(v, d*x.step-d*d, 0)
}

// uneven is the variance of the tasks' own differences about d. Sides that find
// the same tasks hard do not differ by the same d on all of them: where both
// nearly always or never succeed there is no room. For difficulties that are
// normal with the correlation λ, and a small shift of them, it is
// d²(1/√(1-λ²)-1), from the mean square of the shifted density over its squared
// mean (elementary). Outcomes correlate by rho = 2/π·asin λ at rates of one half
// (Sheppard, Philosophical Transactions A 192, 1899). It is at most that of an
// effect which turns some tasks entirely and leaves the others.
func uneven(rho, d float64) float64 {
	if rho <= 0 {
		return 0
	}
	return min((1/math.Cos(math.Pi*rho/2)-1)*d*d, rho*d*(1-d))
}

// least returns the smallest difference in (0,1] from which on enough holds, or
// 1 without one.
func least(enough func(d float64) bool) float64 {
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
