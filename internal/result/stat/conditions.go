package stat

import (
	"math"
	"math/rand/v2"
)

// webb holds Webb's six weights, which are equally likely.
var webb = [...]float64{
	-math.Sqrt(1.5), -1, -math.Sqrt(.5), math.Sqrt(.5), 1, math.Sqrt(1.5),
}

// conditions returns the p-value for the same difference under all conditions;
// see [Compare]. The seed is fixed, so the same data give the same p-value.
func (x *contrast) conditions() float64 {
	type place struct{ cluster, condition int }
	n, own := make([]float64, x.counts.Conditions), make([]float64, len(x.clusters))
	var common float64
	index := make(map[place]int)
	var sums []cellOf // of clusters under conditions
	for _, c := range x.cells {
		n[c.condition]++
		own[c.cluster]++
		common += c.difference / float64(len(x.cells))
	}
	for _, c := range x.cells {
		at := place{c.cluster, c.condition}
		i, ok := index[at]
		if !ok {
			i = len(sums)
			index[at] = i
			sums = append(sums, cellOf{c.cluster, c.condition, 0})
		}
		sums[i].difference += c.difference - common
	}

	weights, off := make([]float64, len(x.clusters)), make([]float64, len(n))
	spread := func() (sum float64) {
		clear(off)
		var total float64
		for _, s := range sums {
			v := weights[s.cluster] * s.difference
			off[s.condition] += v
			total += v
		}
		total /= float64(len(x.cells))
		for i, v := range off {
			sum += (v/n[i] - total) * (v/n[i] - total) * n[i]
		}
		return sum
	}
	for i := range weights {
		weights[i] = 1
	}
	seen, hits := spread()-1e-9, 0 // spreads that differ only by rounding count as equal
	// Clusters are closer to the mean that they are part of than to the true one.
	for i, s := range sums {
		sums[i].difference /= math.Sqrt(1 - own[s.cluster]/float64(len(x.cells)))
	}
	const draws = 399
	r := rand.New(rand.NewPCG(2008, 90))
	for range draws {
		for i := range weights {
			weights[i] = webb[r.IntN(len(webb))]
		}
		if spread() >= seen {
			hits++
		}
	}
	return float64(hits+1) / (draws + 1)
}
