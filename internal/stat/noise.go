package stat

import "math"

// A NoiseFloor is how far results move when nothing changes but chance.
type NoiseFloor struct {
	// Tasks is how many tasks one run has, Repeated how many of them were tried
	// more than once and so tell of chance.
	Tasks    int `json:"tasks"`
	Repeated int `json:"repeated"`

	// Flip is the chance that two repeats of the same trial end differently,
	// averaged over tasks; Unstable is the share of repeated tasks that showed
	// both outcomes, which grows with the number of repeats.
	Flip         float64  `json:"flip"`
	FlipInterval Interval `json:"flip_interval"` // 95 %
	Unstable     float64  `json:"unstable"`

	// Change is the expected absolute difference of the rates of two runs that
	// try each task once; SD is the standard deviation of that difference and
	// Limit what 95 % of such differences stay within. All are rates: 0.02 is
	// two points.
	Change float64 `json:"change"`
	SD     float64 `json:"sd"`
	Limit  float64 `json:"limit"`
}

// Noise estimates the noise floor from groups of repeats of the same trials. A
// task with c of n fulfilled has the unbiased variance c(n-c)/(n(n-1)) between
// its repeats; the difference of two runs over m tasks has twice the mean of
// these, over m (elementary; Bland and Altman, "Measurement error", BMJ 313,
// 1996, give the same as the repeatability limit). Tasks tried once lend their
// number but not their variance: they are taken to be like the others.
//
// A floor of 0 says that no repeat differed, not that none will: FlipInterval
// holds what it may be. Without any repeats it is [0,1].
func Noise(groups []Group) NoiseFloor {
	f := NoiseFloor{FlipInterval: Interval{0, 1}}
	var flips []float64
	for _, g := range observed(groups) {
		f.Tasks++
		if g.N < 2 {
			continue
		}
		if g.Full > 0 && g.Full < g.N {
			f.Unstable++
		}
		flips = append(flips, 2*float64(g.Full)*float64(g.N-g.Full)/(float64(g.N)*float64(g.N-1)))
	}
	f.Repeated = len(flips)
	if f.Repeated == 0 {
		return f
	}
	f.Unstable /= float64(f.Repeated)
	f.Flip, f.FlipInterval = mean(flips)
	f.SD = math.Sqrt(f.Flip / float64(f.Tasks)) // Flip is twice the mean variance
	f.Change = f.SD * math.Sqrt(2/math.Pi)
	f.Limit = f.SD * Z95
	return f
}
