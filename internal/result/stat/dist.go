package stat

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// normalCDF is the standard normal distribution function. math.Erfc keeps its
// relative accuracy of 1e-15 in the far tails.
func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// normalQuantile is the inverse of normalCDF, with a relative error of about
// 1e-15 (Wichura, "Algorithm AS 241", Applied Statistics 37, 1988, as in
// math.Erfcinv).
func normalQuantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }

// studentCDF is Student's distribution function with df > 0 degrees of freedom,
// which may be a fraction. It uses the incomplete beta function (NIST Digital
// Library of Mathematical Functions, 8.17).
func studentCDF(t, df float64) float64 {
	if t < 0 {
		return 1 - studentCDF(-t, df)
	}
	if t*t < df { // the other form would lose digits for a small t
		return .5 + betaRegularized(t*t/(df+t*t), .5, df/2)/2
	}
	return 1 - betaRegularized(df/(df+t*t), df/2, .5)/2
}

// studentQuantile is the inverse of studentCDF for p in (0,1). It uses Newton's
// method within a bracket and has a relative error of about 1e-9. Above a
// million degrees of freedom it returns the normal quantile, which differs by
// less than 2e-6 for the usual levels.
func studentQuantile(p, df float64) float64 {
	if p < .5 {
		return -studentQuantile(1-p, df)
	}
	if df > 1e6 {
		return normalQuantile(p)
	}
	upper, _ := math.Lgamma((df + 1) / 2)
	lower, _ := math.Lgamma(df / 2)
	scale := math.Exp(upper-lower) / math.Sqrt(df*math.Pi)
	z := normalQuantile(p)
	// Start with Cornish and Fisher's first term.
	t, low, high := z+(z*z*z+z)/(4*df), 0., math.Inf(1)
	for range 200 {
		off := studentCDF(t, df) - p
		if off < 0 {
			low = t
		} else {
			high = t
		}
		next := t - off/(scale*math.Pow(1+t*t/df, -(df+1)/2))
		if next < low || next > high {
			next = min(2*low+1, low+(high-low)/2)
		} else if math.Abs(next-t) <= 1e-8*next {
			return next // the error is about the square of the step
		}
		t = next
	}
	return t
}

// betaRegularized is I_x(a,b), with an error of about 1e-10. It is 0 or 1 if x is not in (0,1), and
// has its limit if a or b is not positive, for which gonum panics: few data can have no degrees of
// freedom.
func betaRegularized(x, a, b float64) float64 {
	switch {
	case x <= 0:
		return 0
	case x >= 1, a <= 0:
		return 1
	case b <= 0:
		return 0
	}
	return mathext.RegIncBeta(a, b, x)
}
