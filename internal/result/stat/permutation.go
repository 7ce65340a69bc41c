package stat

import (
	"math"
	"math/rand/v2"
)

// permutation returns the two-sided p-value of the tasks' differences if the
// trials of each task could equally well belong to the other side, and whether
// it is exact. Given K fulfilled trials of a task, the number on side A is then
// hypergeometric, and the mean difference is 0 whatever the numbers of trials
// (Pitman, "Significance tests which may be applied to samples from any
// populations", Supplement to the Journal of the Royal Statistical Society 4,
// 1937; applied per task as in conditional tests of several 2×2 tables).
func permutation(pairs []Pair) (p float64, exact bool) {
	if g, ok := newGrid(pairs); ok {
		return g.permute(pairs), true
	}
	return samplePermutations(pairs), false
}

// low and high return the minimum and maximum number of the task's fulfilled
// trials that side A can have.
func (p Pair) low() int  { return max(0, p.A+p.B-p.NB) }
func (p Pair) high() int { return min(p.NA, p.A+p.B) }

// deals appends the probabilities that side A has low, low+1, ... high of the
// fulfilled trials.
func (p Pair) deals(into []float64) []float64 {
	n, full := p.NA+p.NB, p.A+p.B
	var sum float64
	first := len(into)
	for a := p.low(); a <= p.high(); a++ {
		v := math.Exp(logChoose(p.NA, a) + logChoose(p.NB, full-a) - logChoose(n, full))
		into = append(into, v)
		sum += v
	}
	for i := first; i < len(into); i++ {
		into[i] /= sum
	}
	return into
}

// A grid describes the possible sums of differences under permutation, in
// multiples of 1/common: low, low+unit, ... in size steps.
type grid struct {
	common int // a multiple of all numbers of trials
	unit   int // a divisor of all steps, or 0 if no task can be permuted
	low    int
	size   int
	seen   int // the observed sum
}

// step returns the change of the difference if side A has one more fulfilled
// trial and side B one less.
func (g grid) step(p Pair) int { return g.common/p.NA + g.common/p.NB }

// at returns the task's difference if side A has a fulfilled trials.
func (g grid) at(p Pair, a int) int {
	return a*g.step(p) - (p.A+p.B)*(g.common/p.NB)
}

// newGrid returns the grid of the pairs. It returns false if the exact
// distribution would take too long.
func newGrid(pairs []Pair) (g grid, ok bool) {
	if g.common, ok = multiple(pairs); !ok {
		return g, false
	}
	for _, p := range pairs {
		if p.high() > p.low() {
			g.unit = gcd(g.unit, g.step(p))
		}
		g.low += g.at(p, p.low())
		g.seen += g.at(p, p.A)
	}
	var cost float64
	for _, p := range pairs {
		if spread := p.high() - p.low(); spread > 0 {
			g.size += spread * (g.step(p) / g.unit)
			cost += float64(g.size) * float64(spread+1)
		}
	}
	return g, cost <= maxCost
}

// permute returns the share of permutations whose sum is at least as far from 0
// as the observed one.
func (g grid) permute(pairs []Pair) float64 {
	share := make([]float64, g.size+1) // by units above the smallest sum
	share[0] = 1
	top := 0
	chances := make([]float64, 0, 64)
	for _, p := range pairs {
		if p.high() == p.low() {
			continue
		}
		chances = p.deals(chances[:0])
		step := g.step(p) / g.unit
		for w := top; w >= 0; w-- { // downwards, because higher cells are already done
			v := share[w]
			share[w] = v * chances[0]
			for i, c := range chances[1:] {
				share[w+(i+1)*step] += v * c
			}
		}
		top += (len(chances) - 1) * step
	}
	seen := max(g.seen, -g.seen)
	var p float64
	for w, v := range share {
		if sum := g.low + w*g.unit; max(sum, -sum) >= seen {
			p += v
		}
	}
	return min(1, p)
}

// samplePermutations estimates the result of permute from random permutations.
// The seed is fixed and the better side is always treated as A, so the same
// data give the same p-value, whichever side comes first.
func samplePermutations(pairs []Pair) float64 {
	const draws = 9_999
	sums := make([]float64, draws)
	r := rand.NewPCG(1937, 4)
	var seen float64
	for _, p := range pairs {
		seen += p.difference()
	}
	chances := make([]float64, 0, 64)
	var d dice
	for _, p := range pairs {
		if seen < 0 {
			p = Pair{A: p.B, NA: p.NB, B: p.A, NB: p.NA}
		}
		if p.high() == p.low() {
			continue
		}
		chances = p.deals(chances[:0])
		step := 1/float64(p.NA) + 1/float64(p.NB)
		low := float64(p.low())*step - float64(p.A+p.B)/float64(p.NB)
		d.load(chances)
		for i := range sums {
			sums[i] += low + step*float64(d.roll(r.Uint64()))
		}
	}
	// Sums that differ only by rounding count as equal.
	seen = math.Abs(seen) - 1e-9
	hits := 0
	for _, sum := range sums {
		if math.Abs(sum) >= seen {
			hits++
		}
	}
	return float64(hits+1) / (draws + 1)
}

// dice draw an index with given probabilities in one or two steps. A table
// gives the position at which to start searching the cumulated probabilities
// (Chen and Asau, "On generating random variates from an empirical
// distribution", AIIE Transactions 6, 1974).
type dice struct {
	cumulated []float64 // the last is 1
	begin     [256]int32
}

// load sets the probabilities. It overwrites the slice.
func (d *dice) load(chances []float64) {
	for i := 1; i < len(chances); i++ {
		chances[i] += chances[i-1]
	}
	chances[len(chances)-1] = 1
	d.cumulated = chances
	var at int32
	for i := range d.begin {
		for chances[at] <= float64(i)/float64(len(d.begin)) {
			at++
		}
		d.begin[i] = at
	}
}

// roll draws an index from 64 random bits.
func (d *dice) roll(bits uint64) int {
	at := d.begin[bits>>56]
	for u := float64(bits>>11) / (1 << 53); d.cumulated[at] <= u; {
		at++
	}
	return int(at)
}
