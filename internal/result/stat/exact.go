package stat

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
)

// maxSteps limits the work of an exact test. Beyond it, the distribution is as good as normal.
const maxSteps = 1 << 27

// exact returns the probability that side B has at most the weighted successes that it has, if the
// successes of each stratum fall on the sides by chance.
func (s strata) exact() float64 {
	var lots []lot
	for i, weight := range s.counts() {
		lots = append(lots, lotOf(s[i].Pair, weight))
	}
	return atMost(lots)
}

// atMost returns the probability that the weighted successes of lots are at most those that side B has.
func atMost(lots []lot) float64 {
	lots = slices.DeleteFunc(lots, func(l lot) bool { return len(l.chances) == 1 })
	if len(lots) == 0 {
		return 1
	}
	at, span, steps := 0, 1, 0
	var mean, variance float64
	for _, l := range lots {
		at += l.at * l.weight
		span += l.weight * (len(l.chances) - 1)
		steps += span * len(l.chances)
		m, v := l.moments()
		mean, variance = mean+m, variance+v
	}
	if steps > maxSteps {
		return normalCDF((float64(at) + .5 - mean) / math.Sqrt(variance))
	}
	sums := []float64{1}
	for _, l := range lots {
		sums = l.add(sums)
	}
	p := 0.
	for _, q := range sums[:at+1] {
		p += q
	}
	return min(1, p)
}

// finest limits the whole numbers that stand for weights.
const finest = 64

// counts returns whole numbers in proportion to the weight of B's successes in the difference of
// rates, given the successes of both sides together. If such numbers would exceed [finest], they
// are rounded. The test is exact for any weights that depend on the numbers of trials only.
func (s strata) counts() []int {
	per, most := make([]float64, len(s)), 0.
	for i, x := range s {
		per[i] = x.weight * (1/float64(x.NA) + 1/float64(x.NB))
		most = max(most, per[i])
	}
	for i := range per {
		per[i] /= most
	}
	counts := wholes(per)
	for i := range counts {
		counts[i] = max(1, counts[i])
	}
	return counts
}

// A lot is the distribution of side B's successes in a stratum: chances of the possible numbers,
// from the least one. Side B has at more than the least.
type lot struct {
	weight, at int
	chances    []float64
}

// lotOf returns the hypergeometric distribution of side B's successes.
func lotOf(p Pair, weight int) lot {
	both := p.A + p.B
	least, most := max(0, both-p.NA), min(p.NB, both)
	l := lot{weight: weight, at: p.B - least}
	ways := combin.LogGeneralizedBinomial(float64(p.NA+p.NB), float64(both))
	for b := least; b <= most; b++ {
		l.chances = append(l.chances, math.Exp(combin.LogGeneralizedBinomial(float64(p.NB), float64(b))+
			combin.LogGeneralizedBinomial(float64(p.NA), float64(both-b))-ways))
	}
	return l
}

// maxUnitSteps limits the work of the distribution of a few units among many.
const maxUnitSteps = 1 << 20

// lotOfUnits returns the distribution of the successes of n units that are drawn from others, of which
// scores counts those with each number of successes. Side B has at.
func lotOfUnits(scores []int, n, at int) lot {
	most := len(scores) - 1
	l := lot{weight: 1, at: at, chances: make([]float64, n*most+1)}
	if n*n*len(l.chances)*len(scores) > maxUnitSteps {
		var all, sum, squares float64
		for score, units := range scores {
			all += float64(units)
			sum += float64(units * score)
			squares += float64(units * score * score)
		}
		mean := sum / all
		spread := math.Sqrt(max(1e-12, float64(n)*(squares/all-mean*mean)*(all-float64(n))/(all-1)))
		for k := range l.chances {
			x := float64(k) - float64(n)*mean
			l.chances[k] = normalCDF((x+.5)/spread) - normalCDF((x-.5)/spread)
		}
		return l
	}
	left := 0 // units of this score and of higher ones
	for _, units := range scores {
		left += units
	}
	drawn := make([][]float64, n+1) // chances of so many units so far with so many successes
	for k := range drawn {
		drawn[k] = make([]float64, len(l.chances))
	}
	drawn[0][0] = 1
	for score, units := range scores {
		for before := n; before >= 0; before-- { // from behind, because states only move forwards
			draws := n - before
			if draws > left {
				continue // which has no chance
			}
			ways := combin.LogGeneralizedBinomial(float64(left), float64(draws))
			from := slices.Clone(drawn[before])
			clear(drawn[before])
			for k := max(0, draws-(left-units)); k <= min(units, draws); k++ {
				chance := math.Exp(combin.LogGeneralizedBinomial(float64(units), float64(k)) +
					combin.LogGeneralizedBinomial(float64(left-units), float64(draws-k)) - ways)
				for sum, p := range from {
					if p > 0 {
						drawn[before+k][sum+k*score] += p * chance
					}
				}
			}
		}
		left -= units
	}
	copy(l.chances, drawn[n])
	return l
}

// moments returns the mean and the variance of the weighted successes beyond the least.
func (l lot) moments() (mean, variance float64) {
	for k, q := range l.chances {
		mean += q * float64(k)
		variance += q * float64(k) * float64(k)
	}
	w := float64(l.weight)
	return w * mean, w * w * (variance - mean*mean)
}

// add returns the distribution of a sum and the weighted successes of a lot.
func (l lot) add(sums []float64) []float64 {
	out := make([]float64, len(sums)+l.weight*(len(l.chances)-1))
	for k, q := range l.chances {
		for i, p := range sums {
			out[i+k*l.weight] += p * q
		}
	}
	return out
}
