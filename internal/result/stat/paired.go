package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A Pair holds the trials of one task on two sides: A of NA trials
// succeeded on side A, and B of NB on side B. There is one Pair per task.
type Pair struct {
	A, NA int
	B, NB int
}

// difference returns the rate of side A minus the rate of side B.
func (p Pair) difference() float64 {
	return float64(p.A)/float64(p.NA) - float64(p.B)/float64(p.NB)
}

// A Comparison describes how much two sides differ and whether chance can
// explain it. Rates are shares of 1, and differences are A minus B.
type Comparison struct {
	Tasks int `json:"tasks"` // tasks tried on both sides
	Pairs int `json:"pairs"` // trials of one side with a partner on the other

	RateA          float64  `json:"rate_a"`
	RateB          float64  `json:"rate_b"`
	Difference     float64  `json:"difference"`
	Interval       Interval `json:"interval"` // of Difference, 95 %
	IntervalMethod string   `json:"interval_method"`

	// P is the two-sided p-value for no difference. Method names the test, or
	// both tests if P is the larger of two.
	P      float64 `json:"p"`
	Method string  `json:"method"`

	// OnlyA and OnlyB count the tasks on which that side did better. With one
	// trial per side, these are the discordant pairs.
	OnlyA int `json:"only_a"`
	OnlyB int `json:"only_b"`

	// CohenH is the effect size of two rates: 0.2 is small, 0.5 medium, 0.8
	// large. OddsRatio is OnlyA/OnlyB with half a task added to both, so it is
	// finite, and swapping the sides inverts it.
	CohenH    float64 `json:"cohen_h"`
	OddsRatio float64 `json:"odds_ratio"`

	// Detectable is the smallest difference that data with the observed scatter
	// would have shown in 80 of 100 runs; see [Compare]. It is not the power at
	// the observed difference, which would add nothing to P.
	Detectable float64 `json:"detectable"`
}

// Compare compares two sides over the tasks that both tried. Each task has the
// same weight, whatever its number of trials: the result should hold for tasks
// in general, and a task should not count double because the harness lost a
// trial of another.
//
// # P
//
// P is the p-value of the sign-flip test. If both sides had the same chances on
// each task, each task's difference could equally well have the opposite sign
// (Fisher, The Design of Experiments, 1935, section 21). The distribution over
// all 2^tasks signs is computed exactly (Pagano and Tritchler, "On obtaining
// permutation distributions in polynomial time", JASA 78, 1983), so with one
// trial per side this is McNemar's exact test. If the numbers of trials are so
// different that this would take too long, Compare draws 9,999 signs from a
// fixed seed and P is (b+1)/(m+1) (Phipson and Smyth, "Permutation p-values
// should never be zero", 2010).
//
// If a task has unequal numbers of trials on the two sides, its difference is
// skewed: one trial fails completely, ten fail by a tenth. Its signs are not
// exchangeable, and the sign flip alone may call a quarter of equal sides
// different. P is then the larger of two p-values: that of the sign flip and
// that of the permutation within tasks, which reassigns each task's trials to
// the sides at random. The permutation is also computed exactly or sampled, and
// Method names both tests. P keeps its level if one of the two does, and the
// permutation does if the trials of a task are independent. In simulations (20
// to 200 tasks, 1 to 9 against 2 to 10 trials, rates of 50 to 97 %, tasks alike
// or of beta-distributed difficulty), at most 4 % of equal sides have a P of
// 0.05 or less.
//
// A limit remains for unequal numbers of repeats over cells that share the luck
// of a repeat, because their trials are not exchangeable one by one. With two
// cells, up to 5.5 % of equal sides have a P of 0.05 or less if cells share
// half their luck, and up to 8 % if they share all. With 1 repeat against 4 or
// 10 and rates of 90 to 97 %, it is up to 15 % with four cells that share all
// luck, and up to 25 % with 18 cells that share half or more. At rates around
// one half, and with 2 repeats against 3, it is at most 7 % in all these cases.
// Equal numbers have no such limit.
//
// # Interval
//
// With one trial per side, Interval is the hybrid score interval with the
// continuity-corrected correlation (Newcombe, "Improved confidence intervals
// for the difference between binomial proportions based on paired data",
// Statistics in Medicine 17, 1998, method 10). With repeats, the same formula
// combines the score intervals of each side's clustered trials, as in
// [Clustered], with the correlation of the tasks' rates. Combining two good
// intervals by squaring and adding is known as the method of variance estimates
// recovery (Donner and Zou, "Closed-form confidence intervals for functions of
// the normal mean and standard deviation", Statistical Methods in Medical
// Research 21, 2012).
//
// In simulations (20 to 200 tasks, 1 to 8 trials, rates of 5 to 95 %, several
// kinds of similarity between the sides), coverage averaged over rates is at
// least 94 %, and no single case is below 92 %. It errs on the side of caution:
// coverage exceeds 95 % by up to four points with 20 tasks, two and a half with
// 50, and one and a half with 100 or more.
//
// Resampling tasks does worse on the same data, because it cannot draw what few
// tasks did not show. With 20 tasks it covers 91 to 94 % (percentile), 89 to 93
// % (BCa) and 90 to 94 % (studentised) on average, and as little as 73 %, so
// Compare does not use [Bootstrap]. Student's t over the tasks' differences is
// right on average, but falls to 76 % if the sides differ on few tasks only.
//
// Interval and P use different methods and may disagree on whether 0 is
// plausible. Decide by P.
//
// # Detectable
//
// Detectable is computed as in the function [Detectable] from the observed
// rates, the tasks' variance on each side and the correlation of the sides. In
// simulations (10 to 100 tasks, 1 to 10 repeats, correlations as described
// there, with and without a true difference), new data with a difference of
// Detectable show it in 78 to 92 % of runs at rates around one half, and in 74
// to 94 % around 80 %. If only few trials of few tasks ended differently from
// the rest, their scatter is hardly known: at 95 % with 10 to 25 tasks the
// share is 67 to 97 %.
//
// These figures are for equal numbers of trials. With unequal numbers (3
// against 10, 9 against 10, 1 against 4 and 10, 7 against 70), it is still 78
// to 92 % around one half. At other rates it depends on the direction, because
// most of the scatter comes from the side with fewer trials, at that side's
// rate. Around 80 % it is 69 to 94 % with 25 or more tasks. With 10 tasks and 1
// trial against 10, it is 92 to 99 % if the side with 1 trial does better, and
// 40 to 72 % if it does worse. Around 95 % it is anything from 25 to 100 %, so
// Detectable is only a hint.
func Compare(pairs []Pair) Comparison {
	pairs = both(pairs)
	c := Comparison{
		Tasks: len(pairs), Interval: Interval{-1, 1}, P: 1, OddsRatio: 1, Detectable: 1,
		Method: "exact McNemar", IntervalMethod: "Newcombe paired",
	}
	if c.Tasks == 0 {
		return c
	}
	m, single, equal := float64(c.Tasks), true, true
	sideA, sideB := make([]Group, c.Tasks), make([]Group, c.Tasks)
	var step float64
	for i, p := range pairs {
		sideA[i], sideB[i] = Group{p.A, p.NA}, Group{p.B, p.NB}
		c.Pairs += min(p.NA, p.NB)
		single = single && p.NA == 1 && p.NB == 1
		equal = equal && p.NA == p.NB
		step += (1/float64(p.NA) + 1/float64(p.NB)) / 2 / m
		// Compare in whole numbers, because 1/3 and 2/6 are the same rate.
		switch d := p.A*p.NB - p.B*p.NA; {
		case d > 0:
			c.OnlyA++
		case d < 0:
			c.OnlyB++
		}
	}
	rateA, intervalA := even(sideA)
	rateB, intervalB := even(sideB)
	c.RateA, c.RateB, c.Difference = rateA, rateB, rateA-rateB
	seen := covariances(sideA, sideB, rateA, rateB)
	c.Interval = hybrid(rateA, rateB, seen.correlation(step), intervalA, intervalB)
	c.CohenH = cohenH(rateA, rateB)
	c.OddsRatio = (float64(c.OnlyA) + .5) / (float64(c.OnlyB) + .5)
	c.Detectable = seen.design(sideA, sideB, rateA, rateB, step).detectable()
	if single {
		c.P = mcnemar(c.OnlyA, c.OnlyB)
		return c
	}
	c.IntervalMethod = "Newcombe paired, clustered"
	p, exact := signFlip(pairs)
	c.P, c.Method = p, howComputed(exact)+" sign flip by task"
	if !equal {
		p, exact := permutation(pairs)
		c.P = max(c.P, p)
		c.Method += " and " + howComputed(exact) + " permutation within tasks"
	}
	return c
}

// howComputed describes how a p-value was obtained.
func howComputed(exact bool) string {
	if exact {
		return "exact"
	}
	return "sampled"
}

// A covariance holds the sums of squares and products of the tasks' rates on
// two sides, relative to their means.
type covariance struct{ aa, bb, ab float64 }

func covariances(a, b []Group, meanA, meanB float64) (c covariance) {
	for i := range a {
		x, y := a[i].rate()-meanA, b[i].rate()-meanB
		c.aa += x * x
		c.bb += y * y
		c.ab += x * y
	}
	return c
}

// correlation returns the correlation of the tasks' rates on the two sides. A
// positive one is reduced as in Newcombe's method 10: the correction of n/2 in
// counts corresponds to half a step of one task's rate.
func (c covariance) correlation(step float64) float64 {
	if c.aa*c.bb < 1e-20 { // a side without variance, except for rounding
		return 0
	}
	if c.ab > 0 {
		c.ab = max(0, c.ab-step/2)
	}
	return c.ab / math.Sqrt(c.aa*c.bb)
}

// design derives from the data how small a difference they can show. It shrinks
// the variance of a task's rate towards that of one trial, with the weight of
// half a task against the tasks that showed the rarer outcome, as in the
// function correlation.
func (c covariance) design(a, b []Group, rateA, rateB, step float64) design {
	m := float64(len(a))
	d := design{tasks: m, step: step, rate: (rateA + rateB) / 2, own: 1}
	varianceA, varianceB := rateA*(1-rateA), rateB*(1-rateB)
	if varianceA+varianceB > 1e-12 { // zero except for rounding
		rare := rarer(a) + rarer(b)
		d.own = (rare*(c.aa+c.bb)/(varianceA+varianceB)/max(1, m-1) + .5) / (rare + .5)
	}
	if unit := math.Sqrt(varianceA * varianceB); unit > 1e-12 {
		// The sides would be more alike without the observed difference.
		common := c.ab / max(1, m-1)
		extra := effectVariance(min(1, common/unit), math.Abs(rateA-rateB))
		d.between = min(1, (common+extra/2)/unit)
	}
	return d
}

// both returns the tasks that were tried on both sides.
func both(pairs []Pair) []Pair {
	var out []Pair
	for _, p := range pairs {
		if p.NA > 0 && p.NB > 0 {
			out = append(out, p)
		}
	}
	return out
}

// mcnemar returns the exact two-sided p-value of b against c discordant pairs:
// the probability of a split at least as uneven if both directions are equally
// likely (McNemar, Psychometrika 12, 1947, as a binomial test). Its rate of
// false positives never exceeds the level and is often far below it.
func mcnemar(b, c int) float64 {
	if b == c {
		return 1
	}
	var tail float64
	for k := range min(b, c) + 1 {
		tail += math.Exp(logChoose(b+c, k) - float64(b+c)*math.Ln2)
	}
	return min(1, 2*tail)
}

// logChoose returns ln C(n,k) for 0 <= k <= n.
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// hybrid combines the intervals of two rates into an interval for their
// difference. It squares and adds the distances from the rates to their limits,
// given the correlation of the two estimates: Newcombe's methods 10 for
// independent proportions (correlation 0) and for paired ones.
func hybrid(a, b, correlation float64, ia, ib Interval) Interval {
	add := func(x, y float64) float64 {
		return math.Sqrt(max(0, x*x+y*y-2*correlation*x*y))
	}
	d := a - b
	return Interval{
		max(-1, d-add(a-ia.Low, ib.High-b)),
		min(1, d+add(ia.High-a, b-ib.Low)),
	}
}

// cohenH returns the difference of two rates after a transformation that makes
// equal steps equally hard to detect: 0.2 is small, 0.5 medium, 0.8 large
// (Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter
// 6). It is in [-π,π].
func cohenH(a, b float64) float64 {
	return 2 * (math.Asin(math.Sqrt(a)) - math.Asin(math.Sqrt(b)))
}

// signFlip returns the two-sided p-value of the tasks' differences under random
// signs, and whether it is exact.
func signFlip(pairs []Pair) (p float64, exact bool) {
	if steps, ok := whole(pairs); ok {
		return convolve(steps), true
	}
	return sampleSigns(pairs), false
}

// maxCost bounds the cost of an exact distribution in additions; it takes about
// 20 ms.
const maxCost = 2e7

// whole returns the tasks' nonzero differences as multiples of their largest
// common unit. It returns false if the exact distribution would take too long.
func whole(pairs []Pair) ([]int, bool) {
	common, ok := multiple(pairs)
	if !ok {
		return nil, false
	}
	var steps []int
	unit, total := 0, 0
	for _, p := range pairs {
		if d := p.A*(common/p.NA) - p.B*(common/p.NB); d != 0 {
			steps = append(steps, d)
			unit = gcd(unit, max(d, -d))
		}
	}
	for i := range steps {
		steps[i] /= unit
		total += max(steps[i], -steps[i])
	}
	return steps, float64(total)*float64(len(steps)) <= maxCost
}

// multiple returns the least common multiple of all numbers of trials. It
// returns false if that is too large to compute with.
func multiple(pairs []Pair) (common int, ok bool) {
	common = 1
	for _, p := range pairs {
		for _, n := range [2]int{p.NA, p.NB} {
			common *= n / gcd(common, n)
			if common > maxCost {
				return 0, false
			}
		}
	}
	return common, true
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// convolve returns the share of sign choices whose sum is at least as far from
// 0 as the observed sum.
func convolve(steps []int) float64 {
	seen, total := 0, 0
	for _, s := range steps {
		seen += s
		total += max(s, -s)
	}
	seen = max(seen, -seen)
	share := make([]float64, total+1) // indexed by the sum of the positive steps
	share[0] = 1
	top := 0
	for _, s := range steps {
		s = max(s, -s)
		top += s
		for w := top; w >= s; w-- {
			share[w] = (share[w] + share[w-s]) / 2
		}
		for w := range s {
			share[w] /= 2
		}
	}
	var p float64
	for w, v := range share {
		if sum := 2*w - total; max(sum, -sum) >= seen {
			p += v
		}
	}
	return min(1, p)
}

// Bootstrap returns the 95 % percentile interval of the difference in
// [Compare], from 9,999 resamples of tasks with a fixed seed (Efron, "Bootstrap
// methods: another look at the jackknife", Annals of Statistics 7, 1979). It
// resamples tasks, not trials (Davison and Hinkley, Bootstrap Methods and their
// Application, 1997, section 3.8). Without tasks it returns [-1,1].
//
// Many papers report this interval. It is too narrow, because resampling cannot
// draw what few tasks did not show. Use the interval of [Compare] instead.
func Bootstrap(pairs []Pair) Interval {
	pairs = both(pairs)
	if len(pairs) == 0 {
		return Interval{-1, 1}
	}
	differences := make([]float64, len(pairs))
	for i, p := range pairs {
		differences[i] = p.difference()
	}
	const draws = 9_999
	r := rand.New(rand.NewPCG(1979, 7))
	means := make([]float64, draws)
	for i := range means {
		var sum float64
		for range differences {
			sum += differences[r.IntN(len(differences))]
		}
		means[i] = sum / float64(len(differences))
	}
	slices.Sort(means)
	return Interval{Quantile(means, .025), Quantile(means, .975)}
}

// sampleSigns estimates the result of convolve from randomly drawn signs. The
// seed is fixed, so the same data give the same p-value.
func sampleSigns(pairs []Pair) float64 {
	differences := make([]float64, 0, len(pairs))
	var seen float64
	for _, p := range pairs {
		d := p.difference()
		seen += d
		differences = append(differences, math.Abs(d))
	}
	// Sums that differ only by rounding count as equal.
	seen = math.Abs(seen) - 1e-9
	const draws = 9_999
	r := rand.New(rand.NewPCG(1935, 21))
	hits := 0
	for range draws {
		var sum float64
		var bits uint64
		for i, d := range differences {
			if i%64 == 0 {
				bits = r.Uint64()
			}
			// The random bit becomes the sign bit. A branch would be
			// mispredicted half of the time.
			sum += math.Float64frombits(math.Float64bits(d) | bits<<63)
			bits >>= 1
		}
		if math.Abs(sum) >= seen {
			hits++
		}
	}
	return float64(hits+1) / (draws + 1)
}
