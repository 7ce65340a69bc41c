package stat

import (
	"cmp"
	"math"
	"slices"
)

// A Statement is a stated chance of success, from 0 to 1, and whether the run fully succeeded.
type Statement struct {
	Confidence float64
	Full       bool
}

// Stated has the statements of runs of a task by condition.
type Stated struct {
	Sequence   int
	Conditions [][]Statement
}

// Predictable says how well confidence predicts success.
type Predictable struct {
	// Brier is 1 less the mean squared difference of confidence and outcome (Brier, "Verification of
	// forecasts expressed in terms of probability", Monthly Weather Review 78, 1950).
	Brier Estimate
	// Overconfidence is how far the mean confidence is above the rate of success, from -1 to 1.
	Overconfidence Estimate
	// Discrimination is the chance that a success has a higher confidence than a failure of another
	// task has, where ties count half: the area under the ROC curve (Hanley and McNeil, Radiology
	// 143, 1982). Pairs within a task would pull it to one half if there are few tasks. Its Tasks is 0
	// without such a pair.
	Discrimination Estimate
	// CalibrationError is the mean distance of confidence and rate over ten bins of equal width, weighted
	// by their runs (Naeini, Cooper and Hauskrecht, "Obtaining well calibrated probabilities using
	// Bayesian binning", AAAI 2015). It is biased upwards with few runs: ByChance is about what a
	// model without any such error would show.
	CalibrationError, ByChance float64
	// RiskCoverage is the published score of the area under the curve of risk by coverage (Geifman and
	// El-Yaniv, "Selective classification for deep neural networks", NeurIPS 2017): 1 if the most
	// confident runs are those that succeed, 0 if confidence says nothing. It is in [0,1].
	RiskCoverage float64
	Bins         []ConfidenceBin
	Runs         int
}

// A ConfidenceBin has the runs whose confidence is in a tenth of [0,1]. The interval is that of
// [Clustered].
type ConfidenceBin struct {
	Confidence float64  `json:"confidence"` // mean
	Rate       float64  `json:"rate"`
	Interval   Interval `json:"interval"`
	Runs       int      `json:"runs"`
}

const confidenceBins = 10

// Predictability compares stated confidence with outcomes. Brier and Overconfidence are means over tasks of
// the means over their conditions, with the intervals of [Consistency], so that they do not depend on how often
// a condition is repeated. Discrimination is over all runs; its interval is Student's on the scale of log odds, with a standard error from a jackknife over tasks
// or, with bySequence, over sequences, because runs of a task are alike.
func Predictability(tasks []Stated, bySequence bool) (p Predictable) {
	var brier, over []value
	var clusters [][][]Statement // by task
	cluster := clusterOf(&clusters, bySequence)
	var all []Statement
	for _, t := range tasks {
		own := slices.Concat(t.Conditions...)
		if len(own) == 0 {
			continue
		}
		var square, off average
		for _, statements := range t.Conditions {
			var squares, offs average
			for _, s := range statements {
				d := s.Confidence - s.outcome()
				squares.add(1 - d*d)
				offs.add((1 + d) / 2)
			}
			square.join(squares)
			off.join(offs)
		}
		brier = append(brier, value{t.Sequence, square.mean()})
		over = append(over, value{t.Sequence, off.mean()})
		c := cluster(t.Sequence)
		*c = append(*c, own)
		all = append(all, own...)
	}
	p.Runs = len(all)
	p.Brier, p.Overconfidence = meanOf(brier, bySequence), meanOf(over, bySequence)
	o := &p.Overconfidence
	o.Value, o.Interval = 2*o.Value-1, Interval{2*o.Interval.Low - 1, 2*o.Interval.High - 1}
	p.Discrimination = discrimination(all, clusters, len(brier))
	p.RiskCoverage = riskCoverage(all)
	p.calibrate(clusters)
	return p
}

func (s Statement) outcome() float64 { return float64(unlike(s.Full, false)) }

// calibrate fills in the bins and their errors.
func (p *Predictable) calibrate(clusters [][][]Statement) {
	for i := range confidenceBins {
		var groups []Group
		var confidence, rate average
		for _, c := range clusters {
			var g Group
			for _, s := range slices.Concat(c...) {
				if min(confidenceBins-1, int(s.Confidence*confidenceBins+1e-9)) == i {
					confidence.add(s.Confidence)
					rate.add(s.outcome())
					g.N++
					g.Full += unlike(s.Full, false)
				}
			}
			groups = append(groups, g)
		}
		if rate.n == 0 {
			continue
		}
		b := ConfidenceBin{confidence.mean(), rate.mean(), Clustered(groups, .95).Interval, int(rate.n)}
		share := rate.n / float64(p.Runs)
		p.CalibrationError += share * math.Abs(b.Confidence-b.Rate)
		// The mean of the absolute value of a normal variable is √(2/π) times its standard deviation.
		p.ByChance += share * math.Sqrt(2/math.Pi*b.Confidence*(1-b.Confidence)/rate.n)
		p.Bins = append(p.Bins, b)
	}
}

// discrimination returns the area under the ROC curve with its interval.
func discrimination(all []Statement, clusters [][][]Statement, tasks int) Estimate {
	none := Estimate{Interval: Interval{0, 1}}
	var levels []float64
	for _, s := range all {
		levels = append(levels, s.Confidence)
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	count := func(some []Statement, counts [2][]float64, by float64) {
		for _, s := range some {
			at, _ := slices.BinarySearch(levels, s.Confidence)
			counts[unlike(s.Full, false)][at] += by
		}
	}
	counts := [2][]float64{make([]float64, len(levels)), make([]float64, len(levels))}
	count(all, counts, 1)
	within := make([]wonPairs, len(clusters))
	var inside wonPairs
	for i, c := range clusters {
		for _, task := range c {
			own := [2][]float64{make([]float64, len(levels)), make([]float64, len(levels))}
			count(task, own, 1)
			within[i].add(pairsOf(own), 1)
		}
		inside.add(within[i], 1)
	}
	between := pairsOf(counts)
	if between.add(inside, -1); between.pairs < .5 {
		return none
	}
	area := between.share()
	e := Estimate{area, Interval{0, 1}, tasks}
	var odds []float64
	for i, c := range clusters {
		one := slices.Concat(c...)
		count(one, counts, -1)
		rest := pairsOf(counts)
		count(one, counts, 1)
		rest.add(inside, -1)
		rest.add(within[i], 1)
		if a := rest.share(); rest.pairs > .5 && a > 0 && a < 1 {
			odds = append(odds, math.Log(a/(1-a)))
		}
	}
	g := float64(len(odds))
	if area <= 0 || area >= 1 || g < 2 || len(odds) < len(clusters) {
		// The jackknife cannot tell. The smaller group decides how much is known.
		few := 0.
		for _, n := range counts[unlike(sumOf(counts[0]) > sumOf(counts[1]), false)] {
			few += n
		}
		e.Interval = wilson(area, few, Z95)
		return e
	}
	m := sumOf(odds) / g
	squares := 0.
	for _, o := range odds {
		squares += (o - m) * (o - m)
	}
	half := studentQuantile(.975, g-1) * math.Sqrt((g-1)/g*squares)
	at := math.Log(area / (1 - area))
	e.Interval = Interval{1 / (1 + math.Exp(half-at)), 1 / (1 + math.Exp(-half-at))}
	return e
}

func sumOf(all []float64) (sum float64) {
	for _, v := range all {
		sum += v
	}
	return sum
}

// wonPairs counts pairs of a success and a failure, and those in which the success has the higher level.
type wonPairs struct{ won, pairs float64 }

func (p *wonPairs) add(o wonPairs, times float64) {
	p.won, p.pairs = p.won+times*o.won, p.pairs+times*o.pairs
}

func (p wonPairs) share() float64 { return min(1, max(0, p.won/p.pairs)) }

// pairsOf counts the pairs of failures and successes by level.
func pairsOf(counts [2][]float64) (p wonPairs) {
	var below float64
	for i, failures := range counts[0] {
		p.won += counts[1][i] * (below + failures/2)
		below += failures
	}
	p.pairs = below * sumOf(counts[1])
	return p
}

// riskCoverage compares the mean rate of failure of the most confident runs, over all numbers of them,
// with that of the best order and of none. Runs with the same confidence come in no order.
func riskCoverage(all []Statement) float64 {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Statement) int {
		return cmp.Compare(b.Confidence, a.Confidence)
	})
	n := float64(len(sorted))
	failures := 0.
	for _, s := range sorted {
		failures += 1 - s.outcome()
	}
	var area, best, before, seen float64
	for i := 0; i < len(sorted); {
		k, more := i, 0.
		for ; k < len(sorted) && sorted[k].Confidence == sorted[i].Confidence; k++ {
			more += 1 - sorted[k].outcome()
		}
		for at := i; at < k; at++ {
			seen++
			area += (before + more*float64(at-i+1)/float64(k-i)) / seen / n
			best += max(0, seen-(n-failures)) / seen / n
		}
		before, i = before+more, k
	}
	excess := failures/n - best
	if n == 0 || excess <= 0 {
		return 1
	}
	return min(1, max(0, 1-(area-best)/excess))
}
