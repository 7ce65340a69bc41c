package stat

import "math"

// Separate returns the rate of the first trials minus the rate of the others, which are at other
// tasks, and its interval of the level conf. It combines the intervals of [Clustered] by the square
// and add method (Newcombe, "Interval estimation for the difference between independent
// proportions", Statistics in Medicine 17, 1998: method 10; Zou and Donner, "Construction of
// confidence limits about effect measures", Statistics in Medicine 27, 2008).
func Separate(a, b []Group, conf float64) (float64, Interval) {
	x, y := Clustered(a, conf), Clustered(b, conf)
	d := x.Rate - y.Rate
	return d, Interval{
		Low:  d - math.Hypot(x.Rate-x.Interval.Low, y.Interval.High-y.Rate),
		High: d + math.Hypot(x.Interval.High-x.Rate, y.Rate-y.Interval.Low),
	}
}
