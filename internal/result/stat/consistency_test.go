package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

func run(luck int, full bool, used float64, tools ...int) stat.Run {
	return stat.Run{
		Luck: luck, Full: full, Tools: tools,
		Used: [stat.Resources]float64{used, used, math.NaN(), math.NaN()},
	}
}

func oneTask(conditions ...[]stat.Run) []stat.Repeated {
	return []stat.Repeated{{Conditions: conditions}}
}

// TestConsistencyReference compares with values that Python computed from the definitions, with the
// entropies of the mixture and of both runs for the divergence. The edit distance of the runs is 2.
func TestConsistencyReference(t *testing.T) {
	t.Parallel()
	c := stat.Consistency(oneTask([]stat.Run{
		run(1, true, 10, 1, 2, 3), run(2, true, 20, 1, 3, 3, 4), run(3, true, 10, 1, 2, 3), run(4, false, 30, 7),
	}), false, false)
	near(t, "outcome", c.Outcome.Value, 1-4*4./3*.75*.25, 1e-12)
	near(t, "published outcome", c.PublishedOutcome.Value, .25, 1e-12)
	near(t, "what", c.What.Value, (1+2*.6919209540327684)/3, 1e-12)
	near(t, "order", c.Order.Value, (1+2*.5)/3, 1e-12)
	near(t, "resources", c.Resources.Value, .6646709684651277, 1e-12)
	near(t, "published resources", c.PublishedResources.Value, .5786246963368171, 1e-12)
}

// TestConsistencyCounts has a task whose two conditions weigh the same, although one of them has
// more runs, one whose only pair does not have different luck, and one without successes.
func TestConsistencyCounts(t *testing.T) {
	t.Parallel()
	tasks := []stat.Repeated{
		{Conditions: [][]stat.Run{
			{run(1, true, 1, 1), run(2, true, 1, 1)},
			{run(1, true, 1, 1), run(2, false, 1), run(3, false, 1)},
			{run(1, false, 1)},
		}},
		{Conditions: [][]stat.Run{{run(1, true, 1, 1), run(1, false, 3, 2)}}},
		{Conditions: [][]stat.Run{{run(1, false, 0), run(2, false, 0)}}},
	}
	c := stat.Consistency(tasks, false, false)
	near(t, "outcome", c.Outcome.Value, ((1-1./3)/2+1)/2, 1e-12)
	near(t, "what", c.What.Value, 1, 1e-12)
	near(t, "resources", c.Resources.Value, 1, 1e-12)
	if c.Outcome.Tasks != 2 || c.What.Tasks != 1 || c.Resources.Tasks != 2 {
		t.Errorf("%+v", c)
	}
	same := stat.Consistency(tasks, true, false)
	near(t, "outcome with the same luck", same.Outcome.Value, -1, 1e-12)
	near(t, "resources", same.Resources.Value, math.Exp(-math.Sqrt2/2), 1e-12)
	if same.Outcome.Tasks != 1 || same.What.Tasks != 0 {
		t.Errorf("%+v", same)
	}
}

// TestConsistencyUnits has amounts whose squares are smaller than any number.
func TestConsistencyUnits(t *testing.T) {
	t.Parallel()
	for _, unit := range []float64{1, 1e-158, 1e-320} {
		a, b := run(1, false, 1), run(2, false, 1)
		a.Used, b.Used = [stat.Resources]float64{unit, unit, unit, unit}, [stat.Resources]float64{3 * unit, unit, unit, unit}
		c := stat.Consistency([]stat.Repeated{{Conditions: [][]stat.Run{{a, b}}}}, false, false)
		near(t, "resources", c.Resources.Value, math.Exp(-math.Sqrt(.5)/4), 1e-12)
	}
}

func drawnRuns(t *rapid.T) []stat.Run {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stat.Run {
		r := stat.Run{
			Luck: rapid.IntRange(1, 4).Draw(t, "luck"), Full: rapid.Bool().Draw(t, "full"),
			Tools: rapid.SliceOfN(rapid.IntRange(0, 3), 0, 6).Draw(t, "tools"),
		}
		for i := range r.Used {
			r.Used[i] = rapid.Float64Range(0, 9).Draw(t, "used")
		}
		return r
	}), 0, 7).Draw(t, "runs")
}

// TestConsistencyLaws checks ranges, that equal runs are consistent, that an order of runs does not
// matter, and that renaming tools and changing units do not.
func TestConsistencyLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		runs := drawnRuns(t)
		sameLuck := rapid.Bool().Draw(t, "same luck")
		c := stat.Consistency(oneTask(runs), sameLuck, false)
		for name, e := range map[string]stat.Estimate{
			"what": c.What, "order": c.Order, "resources": c.Resources,
			"published outcome": c.PublishedOutcome, "published resources": c.PublishedResources,
		} {
			if e.Tasks > 0 && !(e.Value >= 0 && e.Value <= 1 && e.Interval.Low <= e.Value && e.Value <= e.Interval.High) {
				t.Fatalf("%s: %+v", name, e)
			}
		}
		if o := c.Outcome; o.Tasks > 0 && !(o.Value >= -1 && o.Interval.Low <= o.Value && o.Value <= o.Interval.High) {
			t.Fatalf("outcome: %+v", o)
		}
		other := make([]stat.Run, len(runs))
		for i, r := range runs {
			r.Tools = append([]int(nil), r.Tools...)
			for k := range r.Tools {
				r.Tools[k] = 17 - 5*r.Tools[k]
			}
			for k := range r.Used {
				r.Used[k] *= 4
			}
			other[len(runs)-1-i] = r
		}
		again := stat.Consistency(oneTask(other), sameLuck, false)
		for _, p := range [][2]stat.Estimate{
			{c.Outcome, again.Outcome}, {c.What, again.What}, {c.Order, again.Order}, {c.Resources, again.Resources},
		} {
			if math.Abs(p[0].Value-p[1].Value) > 1e-9 {
				t.Fatalf("%+v, renamed and reversed %+v", c, again)
			}
		}
		if len(runs) == 0 {
			return
		}
		one := runs[0]
		one.Full = true
		equal := stat.Consistency(oneTask([]stat.Run{one, one, one}), true, false)
		for _, e := range []stat.Estimate{equal.Outcome, equal.What, equal.Order, equal.Resources} {
			if math.Abs(e.Value-1) > 1e-9 {
				t.Fatalf("equal runs: %+v", equal)
			}
		}
	})
}

// TestConsistencyUnbiased averages over all outcomes of few runs. Published figures depend on the
// number of runs.
func TestConsistencyUnbiased(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 5} {
		for _, p := range []float64{.1, .5, .9} {
			unbiased, published := 0., 0.
			for c := range n + 1 {
				var runs []stat.Run
				for i := range n {
					runs = append(runs, run(i, i < c, 1))
				}
				x := stat.Consistency(oneTask(runs), false, false)
				unbiased += binomial(n, c, p) * x.Outcome.Value
				published += binomial(n, c, p) * x.PublishedOutcome.Value
			}
			near(t, "outcome", unbiased, 1-4*p*(1-p), 1e-12)
			near(t, "published", published, 1-4*p*(1-p)+4*p*(1-p)/float64(n), 1e-12)
		}
	}
}

// TestConsistencyManyRuns checks that the work does not grow with the square of the number of runs.
func TestConsistencyManyRuns(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var runs []stat.Run
	for i := range 20_000 {
		runs = append(runs, run(i, r.Float64() < .8, 1+r.Float64(), 1, r.IntN(2)))
	}
	c := stat.Consistency(oneTask(runs), false, false)
	near(t, "outcome", c.Outcome.Value, 1-4*.8*.2, .02)
	near(t, "what", c.What.Value, .5+.5*(1-.3112781244591328), .02)
}
