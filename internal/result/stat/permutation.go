package stat

import (
	"math"
	"math/rand/v2"
)

// permutation is the two-sided p-value of the tasks' differences if, within each
// task, any of its trials could as well have been of the other side, and whether
// it was computed exactly. Of K fulfilled trials of a task A has a hypergeometric
// number then, and the mean of the difference is 0 whatever the numbers of trials
// (Pitman, "Significance tests which may be applied to samples from any
// populations", Supplement to the Journal of the Royal Statistical Society 4, 1937;
// by task as in the conditional tests of several 2×2 tables).
func permutation(pairs []Pair) (p float64, exact bool) {
	if g, ok := gridOf(pairs); ok {
		return g.permute(pairs), true
	}
	return redeal(pairs), false
}

// low and high are how many of the task's fulfilled trials A has at least and at
// most.
func (p Pair) low() int  { return max(0, p.A+p.B-p.NB) }
func (p Pair) high() int { return min(p.NA, p.A+p.B) }

// deals appends the chances of A to have low, low+1, ... high of them.
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

// A grid holds the sums of differences that permutations can make, in parts of
// common: low and every unit above it, size times.
type grid struct {
	common int // a multiple of all numbers of trials
	unit   int // a divisor of all steps; 0 where no task has any choice
	low    int
	size   int
	seen   int // the sum of the data
}

// step is by how much the difference grows with each trial that A has fulfilled
// in place of B.
func (g grid) step(p Pair) int { return g.common/p.NA + g.common/p.NB }

// at is the task's difference if A has fulfilled a.
func (g grid) at(p Pair, a int) int { return a*g.step(p) - (p.A+p.B)*(g.common/p.NB) }

// gridOf also says whether the exact distribution on the grid is cheap.
func gridOf(pairs []Pair) (g grid, ok bool) {
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
	return g, cost <= affordable
}

// permute is the share of permutations whose sum is at least as far from 0 as the
// seen one.
func (g grid) permute(pairs []Pair) float64 {
	share := make([]float64, g.size+1) // by units above the least sum
	share[0] = 1
	top := 0
	chances := make([]float64, 0, 64)
	for _, p := range pairs {
		if p.high() == p.low() {
			continue
		}
		chances = p.deals(chances[:0])
		step := g.step(p) / g.unit
		for w := top; w >= 0; w-- { // downwards, as what is above has been dealt
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

// redeal estimates what permute computes from drawn permutations. The seed is
// fixed, and the better side is taken for A: the same data give the same p-value,
// whichever side is named first.
func redeal(pairs []Pair) float64 {
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
	// Sums that are equal but for the order of rounding count as equal.
	seen = math.Abs(seen) - 1e-9
	hits := 0
	for _, sum := range sums {
		if math.Abs(sum) >= seen {
			hits++
		}
	}
	return float64(hits+1) / (draws + 1)
}

// dice draw an index by given chances in a step or two: a table says where to
// begin the search in the cumulated chances (Chen and Asau, "On generating random
// variates from an empirical distribution", AIIE Transactions 6, 1974).
type dice struct {
	cumulated []float64 // the last is 1
	begin     [256]int32
}

// load uses up the chances.
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

// roll takes 64 random bits.
func (d *dice) roll(bits uint64) int {
	at := d.begin[bits>>56]
	for u := float64(bits>>11) / (1 << 53); d.cumulated[at] <= u; {
		at++
	}
	return int(at)
}
