package stat

import "math"

// power80 is the standard normal quantile of 80 %, the power that the least
// detectable differences have; their tests are two-sided at 5 %.
const power80 = 0.8416212335729143

// Detectable returns the least difference of two rates around p that two
// cells of n independent trials each show in 80 of 100 runs, by the test of
// [TwoSample]. p = 0.5 is the worst case.
//
// Source: the sample size for Fisher's exact test of Casagrande, Pike and
// Smith, "An improved approximate formula for calculating sample sizes for
// comparing two binomial distributions" (Biometrics 34, 1978), solved for the
// difference. Trials must be independent: with repeats within tasks, n is the
// number of trials over the design effect of [Clustered]. It is 1 where nothing
// less can be detected.
func Detectable(n int, p float64) float64 { return detectable(float64(n), p) }

func detectable(n, p float64) float64 {
	return least(func(d float64) bool {
		// The two rates lie around p, or at the border where p is close to it.
		low := min(1-d, max(0, p-d/2))
		high := low + d
		mean := (low + high) / 2
		root := Z95*math.Sqrt(2*mean*(1-mean)) + power80*math.Sqrt(low*(1-low)+high*(1-high))
		correction := 1 + math.Sqrt(1+4*d/(root*root))
		return n >= root*root*correction*correction/(4*d*d)
	})
}

// DetectablePaired returns, before a run, the least difference that [Compare]
// shows in 80 of 100 runs over so many tasks with so many repeats on either
// side, for rates around p (0.5 is the worst case) and a correlation of rho
// between the outcomes of the two sides on one task. Zero is the cautious
// choice: the sides then share nothing and pairing gains nothing. It is taken
// that a side is as like the other as it is like itself, so that repeats thin
// out all that the sides do not share; where it is not, the truth is coarser.
// It is 1 where nothing less can be detected.
//
// Source: Connor, "Sample size for testing differences in proportions for the
// paired-sample design" (Biometrics 43, 1987), after Miettinen, "The matched
// pairs design in the case of all-or-none responses" (Biometrics 24, 1968),
// with a discordance of 2p(1-p)(1-rho), solved for the difference, and with the
// continuity correction that the exact test asks for.
func DetectablePaired(tasks, repeats int, p, rho float64) float64 {
	if tasks <= 0 || repeats <= 0 {
		return 1
	}
	r := float64(repeats)
	return detectablePaired(float64(tasks), 2*p*(1-p)*(1-rho)/r, 1/r)
}

// detectablePaired is the least detectable mean of m tasks' differences, which
// are multiples of step and have the mean square scatter: with one trial per
// side, the share of discordant pairs.
func detectablePaired(m, scatter, step float64) float64 {
	return least(func(d float64) bool {
		// Differences of d on average in steps of step are not smaller in square
		// than d·step: the effect brings its own discordance.
		s := max(scatter, d*step, d*d)
		return m*d-step >= Z95*math.Sqrt(m*s)+power80*math.Sqrt(m*(s-d*d))
	})
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
