package stat

import "math"

// A NoiseFloor describes how much results change by chance alone.
type NoiseFloor struct {
	// Tasks is the number of tasks in one run. Repeated is the number of
	// tasks with more than one trial in a cell; only these show the effect
	// of chance.
	Tasks    int `json:"tasks"`
	Repeated int `json:"repeated"`

	// Flip is the probability that two repeats of a task in the same cell end
	// differently, averaged over tasks. Unstable is the share of cells that
	// showed both outcomes, averaged likewise; it grows with the number of
	// repeats.
	Flip         float64  `json:"flip"`
	FlipInterval Interval `json:"flip_interval"` // 95 %
	Unstable     float64  `json:"unstable"`

	// Change is the expected absolute difference between the rates of two runs
	// that try each task once in each of its cells. SD is the standard
	// deviation of that difference, and Limit contains 95 % of such
	// differences. All three are rates: 0.02 means two points.
	Change float64 `json:"change"`
	SD     float64 `json:"sd"`
	Limit  float64 `json:"limit"`
}

// Noise estimates the noise floor from repeats of the same trials.
//
// A run's rate is taken over its trials, so a task has the weight of its number
// of trials. Trials of a task in different cells may share the luck of their
// repeat, so Noise uses the variance of the task's sum over its cells from
// repeat to repeat. The luck of different tasks is independent, whether or not
// they need the same sequence of tools, because runs repeat the same tasks. So
// bySequence only matters for FlipInterval, which is about other tasks, and for a Limit that rests
// on it. The difference between two runs has twice the sum of the tasks' variances, divided by the
// square of the number of trials (elementary; the same as the repeatability limit of Bland and
// Altman, "Measurement error", BMJ 313, 1996). Tasks that were tried once count with their weight,
// and are assumed to vary like the others.
//
// Limit is SD times Student's quantile, because the variance is estimated. The
// degrees of freedom are 2(Σv)²/Σv² - 1 for the tasks' variances v
// (Satterthwaite, "An approximate distribution of estimates of variance
// components", Biometrics Bulletin 2, 1946). This uses v² for half the variance
// of v, which is cautious for three or more repeats, and subtracts one to be
// cautious if few tasks differed. Limit never exceeds the largest difference
// that outcomes can have.
//
// In simulations (1 to 32 cells that share all, half or none of their luck, 2
// to 10 repeats), 3 to 6 % of the differences between new runs exceed Limit
// with 50 or more tasks, and 0 to 8 % with 10 or 20 tasks. Limit is too small
// if cells fail very rarely but then all together. At a rate of 97 % with 2 or
// 3 repeats of 10 to 50 tasks, up to 20 % exceed it, because events that rare
// were not observed yet.
//
// An SD of 0 means that no repeats differed so far, not that they never will.
// Limit is then the largest value that the upper end of FlipInterval allows if
// cells share all luck. Without repeats, FlipInterval is [0,1].
func Noise(tasks []Task, bySequence bool) NoiseFloor {
	f := NoiseFloor{FlipInterval: Interval{0, 1}}
	var flips []value
	var trials, squares, repeatedSquares, sum, fourth float64
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
		flips = append(flips, value{t.Sequence, flip})
		f.Unstable += unstable
		v := n * n * between(t.Repeats)
		repeatedSquares += n * n
		sum += v
		fourth += v * v
	}
	f.Repeated = len(flips)
	if f.Repeated > 0 {
		f.Unstable /= float64(f.Repeated)
		f.Flip, f.FlipInterval = mean(flips, bySequence)
	}
	// The variance of the difference of two outcomes is the probability that
	// they differ, which is at most one half. The variance for two rates of a
	// task is at most the mean over its cells.
	most := math.Sqrt(min(.5, f.FlipInterval.High)*squares) / max(1, trials)
	if sum == 0 {
		f.Limit = min(1, Z95*most)
		return f
	}
	most = math.Sqrt(.5*squares) / trials
	f.SD = min(most, math.Sqrt(2*sum*squares/repeatedSquares)/trials)
	f.Change = f.SD * math.Sqrt(2/math.Pi)
	f.Limit = min(1, Z95*most, f.SD*studentQuantile(.975, max(1, 2*sum*sum/fourth-1)))
	return f
}

// size returns the number of trials of the task in one repeat. Repeats may lack
// some trials, so it uses the fullest one.
func (t Task) size() float64 {
	n := 0
	for _, g := range t.Repeats {
		n = max(n, g.N)
	}
	return float64(n)
}

// flips returns the probability that two repeats in a cell end differently, and
// the share of cells that showed both outcomes. Both are means over the cells
// with repeats. It returns false if there are no such cells.
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

// between returns the variance of a task's rate between repeats. A repeat that
// lacks trials has less weight. The estimate is unbiased for cells that share
// all luck, and cautious for others.
func between(repeats []Group) float64 {
	repeats = observed(repeats)
	if len(repeats) < 2 {
		return 0
	}
	v, _, size := meanSquares(repeats)
	return v / size
}
