// Package stat holds the statistics of results: intervals of rates. It is pure
// mathematics and knows nothing of trials.
package stat

import "math"

// Z95, Z99 and Z999 are the two-sided standard normal quantiles of 95, 99 and
// 99.9 %.
const (
	Z95  = 1.959963984540054
	Z99  = 2.5758293035489004
	Z999 = 3.2905267314918945
)

// An Interval is a range that holds a rate with some confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Wilson returns the score interval of a rate of k in n (Wilson, "Probable
// inference", JASA 22, 1927), which holds its level near 0 and 1 and for small
// n, where the textbook interval does not. Without observations it is [0,1].
func Wilson(k, n int, z float64) Interval {
	if n <= 0 {
		return Interval{0, 1}
	}
	p, m, zz := float64(k)/float64(n), float64(n), z*z
	center := (p + zz/(2*m)) / (1 + zz/m)
	half := z / (1 + zz/m) * math.Sqrt(p*(1-p)/m+zz/(4*m*m))
	i := Interval{max(0, center-half), min(1, center+half)}
	if k == 0 {
		i.Low = 0
	}
	if k == n {
		i.High = 1
	}
	return i
}
