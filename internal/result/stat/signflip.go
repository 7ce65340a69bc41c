package stat

import "math"

// maxFlipSteps limits the work of a sign-flip test. Beyond it, the distribution is as good as
// normal.
const maxFlipSteps = 1 << 22

// flipTest returns the p-value of the one-sided sign-flip test against losses that are not above 0
// on average: the share of all changes of signs that make the sum at least as large. It is exact if
// the losses of equal sides are symmetric around 0. Losses are rounded to [finest] steps, which
// leaves it exact.
func flipTest(losses []float64) float64 {
	most := 0.
	for _, l := range losses {
		most = max(most, math.Abs(l))
	}
	if most < 1e-9 {
		return 1
	}
	sizes := make([]float64, len(losses))
	for i, l := range losses {
		sizes[i] = math.Abs(l) / most
	}
	var steps []int
	seen, span, work := 0, 0, 0
	variance := 0.
	for i, k := range wholes(sizes) {
		if k == 0 {
			continue
		}
		steps = append(steps, k)
		span += k
		work += span
		variance += float64(k) * float64(k) / 4
		if losses[i] > 0 {
			seen += k
		}
	}
	if work > maxFlipSteps {
		return normalCDF((float64(span)/2 - float64(seen) + .5) / math.Sqrt(variance))
	}
	chances, top := make([]float64, span+1), 0 // of the sum of the steps that count as losses
	chances[0] = 1
	for _, k := range steps {
		for at := top; at >= 0; at-- {
			half := chances[at] / 2
			chances[at] = half
			chances[at+k] += half
		}
		top += k
	}
	p := 0.
	for _, q := range chances[seen:] {
		p += q
	}
	return min(1, p)
}

// wholes returns whole numbers in proportion to values, of which the largest is 1. If such numbers
// would exceed [finest], they are rounded.
func wholes(values []float64) []int {
	numbers := make([]int, len(values))
	for scale := 1; scale <= finest; scale++ {
		whole := true
		for i, v := range values {
			x := v * float64(scale)
			numbers[i] = int(math.Round(x))
			whole = whole && math.Abs(x-float64(numbers[i])) < 1e-6
		}
		if whole {
			break
		}
	}
	return numbers
}

// unseenClusters is how many clusters without a loss [flipBound] adds, so that clusters that all
// agree don't look certain.
const unseenClusters = 2

// flipBound returns a lower bound of the mean loss of the tasks of clusters: the largest one that
// [flipTest] rejects at a level, or 0.
func flipBound(clusters []cluster, level float64) float64 {
	losses := make([]float64, len(clusters)+unseenClusters)
	tasks := 0.
	for _, c := range clusters {
		tasks += c.n
	}
	rejects := func(mean float64) bool {
		for i := range losses {
			losses[i] = -mean * tasks / float64(max(1, len(clusters)))
			if i < len(clusters) {
				losses[i] = -clusters[i].sum - clusters[i].n*mean
			}
		}
		return flipTest(losses) <= level
	}
	low, _ := bisect(20, 0, 1, rejects)
	return low
}
