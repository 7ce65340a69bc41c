package stat

import (
	"maps"
	"math"
	"slices"
)

// A Size describes data that are still to be collected: clusters of the given numbers of tasks, and
// the repeats of each task on each side. Rate is the expected rate of side A, above 0, and Within
// the correlation of two repeats of a task. Apart is the variance of the tasks' true differences
// between sides that are equal as a whole. It is 0 if both find the same tasks hard, as two
// versions of one model do.
//
// A side that is worse loses the same share of its successes on each task. If it loses all of them
// on a few tasks instead, differences scatter more, and the shares of verdicts are lower.
//
// In simulations (40 to 250 tasks, rates of .5 and .9, drops that 50, 80 and 95 % of runs find),
// the shares of verdicts are within three points of those that Size predicts.
type Size struct {
	Clusters []int
	Repeats  int
	Rate     float64
	Within   float64
	Apart    float64

	fixed float64 // Within for [Size.Fixed]
}

// Passes returns the share of runs in which a side that is equal passes with a margin.
func (s Size) Passes(margin float64) float64 {
	x, ok := s.design()
	if !ok {
		return 0
	}
	t, z := x.critical(PassLevel)
	sd := s.deviation(x, 0)
	return normalCDF((margin - z*sd) / (x.spread(t) * sd))
}

// Fails returns the share of runs in which a side that is worse by a drop, the margin, fails. One
// in twenty passes.
func (s Size) Fails(drop float64) float64 {
	x, ok := s.design()
	if !ok {
		return 0
	}
	t, z := x.critical(FailLevel)
	least := smallest(func(d float64) bool { return d >= z*s.deviation(x, d) })
	found := normalCDF((drop - least) / (x.spread(t) * s.deviation(x, drop)))
	return min(found, 1-PassLevel)
}

// deviation returns the standard deviation of a cluster's difference if side B is worse by a drop.
// With the rate R of side A, a task's own rate p, and the lost share f = drop/R, it is the root of
//
//	E[p(1-f)(1-p(1-f)) + p(1-p)]/r + f²·Var(p) + Apart
//
// where r counts the trials of a cluster on a side, and Var(p) is Within·R(1-R).
func (s Size) deviation(x design, drop float64) float64 {
	f := min(1, drop/s.Rate)
	between := s.Within * s.Rate * (1 - s.Rate)
	square := s.Rate*s.Rate + between
	own := s.Rate*(2-f) - square*(1+(1-f)*(1-f))
	// If no task differs, [Compare] adds a difference of unknown size, which counts as a whole one.
	unknown := math.Exp(-own*x.clusters/x.step) / x.clusters
	return math.Sqrt(max(own*x.step+f*f*between+s.Apart, unknown))
}

func (s Size) design() (x design, ok bool) {
	x = designOf(s.Clusters, s.Repeats, s.Within, s.Within)
	return x, x.tasks > 0 && s.Repeats > 0 && s.Rate > 0 && x.df > minFreedom
}

// SizeOf describes data of the size and scatter of these. The rate and the correlation of repeats
// come from side A.
func SizeOf(tasks []Matched, bySequence bool) (s Size) {
	clusters := make(map[int]int)
	var a successes
	var pairs int
	var differences []float64
	for i, t := range tasks {
		cells := both(t.Cells)
		if len(cells) == 0 {
			continue
		}
		if bySequence {
			i = t.Sequence
		}
		clusters[i]++
		d := 0.
		for _, c := range cells {
			pairs += min(c.NA, c.NB)
			a.add(c.A, c.NA)
			d += c.difference() / float64(len(cells))
		}
		differences = append(differences, d)
	}
	for _, k := range slices.Sorted(maps.Keys(clusters)) {
		s.Clusters = append(s.Clusters, clusters[k])
	}
	s.Repeats = max(1, int(math.Round(float64(pairs)/float64(max(1, len(differences))))))
	s.Rate = a.rate()
	s.describe(&a, variance(differences))
	return s
}

// describe estimates the correlation of repeats, and how far sides are apart, from the successes of
// side A and the variance of the tasks' differences. Without repeats, differences are taken for
// chance. If they vary less than the repeats of side A make them, as they do if the sides share
// their luck, they count; for a fixed number of tasks, only if they vary less than half as much.
func (s *Size) describe(b *successes, variance float64) {
	single := 2 * s.Rate * (1 - s.Rate) / float64(s.Repeats) // if trials are independent
	s.Within = b.within()
	s.fixed = s.Within
	chance := (1 - s.Within) * single
	if variance > 0 && (b.repeated == 0 || variance < chance) {
		s.Within = max(0, 1-variance/single)
	}
	if b.repeated == 0 || 2*variance < chance {
		s.fixed = s.Within
	}
	s.Apart = max(0, variance-(1-s.Within)*single)
}

func variance(x []float64) float64 {
	var sum, squares float64
	n := float64(len(x))
	for _, v := range x {
		sum += v
	}
	for _, v := range x {
		squares += (v - sum/n) * (v - sum/n)
	}
	return squares / max(1, n-1)
}

// successes adds up the successes of tasks.
type successes struct {
	cells, repeated    int
	rates, differences float64
}

// add adds k successes of n trials at a task under one condition.
func (b *successes) add(k, n int) {
	b.cells++
	b.rates += float64(k) / float64(n)
	if n > 1 {
		b.repeated++
		b.differences += float64(k) * float64(n-k) / (float64(n) * float64(n-1))
	}
}

func (b *successes) rate() float64 { return b.rates / float64(max(1, b.cells)) }

// unknownWithin is the correlation of two repeats of a task if there are no repeats.
const unknownWithin = .5

// within returns the correlation of two repeats of a task: the share of the variance of outcomes
// that is not within tasks. Two repeats of a task with the rate p differ with probability 2p(1-p).
func (b *successes) within() float64 {
	all := b.rate() * (1 - b.rate())
	if b.repeated == 0 || all == 0 {
		return unknownWithin
	}
	return min(1, max(0, 1-b.differences/float64(b.repeated)/all))
}

// A FixedSize describes data about a fixed number of tasks that are still to be collected: the
// repeats of each task on each side, the rate of side A, above 0, and the correlation of two
// repeats of a task, which measures how far the tasks' own rates are apart. A side that is worse
// loses the same share of its successes on each task.
//
// TestFixedSize compares the shares of verdicts with simulated ones.
type FixedSize struct {
	Tasks, Repeats int
	Rate, Within   float64
}

// Passes returns the share of runs in which a side that is equal passes with a margin.
func (s FixedSize) Passes(margin float64) float64 {
	own, trials := 2*s.spread(1, 1), float64(2*s.Repeats)
	// The score test allows for the margin also in a task whose trials all end alike.
	alike := math.Pow(s.Rate, trials) + math.Pow(1-s.Rate, trials)
	alike = s.Within + (1-s.Within)*alike
	assumed := own + alike*margin*(1-margin)*trials/(trials-1)
	z := normalQuantile(1 - PassLevel)
	return shareAbove(z*s.deviation(assumed), margin, s.deviation(own))
}

// Fails returns the share of runs in which a side that is worse by a drop, the margin, fails. One
// in twenty passes.
func (s FixedSize) Fails(drop float64) float64 {
	z := normalQuantile(1 - FailLevel)
	step := 1 / float64(s.Tasks*s.Repeats) // half of the value of a success
	least := smallest(func(drop float64) bool {
		return drop >= step+z*s.deviation(s.permuted(s.left(drop)))
	})
	left := s.left(drop)
	found := shareAbove(least, drop, s.deviation(s.spread(left, left)+s.spread(1, 1)))
	return min(found, 1-PassLevel)
}

// permuted returns the variance of a trial on both sides together, if the successes of a task fall
// on the sides by chance: the mean variance of a hypergeometric number.
func (s FixedSize) permuted(left float64) float64 {
	r := float64(s.Repeats)
	own, across := s.spread(left, left)+s.spread(1, 1), s.spread(left, 1)+s.spread(1, left)
	return ((r-1)*own + r*across) / (2*r - 1)
}

// left returns the share of its successes that a side keeps.
func (s FixedSize) left(drop float64) float64 { return 1 - min(1, drop/s.Rate) }

// spread returns the mean of ap(1-bp) over the tasks' rates p.
func (s FixedSize) spread(a, b float64) float64 {
	square := s.Rate*s.Rate + s.Within*s.Rate*(1-s.Rate)
	return a*s.Rate - a*b*square
}

// deviation returns the standard deviation of the difference of rates, given the variance of a
// trial on both sides together.
func (s FixedSize) deviation(variance float64) float64 {
	return math.Sqrt(max(0, variance) / float64(s.Tasks*s.Repeats))
}

// shareAbove returns the share of normal values that are above a bound.
func shareAbove(bound, mean, deviation float64) float64 {
	return normalCDF((mean - bound) / max(deviation, 1e-9))
}

// Fixed describes the same size of data about a fixed number of tasks. The size is from [SizeOf].
func (s Size) Fixed() FixedSize {
	tasks := 0
	for _, n := range s.Clusters {
		tasks += n
	}
	return FixedSize{Tasks: tasks, Repeats: s.Repeats, Rate: s.Rate, Within: s.fixed}
}
