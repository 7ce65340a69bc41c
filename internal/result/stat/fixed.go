package stat

// A weightedCell is a cell of a task with its weight in the difference of rates.
type weightedCell struct {
	Pair
	weight float64
}

type strata []weightedCell

// upperLevel is the level of the upper bound of a rate, one-sided.
const upperLevel = .005

// RateBounds are one-sided bounds of a rate: it is below Lower in at most 5 % of such data
// ([PassLevel]), and above Upper in at most .5 %.
type RateBounds struct {
	Rate  float64 `json:"rate"`
	Lower float64 `json:"lower_95"`
	Upper float64 `json:"upper_995"`
}

// RateOf returns [RateOfFixed], or else [RateOfSample].
func RateOf(tasks []Task, fixed bool) RateBounds {
	if fixed {
		return RateOfFixed(tasks)
	}
	return RateOfSample(tasks)
}

// RateOfFixed returns the mean rate of just these tasks with its bounds. Each task weighs the same,
// and so does each of its cells.
//
// The bounds are Clopper and Pearson's (Biometrika 26, 1934) at the number of trials of equal
// weight that are worth as much (Korn and Graubard, "Confidence intervals for proportions with
// small expected number of positive counts estimated from survey data", Survey Methodology 24,
// 1998). Tasks of different rates make them conservative, because successes in trials of different
// rates vary less than in as many of the mean rate (Hoeffding, "On the distribution of the number
// of successes in independent trials", Annals of Mathematical Statistics 27, 1956).
func RateOfFixed(tasks []Task) RateBounds {
	var rate, squares float64
	for _, t := range tasks {
		for _, c := range t.Cells {
			weight := 1 / float64(len(tasks)*len(t.Cells))
			rate += weight * c.rate()
			squares += weight * weight / float64(c.N)
		}
	}
	if squares == 0 {
		return RateBounds{Upper: 1}
	}
	n := 1 / squares
	k := rate * n
	return RateBounds{rate, clopperLow(k, n, PassLevel), clopperHigh(k, n, upperLevel)}
}

// clopperLow and clopperHigh are the one-sided limits of Clopper and Pearson for k successes in n
// trials, which may be fractions.
func clopperLow(k, n, level float64) float64 {
	if k <= 0 {
		return 0
	}
	return smallest(func(rate float64) bool { return betaRegularized(rate, k, n-k+1) > level })
}

func clopperHigh(k, n, level float64) float64 {
	if k >= n {
		return 1
	}
	return smallest(func(rate float64) bool { return betaRegularized(1-rate, n-k, k+1) <= level })
}

// RateOfSample returns the rate of tasks like these. Its bounds are those of [RateOfFixed], at the
// number of independent trials that are worth as much as these with their repeats; see [Clustered].
func RateOfSample(tasks []Task) RateBounds {
	groups := make([]Group, len(tasks))
	for i, t := range tasks {
		for _, c := range t.Cells {
			groups[i].Full += c.Full
			groups[i].N += c.N
		}
	}
	groups = observed(groups)
	r := Clustered(groups, 1-2*PassLevel)
	if r.Trials == 0 {
		return RateBounds{Upper: 1}
	}
	worth := func(level float64) float64 {
		certain := normalQuantile(1-level) / critical(groups, r.Correlation, 1-2*level)
		return float64(r.Trials) / r.DesignEffect * certain * certain
	}
	low, high := worth(PassLevel), worth(upperLevel)
	return RateBounds{
		r.Rate, clopperLow(r.Rate*low, low, PassLevel), clopperHigh(r.Rate*high, high, upperLevel),
	}
}
