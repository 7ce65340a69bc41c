package stat

// SharedRate returns the rate of a model over tasks as [Rank] does: the mean over tasks of the mean
// over conditions. Its interval of the level conf is that of [Clustered], at the size of a sample of
// equal clusters with the same variance (Kish, Survey Sampling, 1965). It is the same if all tasks
// have equally many trials. With bySequence, the tasks of one sequence are a cluster.
func SharedRate(tasks []Shared, model int, bySequence bool, conf float64) Rate {
	r := Rate{Interval: Interval{0, 1}, DesignEffect: 1}
	var groups []Group
	var weights []float64
	places := make(map[int]int)
	sum, all := 0., 0.
	for i, t := range tasks {
		var g Group
		rate, n := 0., 0.
		for _, c := range t.Cells {
			if c[model].N > 0 {
				rate += c[model].rate()
				n++
				g.Full += c[model].Full
				g.N += c[model].N
			}
		}
		if n == 0 {
			continue
		}
		if bySequence {
			i = t.Sequence
		}
		at := number(places, i)
		if at == len(groups) {
			groups, weights = append(groups, Group{}), append(weights, 0)
		}
		groups[at].Full += g.Full
		groups[at].N += g.N
		weights[at] += t.weight()
		sum += t.weight() * rate / n
		all += t.weight()
		r.Trials += g.N
	}
	r.Tasks = len(groups)
	if r.Trials == 0 {
		return r
	}
	r.Rate = min(1, sum/all) // rounding may exceed 1
	r.Correlation = correlation(groups)
	variance := 0. // as a multiple of that of one trial
	for i, g := range groups {
		n := float64(g.N)
		variance += weights[i] * weights[i] / (all * all) * (1 + (n-1)*r.Correlation) / n
	}
	r.DesignEffect = float64(r.Trials) * variance
	r.Interval = wilson(r.Rate, 1/variance, critical(groups, r.Correlation, conf))
	return r
}
