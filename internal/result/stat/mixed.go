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
// The variances are those of the analysis of variance, with negative ones set
// to 0. The mean is weighted by the variances of the sequences' means (Searle,
// Casella and McCulloch, Variance Components, 1992, sections 3.6 and 7.2). The
// interval is Student's with one degree of freedom less than there are
// sequences. Shares are treated as normal, so the fit is poor near 0 and 1.
type Mixed struct {
	Difference float64  `json:"difference"`
	SE         float64  `json:"se"`
	Interval   Interval `json:"interval"` // 95 %; not limited to [-1,1]
	// BetweenSequences is the variance of the side's effects on sequences, twice
	// over, because two sides have them. WithinSequences is that of the rest.
	BetweenSequences float64 `json:"variance_between_sequences"`
	WithinSequences  float64 `json:"variance_within_sequences"`
}

func mixed(tasks []Matched) *Mixed {
	x := contrastOf(tasks, true)
	m, g := float64(x.counts.Tasks), float64(len(x.clusters))
	var sum, squares, between float64
	for _, c := range x.clusters {
		sum += c.sum
		squares += c.n * c.n
		between += c.sum * c.sum / c.n
	}
	f := &Mixed{WithinSequences: max(0, x.size-between) / (m - g)}
	between = (between - sum*sum/m) / (g - 1)
	f.BetweenSequences = max(0, (between-f.WithinSequences)/((m-squares/m)/(g-1)))
	var weights float64
	for _, c := range x.clusters {
		variance := f.BetweenSequences + f.WithinSequences/c.n
		w := 1.
		if variance > 0 {
			w = 1 / variance
		}
		weights += w
		f.Difference += w * c.sum / c.n
	}
	f.Difference /= weights
	if f.BetweenSequences+f.WithinSequences > 0 {
		f.SE = 1 / math.Sqrt(weights)
	}
	half := f.SE * studentQuantile(.975, g-1)
	f.Interval = Interval{f.Difference - half, f.Difference + half}
	return f
}
