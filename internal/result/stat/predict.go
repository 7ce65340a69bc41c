package stat

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// A Design describes data of a gate that are still to be collected: clusters of the given numbers of
// tasks, and the repeats of each task under each condition on each side. Within is the correlation
// of two repeats, and Luck the chance that the trials of a pair end alike because they met the same
// luck.
type Design struct {
	Clusters   []int
	Conditions int
	Repeats    int
	Rate       float64
	Within     float64
	Luck       float64
	// Unrepeated is true if Within is unknown because no task was repeated.
	Unrepeated bool
	SameLuck   bool
	// Lowest and Loosest are a lower rate and a lower correlation that the data leave possible. Equal
	// sides with these pass less often.
	Lowest, Loosest float64
}

// Tasks returns the number of tasks.
func (d Design) Tasks() (n int) {
	for _, k := range d.Clusters {
		n += k
	}
	return n
}

// DesignOf describes more data like the ones of a baseline. The numbers of repeats and conditions
// are means. Luck is 0, as it is for sides with different luck.
func DesignOf(tasks []Task, bySequence bool) (d Design) {
	cluster := clusterOf(&d.Clusters, bySequence)
	var cells []Group
	for _, t := range tasks {
		*cluster(t.Sequence)++
		cells = append(cells, observed(t.Cells)...)
	}
	trials, full := 0, 0
	d.Unrepeated = true
	for _, c := range cells {
		trials, full = trials+c.N, full+c.Full
		d.Unrepeated = d.Unrepeated && c.N == 1
	}
	mean := func(a, b int) int { return max(1, int(math.Round(float64(a)/float64(max(1, b))))) }
	d.Conditions, d.Repeats = mean(len(cells), len(tasks)), mean(trials, len(cells))
	d.Rate = (float64(full) + .5) / float64(trials+1)
	rare, correlation := float64(min(full, trials-full)), 0.
	if d.Unrepeated {
		rare = 0
	} else {
		correlation = anova(cells)
	}
	d.Within = (rare*correlation + unknownWithin) / (rare + 1)
	d.Loosest = rare * correlation / (rare + 1)
	if d.Unrepeated {
		d.Within, d.Loosest = .8, .2
	}
	effect := 1 + float64(d.Repeats-1)*d.Within
	error := math.Sqrt(d.Rate * (1 - d.Rate) * effect / float64(trials+1))
	d.Lowest = max(min(d.Rate, .5), d.Rate-cautious*error)
	return d
}

// cautious is how many standard errors [Design.Lowest] is below the rate: so that it is higher than
// the true rate in one of ten cases.
const cautious = 1.28

// unknownWithin is the correlation of two repeats of a task if there are no repeats.
const unknownWithin = .5

// anova returns the correlation of the trials of a group, by the analysis of variance.
func anova(groups []Group) float64 {
	between, within, size := meanSquares(groups)
	all := between + (size-1)*within
	if all <= 0 {
		return unknownWithin
	}
	return min(1, max(0, (between-within)/all))
}

// WithLuckOf returns the design with the luck that the pairs of data share. Pairs that share luck end
// differently less often than trials that are not a pair.
func (d Design) WithLuckOf(data GateData) Design {
	d.SameLuck = data.SameLuck
	if d.Unrepeated {
		return d.withPairsOf(data)
	}
	if !data.SameLuck {
		return d
	}
	var differ, expected float64
	for _, t := range data.Tasks {
		for _, c := range t.Cells {
			n := float64(len(c.Losses))
			own := 0.
			for _, l := range c.Losses {
				own += math.Abs(l)
			}
			if n > 1 {
				a, b := float64(c.A), float64(c.B)
				differ += own
				expected += (a*(n-b) + b*(n-a) - own) / (n - 1)
			}
		}
	}
	d.Luck = max(0, 1-(differ+.5)/(expected+.5))
	return d
}

// withPairsOf returns a design without repeats with the correlation of the two trials of a pair, as if
// they were repeats of a task. They are more alike than those if they share luck, which has the same
// effect on a difference.
func (d Design) withPairsOf(data GateData) Design {
	var differ, pairs float64
	for _, t := range data.Tasks {
		for _, c := range t.Cells {
			for _, l := range c.Losses {
				differ += math.Abs(l)
				pairs++
			}
		}
	}
	if pairs == 0 {
		return d
	}
	d.Unrepeated = false
	expected := 2 * d.Rate * (1 - d.Rate) * pairs
	within := func(differ float64) float64 { return max(0, 1-(differ+.5)/(expected+.5)) }
	d.Within, d.Loosest = within(differ), within(differ+cautious*math.Sqrt(differ+1))
	return d
}

// A Share is a share of runs. Low and High differ if it depends on something unknown.
type Share struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A GatePower says what the verdict on new data would be, at a margin.
type GatePower struct {
	// Passing is the share of equal sides that pass.
	Passing Share `json:"passing"`
	// Finds is the share of sides that are worse by the margin and fail, if each task loses the same
	// share of its successes. FindsWhole is the same share if some tasks lose all and others nothing.
	Finds      Share `json:"finds"`
	FindsWhole Share `json:"finds_whole_tasks"`
}

// A GateRule is the question and the levels of a verdict.
type GateRule struct {
	These      bool // or else similar tasks
	Margin     float64
	Pass, Fail float64 // levels
}

// Power simulates data of a design and applies the verdict to them. In each draw, a task's rate has a
// beta distribution with the mean and the correlation of the design. Shares are ranges, because the
// rate and the correlation are only known from data: one end has the design's, and the other the
// lowest that the data leave possible. Without repeats, the correlation is from .2 to .8.
func (d Design) Power(rule GateRule, draws int) (p GatePower) {
	p.Passing = d.share(func(d Design) float64 {
		pass, _ := d.verdicts(rule, loss{}, draws)
		return pass
	})
	if rule.Margin < d.Lowest {
		finds := func(whole bool) Share {
			return d.share(func(d Design) float64 {
				_, fail := d.verdicts(rule, loss{rule.Margin, whole}, draws)
				return fail
			})
		}
		p.Finds, p.FindsWhole = finds(false), finds(true)
	}
	return p
}

// share computes a share for the design, and for the lowest rate and correlation.
func (d Design) share(of func(Design) float64) Share {
	x := of(d)
	y := of(d.lowest())
	return Share{min(x, y), max(x, y)}
}

func (d Design) lowest() Design {
	d.Rate, d.Within = d.Lowest, d.Loosest
	return d
}

// A loss is how much success side B loses: of each task the same share, or all of some tasks.
type loss struct {
	points float64
	whole  bool
}

// simulatedPoints is the number of points of the integration in a simulation, which is within 1e-4.
const simulatedPoints = 100

// verdicts returns the shares of simulated sides that pass and fail.
func (d Design) verdicts(rule GateRule, l loss, draws int) (pass, fail float64) {
	r := rand.New(rand.NewPCG(46, uint64(d.Repeats)))
	passed, failed := 0, 0
	for range draws {
		data := d.draw(r, l)
		g := data.losses(rule.These)
		if g.values(rule.Margin).p(simulatedPoints) <= rule.Pass {
			passed++
		} else if data.pFail(rule.These, g) <= rule.Fail {
			failed++
		}
	}
	return float64(passed) / float64(draws), float64(failed) / float64(draws)
}

// draw draws data of the design.
func (d Design) draw(r *rand.Rand, l loss) GateData {
	data := GateData{SameLuck: d.SameLuck, BySequence: len(d.Clusters) < d.Tasks()}
	rate := func() float64 { return d.Rate }
	if within := min(.999, d.Within); within > 1e-3 {
		c := 1/within - 1
		rate = distuv.Beta{Alpha: d.Rate * c, Beta: (1 - d.Rate) * c, Src: r}.Rand
	}
	share := min(1, l.points/d.Rate)
	for sequence, tasks := range d.Clusters {
		for range tasks {
			t := Matched{Sequence: sequence, Cells: make([]Cell, d.Conditions)}
			kept := 1 - share
			if l.whole {
				kept = 1
				if r.Float64() < share {
					kept = 0
				}
			}
			for i := range t.Cells {
				t.Cells[i] = d.cell(r, rate(), kept)
			}
			data.Tasks = append(data.Tasks, t)
		}
	}
	return data
}

// cell draws the trials of a task with a rate on side A, of which side B keeps a share.
func (d Design) cell(r *rand.Rand, rate, kept float64) Cell {
	c := Cell{Pair: Pair{NA: d.Repeats, NB: d.Repeats}, Losses: make([]float64, d.Repeats)}
	for i := range c.Losses {
		luck := r.Float64()
		if luck < rate {
			c.A++
			c.Losses[i]++
		}
		if d.Luck == 0 || r.Float64() >= d.Luck {
			luck = r.Float64()
		}
		if luck < rate*kept {
			c.B++
			c.Losses[i]--
		}
	}
	return c
}

// enoughPassing is the share of equal sides that have to pass with an advised size, and a little
// more, because it is simulated.
const enoughPassing = .82

// planDraws are the simulated gates for a size.
const planDraws = 500

// enough reports whether at least 80 of 100 equal sides pass, whatever is unknown.
func (d Design) enough(rule GateRule) bool {
	pass, _ := d.lowest().verdicts(rule, loss{}, planDraws)
	return pass >= enoughPassing
}

// WithTasks returns the design with as many tasks, in clusters like these.
func (d Design) WithTasks(n int) Design {
	var clusters []int
	for i := 0; n > 0; i++ {
		k := min(n, d.Clusters[i%len(d.Clusters)])
		clusters = append(clusters, k)
		n -= k
	}
	d.Clusters = clusters
	return d
}

// RepeatsNeeded returns the smallest number of repeats, from the design's and at most a limit, with
// which equal sides pass often enough. It returns 0 if there is none.
func (d Design) RepeatsNeeded(rule GateRule, most int) int {
	return least(d.Repeats, most, func(n int) bool {
		d := d
		d.Repeats = n
		return d.enough(rule)
	})
}

// TasksNeeded is like [Design.RepeatsNeeded] for tasks.
func (d Design) TasksNeeded(rule GateRule, most int) int {
	return least(d.Tasks(), most, func(n int) bool { return d.WithTasks(n).enough(rule) })
}

// least returns about the least number between limits that is enough, or 0. It may be too large by
// 3 %.
func least(low, high int, enough func(int) bool) int {
	n := low
	for !enough(n) {
		if n >= high {
			return 0
		}
		low, n = n, min(high, n+max(1, n/2))
	}
	for n-low > max(1, n/32) {
		if mid := (low + n) / 2; enough(mid) {
			n = mid
		} else {
			low = mid
		}
	}
	return n
}
