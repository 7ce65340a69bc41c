package stat

import (
	"math"

	"gonum.org/v1/gonum/stat/combin"
)

// maxSteps limits the work of an exact test. Beyond it, the distribution is as good as normal.
const maxSteps = 1 << 27

// exact returns the probability that side B has at most the weighted successes that it has, if the
// successes of each stratum fall on the sides by chance.
func (s strata) exact() float64 {
	var lots []lot
	for i, weight := range s.counts() {
		if l := lotOf(s[i].Pair, weight); len(l.chances) > 1 {
			lots = append(lots, l)
		}
	}
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
