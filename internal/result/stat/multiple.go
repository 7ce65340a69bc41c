package stat

import (
	"cmp"
	"math"
	"slices"
)

// BenjaminiHochberg returns the adjusted p-values (q-values) of a family of
// tests. If you report every test with q <= 0.05, you can expect at most 5 % of
// the reported ones to be false (Benjamini and Hochberg, "Controlling the false
// discovery rate", JRSS B 57, 1995, as adjusted values). This holds for
// independent and for positively dependent tests. A NaN marks a test that was
// not done; it stays NaN and does not count towards the family.
func BenjaminiHochberg(p []float64) []float64 {
	q := slices.Clone(p)
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	least := 1.
	for rank := len(order); rank > 0; rank-- {
		i := order[rank-1]
		least = min(least, p[i]*float64(len(order))/float64(rank))
		q[i] = max(p[i], least) // they differ only by rounding
	}
	return q
}
