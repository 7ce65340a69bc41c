package stat

import "math"

// Spend returns the levels of a one-sided test at several looks at growing data, so that all looks
// together reject at most the given share of true null hypotheses. Fractions are the shares of the
// planned data at each look; they increase and end at 1 or before. A test that rejects if its
// p-value is at most the level of its look keeps the promise, also if later looks never happen.
//
// Each look may spend the error that the spending function of Lan and DeMets in the form of O'Brien
// and Fleming allows by then, 2(1-Φ(z/√t)) with the quantile z of 1-level/2 ("Discrete sequential
// boundaries for clinical trials", Biometrika 70, 1983). The levels follow by numerical integration
// of the statistic's path (Armitage, McPherson and Rowe, "Repeated significance tests on
// accumulating data", JRSS A 132, 1969), which is a Brownian motion of independent increments. A
// p-value of Student's t is used like a normal one (Jennison and Turnbull, Group Sequential
// Methods, 2000, section 11.4).
func Spend(level float64, fractions []float64) []float64 {
	levels := make([]float64, len(fractions))
	var path density
	spent, before := 0., 0.
	for i, t := range fractions {
		allowed := allowedBy(level, t)
		step := path.step(t - before)
		bound := step.bound(allowed - spent)
		path = step.below(bound, t)
		levels[i] = normalCDF(-bound / math.Sqrt(t))
		spent, before = allowed, t
	}
	return levels
}

// allowedBy returns the error that the spending function allows by a share of the planned data.
func allowedBy(level, fraction float64) float64 {
	return 2 * normalCDF(-normalQuantile(1-level/2)/math.Sqrt(min(1, fraction)))
}

// Split returns levels that keep the promise of [Spend] for any tests, because they add up to the
// error spent (Bonferroni's inequality). Tests need no common distribution then, nor exact p-values
// to be independent. The error spent grows with the square of the share of the data (Kim and DeMets,
// "Design and analysis of group sequential tests based on the type I error spending rate function",
// Biometrika 74, 1987), so that an exact test of few data can reach an early level.
func Split(level float64, fractions []float64) []float64 {
	levels := make([]float64, len(fractions))
	spent := 0.
	for i, t := range fractions {
		allowed := level * t * t
		levels[i], spent = allowed-spent, allowed
	}
	return levels
}

// A density is the density of a Brownian motion that has not crossed a bound, at equal distances
// from low. The empty one is a motion that is still at 0.
type density struct {
	low, width float64
	values     []float64
}

// spans is the even number of intervals of a density.
const spans = 600

// A motion is the motion after some more time.
type motion struct {
	density
	deviation float64
}

func (d density) step(time float64) motion { return motion{d, math.Sqrt(time)} }

// integrate returns the integral of f over the density, by Simpson's rule.
func (d density) integrate(f func(x float64) float64) (sum float64) {
	if d.values == nil {
		return f(0)
	}
	for i, v := range d.values {
		weight := 2 + 2*float64(i%2)
		if i == 0 || i == spans {
			weight = 1
		}
		sum += weight * v * f(d.low+float64(i)*d.width)
	}
	return sum * d.width / 3
}

// beyond returns the probability that the motion ends above a bound.
func (s motion) beyond(bound float64) float64 {
	return s.integrate(func(x float64) float64 { return normalCDF((x - bound) / s.deviation) })
}

// bound returns the bound that the motion exceeds with a probability.
func (s motion) bound(probability float64) float64 {
	_, high := bisect(60, -10, 10, func(at float64) bool { return s.beyond(at) > probability })
	return high
}

// below returns the density of the motion at a time if it is below a bound.
func (s motion) below(bound, time float64) density {
	low := -8 * math.Sqrt(time)
	d := density{low, (bound - low) / spans, make([]float64, spans+1)}
	norm := s.deviation * math.Sqrt(2*math.Pi)
	for i := range d.values {
		y := low + float64(i)*d.width
		d.values[i] = s.integrate(func(x float64) float64 {
			u := (y - x) / s.deviation
			return math.Exp(-u*u/2) / norm
		})
	}
	return d
}
