package stat_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/assay-eval/assay/internal/result/stat"
)

// TestEqualOutcomesLeaveDoubt gives each statistic outcomes that are all the same. Its interval has
// to hold what was seen and also a truth that leaves such outcomes likely: each of the clusters
// differs with a chance d, and none of them did, which happens in one of five cases.
func TestEqualOutcomesLeaveDoubt(t *testing.T) {
	t.Parallel()
	for _, clusters := range []int{2, 6, 20, 60} {
		for _, repeats := range []int{1, 5} {
			for _, each := range []int{1, 3} { // tasks of a cluster
				t.Run(fmt.Sprint(clusters, repeats, each), func(t *testing.T) {
					t.Parallel()
					certain{clusters, repeats, each, 1 - math.Pow(.2, 1/float64(clusters))}.check(t)
				})
			}
		}
	}
}

// certain outcomes are the same at each task.
type certain struct {
	clusters, repeats, each int
	differ                  float64
}

func (c certain) check(t *testing.T) {
	t.Helper()
	for _, k := range []int{0, c.repeats} {
		rate := float64(k / c.repeats)
		other := math.Abs(rate - c.differ)
		hold(t, "a rate", stat.Clustered(c.groups(k), .95).Interval, rate, other)
		p := stat.PassK(c.tasks(k), 1, true)
		hold(t, "pass^1", p.HatInterval, rate, other)
		for _, b := range []int{0, c.repeats} {
			c.checkPair(t, k, b)
		}
	}
	c.checkPrice(t)
}

// checkPair has a successes of each task's repeats on side A and b on side B.
func (c certain) checkPair(t *testing.T, a, b int) {
	t.Helper()
	tasks := c.matched(a, b)
	d := float64(b-a) / float64(c.repeats)
	truths := []float64{d, d - c.differ, d + c.differ}
	if d != 0 {
		truths = []float64{d, d * (1 - c.differ)}
	}
	x := stat.Compare(tasks, true)
	hold(t, "a paired difference", x.Interval, truths...)
	if x.Mixed != nil {
		t.Errorf("the mixed model has no variance, and the interval %v", x.Mixed.Interval)
	}
	g := gateOf(tasks)
	g.BySequence = true
	for what, lower := range map[string]float64{
		"a gate's difference": g.Similar(.05).Lower, "a gate's difference of these tasks": g.These(.05).Lower,
	} {
		hold(t, what, stat.Interval{Low: lower, High: 1}, d)
	}
	if a == 0 {
		return
	}
	l := stat.Lost(tasks, true)
	i := stat.Interval{Low: -math.MaxFloat64, High: *l.High}
	if l.Low != nil {
		i.Low = *l.Low
	}
	for k := range truths { // A always succeeds
		truths[k] = min(1, -truths[k])
	}
	hold(t, "a loss", i, truths...)
}

// checkPrice has trials for a dollar each that all succeed, and that all fail.
func (c certain) checkPrice(t *testing.T) {
	t.Helper()
	p := stat.PriceOf(c.spent(c.repeats), true)
	if *p.Low >= 1 || p.High != nil && *p.High < 1/(1-c.differ) {
		t.Errorf("a price of %v from %v to %v", *p.Dollars, *p.Low, p.High)
	}
	p = stat.PriceOf(c.spent(0), true)
	if p.Dollars != nil || p.High != nil || *p.Low <= 0 || *p.Low > 1/c.differ {
		t.Errorf("a price without a success is %v from %v", p.Dollars, *p.Low)
	}
}

func hold(t *testing.T, what string, i stat.Interval, truths ...float64) {
	t.Helper()
	for _, truth := range truths {
		if truth < i.Low-1e-9 || truth > i.High+1e-9 || i.Low >= i.High {
			t.Errorf("%s: %v does not hold %.3f", what, i, truth)
		}
	}
}

func (c certain) groups(k int) (all []stat.Group) {
	for range c.clusters {
		all = append(all, stat.Group{Full: k * c.each, N: c.repeats * c.each})
	}
	return all
}

func (c certain) tasks(k int) (all []stat.Task) {
	for i := range c.clusters * c.each {
		g := []stat.Group{{Full: k, N: c.repeats}}
		all = append(all, stat.Task{Sequence: i % c.clusters, Cells: g, Repeats: g})
	}
	return all
}

func (c certain) matched(a, b int) (all []stat.Matched) {
	for i := range c.clusters * c.each {
		p := stat.Pair{A: a, NA: c.repeats, B: b, NB: c.repeats}
		all = append(all, stat.Matched{Sequence: i % c.clusters, Cells: []stat.Cell{{Pair: p}}})
	}
	return all
}

func (c certain) spent(k int) (all []stat.Spent) {
	for i := range c.clusters * c.each {
		g := stat.Group{Full: k, N: c.repeats}
		all = append(all, stat.Spent{Sequence: i % c.clusters, USD: float64(c.repeats), Group: g})
	}
	return all
}
