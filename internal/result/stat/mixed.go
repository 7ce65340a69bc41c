package stat

import "math"

// A Mixed is the fit of a linear mixed model to shares of success. It checks
// [Compare] by other means; no table or warning uses it.
//
// A side's share on a task is the sum of the side, the task, the task's
// sequence of tools, and the side's own effect on that sequence, plus a rest.
// All but the side are random. The difference of two sides on a task has
// neither the task nor the sequence in it, so the model of the differences is a
// one-way classification: a mean, an effect of the sequence, and a rest.
//
// The variances maximize the restricted likelihood (Patterson and
// Thompson, "Recovery of inter-block information when block sizes are unequal",
// Biometrika 58, 1971), and the mean is weighted by the variances of the
// sequences' means (Searle, Casella and McCulloch, Variance Components, 1992,
// sections 6.6 and 7.2). The interval is Student's with one degree of freedom
// less than there are sequences.
//
// The model is linear because the question is how far two rates are apart. A logistic model answers
// another question: its coefficient is the ratio of odds within a task and a sequence, which grows
// with the variances of both even if the difference of rates is the same (Gail, Wieand and
// Piantadosi, "Biased estimates of treatment effect in randomized experiments with nonlinear
// regressions", Biometrika 71, 1984; Mood, "Logistic regression: why we cannot do what we think we
// can do", European Sociological Review 26, 2010). A side that is given to each task has the same
// expected difference in a linear model, whatever the distribution of shares (Gomila, "Logistic or
// linear?", Journal of Experimental Psychology: General 150, 2021). Shares are treated as normal,
// so the interval is poor near 0 and 1.
//
// On three stores with unequal repeats (60 to 150 tasks, 13 to 25 sequences, one
// and four conditions), the mixed model of statsmodels 0.15.0 for the differences
// agrees within 1e-6 on the difference and both variances, and within .3 % on the
// standard error, which allows for the uncertainty of the variances there. Its
// model of the shares with all effects agrees within 1e-5 on two stores. On the
// third the variance of tasks is 0, and the difference is .0434 instead of .0425
// with a standard error of .044 instead of .043.
type Mixed struct {
	Difference float64  `json:"difference"`
	SE         float64  `json:"se"`
	Interval   Interval `json:"interval"` // 95 %; not limited to [-1,1]
	// BetweenSequences is the variance of the side's effects on sequences, twice
	// over, because two sides have them. WithinSequences is the variance of the rest.
	BetweenSequences float64 `json:"variance_between_sequences"`
	WithinSequences  float64 `json:"variance_within_sequences"`
}

func mixed(tasks []Matched) *Mixed {
	x := contrastOf(tasks, true)
	var f *Mixed
	deviance := func(share float64) float64 {
		var d float64
		f, d = x.fit(share)
		return d
	}
	deviance(lowest(deviance))
	half := f.SE * studentQuantile(.975, float64(len(x.clusters)-1))
	f.Interval = Interval{f.Difference - half, f.Difference + half}
	return f
}

// fit fits the model with share/(1-share) as the ratio of the standard deviations
// between and within sequences. It also returns -2 times the logarithm of the
// restricted likelihood, up to a constant.
func (x *contrast) fit(share float64) (f *Mixed, deviance float64) {
	ratio := share * share / ((1 - share) * (1 - share))
	m := float64(x.counts.Tasks)
	f = &Mixed{}
	var weights float64
	within := x.size // sum of squares
	for _, c := range x.clusters {
		w := c.n / (1 + ratio*c.n)
		weights += w
		f.Difference += w * c.sum / c.n
		within -= c.sum * c.sum / c.n
		deviance += math.Log1p(ratio * c.n)
	}
	f.Difference /= weights
	within = max(1e-9, within) // else the likelihood of sequences that agree has no limit
	for _, c := range x.clusters {
		off := c.sum/c.n - f.Difference
		within += c.n / (1 + ratio*c.n) * off * off
	}
	f.WithinSequences = within / (m - 1)
	f.BetweenSequences = ratio * f.WithinSequences
	f.SE = math.Sqrt(f.WithinSequences / weights)
	return f, deviance + math.Log(weights) + (m-1)*math.Log(f.WithinSequences)
}

// lowest returns the argument in [0,1) at which a function is lowest, by a grid
// and then by golden sections around the grid's best.
func lowest(of func(float64) float64) float64 {
	const cells, golden = 16, .6180339887498949
	best, at := math.Inf(1), 0
	for i := range cells {
		if v := of(float64(i) / cells); v < best {
			best, at = v, i
		}
	}
	low, high := max(0, float64(at-1)/cells), float64(at+1)/cells
	for range 40 {
		a, b := high-golden*(high-low), low+golden*(high-low)
		if of(a) < of(b) {
			high = b
		} else {
			low = a
		}
	}
	if middle := (low + high) / 2; of(middle) < of(0) {
		return middle
	}
	return 0
}
