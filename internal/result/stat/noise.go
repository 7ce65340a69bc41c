package stat

import "math"

// A NoiseFloor is how far results move when nothing changes but chance.
type NoiseFloor struct {
	// Tasks is how many tasks one run has, Repeated how many of them were tried
	// more than once in a cell and so tell of chance.
	Tasks    int `json:"tasks"`
	Repeated int `json:"repeated"`

	// Flip is the chance that two repeats of a task in the same cell end
	// differently, averaged over tasks; Unstable is the share of cells that showed
	// both outcomes, averaged likewise, which grows with the number of repeats.
	Flip         float64  `json:"flip"`
	FlipInterval Interval `json:"flip_interval"` // 95 %
	Unstable     float64  `json:"unstable"`

	// Change is the expected absolute difference of the rates of two runs that
	// try each task once in each of its cells; SD is the standard deviation of
	// that difference and Limit what 95 % of such differences stay within. All
	// are rates: 0.02 is two points.
	Change float64 `json:"change"`
	SD     float64 `json:"sd"`
	Limit  float64 `json:"limit"`
}

// Noise estimates the noise floor from repeats of the same trials.
//
// A run's rate is over its trials, so a task counts by their number. Trials of a
// task in different cells may share the luck of their repeat, so what varies from
// repeat to repeat are the task's sums over its cells; those of different tasks
// are independent. The difference of two runs has twice the sum of the tasks'
// variances between repeats, over the squared number of trials (elementary; Bland
// and Altman, "Measurement error", BMJ 313, 1996, give the same as the
// repeatability limit). Tasks tried once lend their number but not their
// variance: they are taken to be like the others.
//
// Limit is SD times Student's quantile, because the variance is estimated. Its
// degrees of freedom are 2(Σv)²/Σv² for the tasks' variances v (Satterthwaite, "An
// approximate distribution of estimates of variance components", Biometrics
// Bulletin 2, 1946, with v² for half the variance of v, which is cautious from
// three repeats on), less one to be cautious where few tasks differed. It is never
// beyond what outcomes can differ by at most.
//
// In simulations (1 to 32 cells that share all luck, half of it or none, 2 to 10
// repeats) 3 to 6 % of differences between new runs are beyond Limit with 50
// tasks and more, and 0 to 8 % with 10 or 20. It is too small where cells hardly
// ever fail but at times all together: at a rate of 97 % with 2 or 3 repeats of 10
// to 50 tasks up to 20 % are beyond it, because what is so rare was not seen yet.
//
// An SD of 0 says that no repeat differed, not that none will. Limit is then what
// the upper end of FlipInterval allows at most, with cells that share all luck.
// Without any repeats FlipInterval is [0,1].
func Noise(tasks []Task) NoiseFloor {
	f := NoiseFloor{FlipInterval: Interval{0, 1}}
	var flips []float64
	var trials, squares, told, sum, fourth float64
	for _, t := range tasks {
		n := t.size()
		if n == 0 {
			continue
		}
		f.Tasks++
		trials += n
		squares += n * n
		flip, unstable, ok := t.flips()
		if !ok {
			continue
		}
		flips = append(flips, flip)
		f.Unstable += unstable
		v := n * n * between(t.Repeats)
		told += n * n
		sum += v
		fourth += v * v
	}
	f.Repeated = len(flips)
	if f.Repeated > 0 {
		f.Unstable /= float64(f.Repeated)
		f.Flip, f.FlipInterval = mean(flips)
	}
	// The variance of the difference of two outcomes is their chance to differ, at
	// most one half; that of two rates of a task is no more than its cells' mean.
	most := math.Sqrt(min(.5, f.FlipInterval.High)*squares) / max(1, trials)
	if sum == 0 {
		f.Limit = min(1, Z95*most)
		return f
	}
	most = math.Sqrt(.5*squares) / trials
	f.SD = min(most, math.Sqrt(2*sum*squares/told)/trials)
	f.Change = f.SD * math.Sqrt(2/math.Pi)
	f.Limit = min(1, Z95*most, f.SD*studentQuantile(.975, max(1, 2*sum*sum/fourth-1)))
	return f
}

// size is how many trials the task has in one repeat: in the fullest, as others
// may lack some.
func (t Task) size() float64 {
	n := 0
	for _, g := range t.Repeats {
		n = max(n, g.N)
	}
	return float64(n)
}

// flips is the chance that two repeats in a cell end differently and the share
// of cells that showed both outcomes, as means over the cells with repeats; not
// ok without any.
func (t Task) flips() (flip, unstable float64, ok bool) {
	var cells float64
	for _, g := range t.Cells {
		if g.N < 2 {
			continue
		}
		cells++
		flip += 2 * float64(g.Full) * float64(g.N-g.Full) / (float64(g.N) * float64(g.N-1))
		if g.Full > 0 && g.Full < g.N {
			unstable++
		}
	}
	return flip / max(1, cells), unstable / max(1, cells), cells > 0
}

// between is the variance of a task's rate from repeat to repeat. A repeat that
// lacks trials weighs less; the estimate stays unbiased for cells that share all
// luck and errs to caution for others.
func between(repeats []Group) float64 {
	var full, n, squares float64
	for _, g := range repeats {
		full += float64(g.Full)
		n += float64(g.N)
		squares += float64(g.N) * float64(g.N)
	}
	var v float64
	for _, g := range observed(repeats) {
		e := g.rate() - full/n
		v += float64(g.N) * e * e
	}
	if n*n <= squares { // a single repeat
		return 0
	}
	return v / (n - squares/n)
}
