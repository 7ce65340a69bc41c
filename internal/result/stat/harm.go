package stat

// A Violation says whether a run had an effect that nobody asked for, and how bad the worst one was.
type Violation struct {
	Happened bool
	// Weight is from 0 to 1. Known is false if it cannot be told.
	Weight float64
	Known  bool
}

// Violations has the runs of a task by condition.
type Violations struct {
	Sequence   int
	Conditions [][]Violation
}

// Harmful says how often runs have unwanted effects, and how bad these are.
type Harmful struct {
	// Compliance is the rate of runs without a violation. Harm is the mean weight of the violations whose
	// weight is known. Expected is the mean weight of runs, which is 0 without a violation; it has no
	// tasks if the weight of a violation is unknown.
	Compliance, Harm, Expected Estimate
	// PublishedSafety is 1 less the rate of violations times their mean weight, over all runs ("Towards a
	// science of AI agent reliability", arXiv 2602.16666, 2026). It is known if Expected is.
	PublishedSafety float64
	// Runs, Violations and Unknown count the runs, those with a violation, and those whose weight is unknown.
	Runs, Violations, Unknown int
}

// Harmfulness estimates how often runs of tasks violate, and how badly. A task's rate and weight are the
// means over its conditions, and each task weighs the same. Harm is the quotient of both means, so
// that Expected is (1 - Compliance) times Harm.
//
// Compliance has the interval of [PassK], and the others that of [Consistency] for values that vary less
// than outcomes do. In that of Harm, a task counts as much as it violates, because then the
// residuals of a ratio estimator decide how much the weights differ (Cochran, "Sampling techniques",
// 1977, chapter 6). In simulations (10, 30 and 100 tasks of 5 trials, of which 5 to 50 % violate), they
// hold the truth in 94 to 100 %.
func Harmfulness(tasks []Violations, bySequence bool) (h Harmful) {
	var complied, harmed []value
	var clusters []cluster
	of := clusterOf(&clusters, bySequence)
	var all average
	var sum, weight float64 // of the tasks with violations of known weight
	violating := 0
	for _, t := range tasks {
		var compliance, harm, known average
		for _, runs := range t.Conditions {
			var c, w, k average
			for _, r := range runs {
				c.add(float64(unlike(r.Happened, true)))
				weighed := r.Happened && r.Known
				k.add(float64(unlike(weighed, false)))
				w.add(r.Weight * float64(unlike(weighed, false)))
				h.Violations += unlike(r.Happened, false)
				h.Unknown += unlike(r.Happened && !r.Known, false)
				all.add(r.Weight * float64(unlike(weighed, false)))
			}
			compliance.join(c)
			harm.join(w)
			known.join(k)
		}
		if compliance.n == 0 {
			continue
		}
		complied = append(complied, value{t.Sequence, compliance.mean()})
		harmed = append(harmed, value{t.Sequence, harm.mean()})
		if known.mean() > 0 {
			violating++
			sum, weight = sum+harm.mean(), weight+known.mean()
			at := of(t.Sequence)
			at.n, at.sum = at.n+known.mean(), at.sum+harm.mean()
		}
	}
	h.Runs = int(all.n)
	h.Compliance.Value, h.Compliance.Interval = mean(complied, bySequence)
	h.Compliance.Tasks = len(complied)
	h.Harm = estimateOf(clusters, sum, weight, violating)
	if h.Unknown == 0 && h.Runs > 0 {
		h.Expected, h.PublishedSafety = meanOf(harmed, bySequence), 1-all.mean()
	}
	return h
}
