package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// gateOf pairs the trials of tasks, the successes of each side first.
func gateOf(tasks []stat.Matched) (d stat.GateData) {
	trials := func(k, n int) []bool {
		out := make([]bool, n)
		for i := range k {
			out[i] = true
		}
		return out
	}
	for _, m := range tasks {
		t := stat.Matched{Sequence: m.Sequence}
		for _, c := range m.Cells {
			if c.NA > 0 && c.NB > 0 {
				t.Cells = append(t.Cells, stat.NewCell(0, trials(c.A, c.NA), trials(c.B, c.NB)))
			}
		}
		if len(t.Cells) > 0 {
			d.Tasks = append(d.Tasks, t)
		}
	}
	return d
}

// A versions is two versions of a model. Side B loses a share of its successes on each task, or all
// of some tasks. Repeats of a task correlate by within, because that share of the tasks always has
// the same outcome. With a chance of luck, both trials of a pair end alike unless B lost.
type versions struct {
	tasks, repeats     int
	more               int // repeats that only side A has
	rate, within, drop float64
	luck               float64
	whole              bool
	cluster            int // tasks of a sequence, or 0
}

func (v versions) draw(r *rand.Rand) stat.GateData {
	d := stat.GateData{SameLuck: v.luck > 0, BySequence: v.cluster > 1}
	for i := range v.tasks {
		p, kept := v.rate, 1-v.drop/v.rate
		if r.Float64() < v.within {
			p = float64(betaBinomial(r, 1, p, 0))
		}
		if v.whole {
			kept = float64(betaBinomial(r, 1, kept, 0))
		}
		a, b := make([]bool, v.repeats+v.more), make([]bool, v.repeats)
		for k := range a {
			luck := r.Float64()
			a[k] = luck < p
			if r.Float64() >= v.luck {
				luck = r.Float64()
			}
			if k < len(b) {
				b[k] = luck < p*kept
			}
		}
		d.Tasks = append(d.Tasks, stat.Matched{
			Sequence: i / max(1, v.cluster), Cells: []stat.Cell{stat.NewCell(0, a, b)},
		})
	}
	return d
}

// verdicts returns the shares of draws that pass and fail at a margin.
func (v versions) verdicts(these bool, margin float64, draws int) (pass, fail float64) {
	r := rand.New(rand.NewPCG(uint64(v.tasks), uint64(1000*v.drop)))
	for range draws {
		passes, fails := v.draw(r).Decide(stat.GateRule{
			These: these, Margin: margin, Pass: stat.PassLevel, Fail: stat.FailLevel,
		})
		if passes {
			pass += 1 / float64(draws)
		} else if fails {
			fail += 1 / float64(draws)
		}
	}
	return pass, fail
}

// Pairs that lose all or nothing have the p-value of the binomial distribution.
func TestGaffkeReference(t *testing.T) {
	t.Parallel()
	lost := func(n, k int) (d stat.GateData) {
		for i := range n {
			d.Tasks = append(d.Tasks, stat.Matched{Cells: []stat.Cell{
				stat.NewCell(0, []bool{i < k}, []bool{false}),
			}})
		}
		return d
	}
	for _, c := range []struct {
		n, k         int
		margin, want float64
	}{
		{30, 0, .05, .2146388},
		{40, 2, .15, .0485987},
		{480, 0, .05, math.Pow(.95, 480)},
		{59, 0, .05, math.Pow(.95, 59)},
	} {
		for _, n := range []stat.Noninferiority{
			lost(c.n, c.k).Similar(c.margin), lost(c.n, c.k).These(c.margin),
		} {
			if math.Abs(n.PPass-c.want) > 3e-7 {
				t.Errorf("%d of %d lost at %g: p = %.7f, want %.7f", c.k, c.n, c.margin, n.PPass, c.want)
			}
		}
	}
	none := lost(30, 0).Similar(.05)
	want := 1 - math.Pow(.05, 1./30) // 9.5 points
	if math.Abs(none.Least(stat.PassLevel)-want) > 1e-6 || math.Abs(none.Lower+want) > 1e-6 {
		t.Errorf("30 tasks rule out %.4f, and %.4f are needed: %+v", none.Least(stat.PassLevel), want, none)
	}
	for margin, want := range map[float64]int{.03: 99, .05: 59, .1: 29, .15: 19, .2: 14} {
		if got := stat.UnitsNeeded(margin, stat.PassLevel); got != want {
			t.Errorf("%g needs %d units, want %d", margin, got, want)
		}
	}
}

// Flawless sides pass if there are enough tasks, or enough pairs. Sides without any success never
// do, because nothing could be lost.
func TestFlawlessAndHopeless(t *testing.T) {
	t.Parallel()
	of := func(tasks, repeats, full int) stat.GateData {
		var all []stat.Matched
		for range tasks {
			p := stat.Pair{A: full, NA: repeats, B: full, NB: repeats}
			all = append(all, stat.Matched{Cells: []stat.Cell{{Pair: p}}})
		}
		return gateOf(all)
	}
	for _, c := range []struct {
		d              stat.GateData
		margin         float64
		similar, these bool
	}{
		{of(60, 8, 8), .05, true, true},
		{of(30, 16, 16), .05, false, true},
		{of(30, 16, 16), .1, true, true},
		{of(52, 3, 0), .15, false, false},
		{of(600, 3, 0), .15, false, false},
	} {
		s, e := c.d.Similar(c.margin), c.d.These(c.margin)
		if s.Passes(stat.PassLevel) != c.similar || e.Passes(stat.PassLevel) != c.these {
			t.Errorf("%d tasks at %g: similar %+v, these %+v", len(c.d.Tasks), c.margin, s, e)
		}
		if s.Fails(stat.FailLevel) || e.Fails(stat.FailLevel) {
			t.Errorf("equal sides fail")
		}
	}
}

// The exact test is Fisher's for one task, and its p-value for the smallest possible number is the
// product of the tasks'.
func TestFixedReference(t *testing.T) {
	t.Parallel()
	one := func(b, nb, a, na int) stat.Matched {
		return stat.Matched{Cells: []stat.Cell{{Pair: stat.Pair{A: a, NA: na, B: b, NB: nb}}}}
	}
	tea := one(1, 4, 3, 4) // Fisher's lady tasting tea: 17 of 70
	for _, c := range []struct {
		tasks []stat.Matched
		want  float64
	}{
		{[]stat.Matched{tea}, 17. / 70},
		{[]stat.Matched{one(0, 4, 4, 4), one(0, 3, 3, 3)}, 1. / 70 / 20},
		{[]stat.Matched{one(4, 4, 4, 4), one(0, 4, 0, 4)}, 1},
	} {
		if got := gateOf(c.tasks).These(.1).PFail; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: p = %v, want %v", c.tasks, got, c.want)
		}
	}
	// 24 of 24 against 15 of 24 on 6 tasks.
	var six []stat.Matched
	for i := range 6 {
		six = append(six, one(2+i%2, 4, 4, 4))
	}
	if n := gateOf(six).These(.05); !n.Fails(stat.FailLevel) {
		t.Errorf("24 of 24 against 15 of 24: p = %v", n.PFail)
	}
	if n := gateOf(six[:1]).Similar(.05); n.Fails(stat.FailLevel) {
		t.Errorf("one task says something about more tasks: p = %v", n.PFail)
	}
}

// Without shared luck, the p-value is the share of all ways to reassign trials to the sides that are
// as bad, whatever the numbers of trials and conditions.
func TestFixedIsAPermutationTest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var tasks []stat.Matched
		for range rapid.IntRange(1, 3).Draw(t, "tasks") {
			var m stat.Matched
			for condition := range rapid.IntRange(1, 2).Draw(t, "conditions") {
				n := rapid.IntRange(1, 3)
				p := stat.Pair{NA: n.Draw(t, "na"), NB: n.Draw(t, "nb")}
				p.A = rapid.IntRange(0, p.NA).Draw(t, "a")
				p.B = rapid.IntRange(0, p.NB).Draw(t, "b")
				m.Cells = append(m.Cells, stat.Cell{Condition: condition, Pair: p})
			}
			tasks = append(tasks, m)
		}
		as, all := reassigned(tasks)
		if got := gateOf(tasks).These(.1).PFail; math.Abs(got-as/all) > 1e-9 {
			t.Errorf("p = %v, want %v of %v", got, as, all)
		}
	})
}

// With shared luck, or about similar tasks, it is the share of all changes of signs.
func TestFailIsASignFlipTest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		repeats := rapid.IntRange(1, 3).Draw(t, "repeats")
		v := versions{
			tasks: rapid.IntRange(1, 5).Draw(t, "tasks"), repeats: repeats, rate: .7, luck: .5,
			drop: rapid.Float64Range(0, .7).Draw(t, "drop"),
		}
		d := v.draw(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3)))
		var pairs, tasks []float64
		for _, x := range d.Tasks {
			pairs = append(pairs, x.Cells[0].Losses...)
			tasks = append(tasks, 0)
			for _, l := range x.Cells[0].Losses {
				tasks[len(tasks)-1] += l
			}
		}
		for _, c := range []struct {
			losses []float64
			got    float64
		}{{pairs, d.These(.1).PFail}, {tasks, d.Similar(.1).PFail}} {
			seen, as := 0., 0.
			for _, l := range c.losses {
				seen += l
			}
			for signs := range 1 << len(c.losses) {
				sum := 0.
				for i, l := range c.losses {
					sum += l * float64(1-2*(signs>>i&1))
				}
				if sum >= seen-1e-9 {
					as++
				}
			}
			if want := as / float64(int(1)<<len(c.losses)); math.Abs(c.got-want) > 1e-9 {
				t.Errorf("p = %v, want %v for %v", c.got, want, c.losses)
			}
		}
	})
}

// reassigned counts the ways to reassign trials, and the ways with at most the difference found.
func reassigned(tasks []stat.Matched) (as, all float64) {
	type cell struct {
		stat.Pair
		weight float64
	}
	var cells []cell
	found := 0.
	for _, m := range tasks {
		for _, c := range m.Cells {
			weight := 1 / float64(len(tasks)*len(m.Cells))
			cells = append(cells, cell{c.Pair, weight})
			found += weight * (float64(c.B)/float64(c.NB) - float64(c.A)/float64(c.NA))
		}
	}
	choose := func(n, k int) float64 {
		ways := 1.
		for i := range k {
			ways = ways * float64(n-i) / float64(i+1)
		}
		return ways
	}
	var walk func(i int, ways, sum float64)
	walk = func(i int, ways, sum float64) {
		if i == len(cells) {
			all += ways
			if sum <= found+1e-9 {
				as += ways
			}
			return
		}
		c := cells[i]
		for b := 0; b <= min(c.NB, c.A+c.B); b++ {
			if a := c.A + c.B - b; a <= c.NA {
				walk(i+1, ways*choose(c.NA, a)*choose(c.NB, b),
					sum+c.weight*(float64(b)/float64(c.NB)-float64(a)/float64(c.NA)))
			}
		}
	}
	walk(0, 1, 0)
	return as, all
}

func TestGateLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		margin := rapid.Float64Range(.001, .5).Draw(t, "margin")
		var tasks, worse, flawless []stat.Matched
		for i, p := range pairs(t) {
			add := func(all *[]stat.Matched, p stat.Pair) {
				*all = append(*all, stat.Matched{Sequence: i / 2, Cells: []stat.Cell{{Pair: p}}})
			}
			add(&tasks, p)
			add(&worse, stat.Pair{A: p.A, NA: p.NA, B: max(0, p.B-1), NB: p.NB})
			add(&flawless, stat.Pair{A: p.NA, NA: p.NA, B: p.NB, NB: p.NB})
		}
		d, w, g := gateOf(tasks), gateOf(worse), gateOf(flawless)
		d.BySequence = rapid.Bool().Draw(t, "by sequence")
		w.BySequence, g.BySequence = d.BySequence, d.BySequence
		for _, test := range []func(stat.GateData, float64) stat.Noninferiority{
			stat.GateData.Similar, stat.GateData.These,
		} {
			n, less, wider := test(d, margin), test(w, margin), test(d, 1.5*margin)
			lossless := test(g, margin)
			least := lossless.Least(stat.PassLevel)
			switch {
			case n.Lower < -1 || n.Lower > n.Difference+1e-6:
				t.Errorf("bound %v of %v", n.Lower, n.Difference)
			case !(n.PFail > 0 && n.PFail <= 1 && n.PPass >= 0 && n.PPass <= 1):
				t.Errorf("p-values %v, %v", n.PPass, n.PFail)
			case wider.PPass > n.PPass+1e-6:
				t.Errorf("a wider margin is harder to pass: %v, %v", n.PPass, wider.PPass)
			case wider.PFail != n.PFail:
				t.Errorf("the margin changes the failure: %v, %v", n.PFail, wider.PFail)
			case less.PPass < n.PPass-1e-6:
				t.Errorf("a worse side passes more easily: %v, %v", less.PPass, n.PPass)
			case (n.PPass <= stat.PassLevel) != (n.Lower >= -margin) && math.Abs(n.Lower+margin) > 1e-5:
				t.Errorf("p %v and bound %v at margin %v", n.PPass, n.Lower, margin)
			case lossless.CanLose() && lossless.Passes(stat.PassLevel) != (least <= margin) &&
				math.Abs(least-margin) > 1e-5:
				t.Errorf("%d units rule out %v: p %v at margin %v", lossless.Units, least, lossless.PPass, margin)
			}
		}
	})
}

// The shapes of differences at which tests of a normal distribution fail: few tasks that differ
// completely, rates near 1, unequal repeats, shared luck, tasks of sequences.
var shapes = []versions{
	{tasks: 30, repeats: 4, rate: .9, within: .3, luck: .5},
	{tasks: 100, repeats: 1, rate: .95, within: .5, luck: .9},
	{tasks: 60, repeats: 4, rate: .98, within: .5, luck: .5, whole: true},
	{tasks: 30, repeats: 16, rate: 1, whole: true},
	{tasks: 6, repeats: 8, rate: .8, within: .3},
	{tasks: 40, repeats: 2, more: 14, rate: .95},
	{tasks: 60, repeats: 3, rate: .8, within: .3, cluster: 4, whole: true},
}

// At most 1 % of equal sides fail, and at most 5 % of sides that are worse by the margin pass, three
// standard errors besides.
func TestGateTable(t *testing.T) {
	simulates(t, "8,800 gates")
	const draws = 400
	for _, v := range shapes {
		for _, margin := range []float64{.05, .15} {
			for _, these := range []bool{false, true} {
				v.drop = margin
				if these && v.whole { // the margin is about these tasks, which differ from draw to draw
					continue
				}
				pass, _ := v.verdicts(these, margin, draws)
				v.drop = 0
				_, fail := v.verdicts(these, margin, draws)
				t.Logf("%+v these %v margin %g: worse pass %.4f, equal fail %.4f", v, these, margin, pass, fail)
				if pass > .05+.033 || fail > .01+.015 {
					t.Errorf("%+v these %v margin %g: worse pass %.4f, equal fail %.4f", v, these, margin, pass, fail)
				}
			}
		}
	}
}

// Looks at growing data spend no more error than one look, and save trials.
func TestLooksSpendWhatIsPlanned(t *testing.T) {
	simulates(t, "1,200 gates with four looks")
	const draws, looks = 300, 4
	fractions := []float64{.25, .5, .75, 1}
	pass, fail := stat.Spend(stat.PassLevel, fractions), stat.Split(stat.FailLevel, fractions)
	for i, v := range []versions{
		{tasks: 160, repeats: 2, rate: .7, within: .4}, {tasks: 160, repeats: 2, rate: .9, within: .2},
	} {
		r := rand.New(rand.NewPCG(21, uint64(i)))
		const margin = .1
		of := func(v versions) (passed, failed, used float64) {
			for range draws {
				all := v.draw(r)
				for k := range looks {
					d := all
					d.Tasks = all.Tasks[:(k+1)*v.tasks/looks]
					passes, fails := d.Decide(stat.GateRule{Margin: margin, Pass: pass[k], Fail: fail[k]})
					used += 1. / looks / draws
					if passes {
						passed += 1. / draws
						break
					}
					if fails {
						failed += 1. / draws
						break
					}
				}
			}
			return passed, failed, used
		}
		equalPass, equalFail, equalUsed := of(v)
		v.drop = margin
		worsePass, worseFail, worseUsed := of(v)
		t.Logf("equal: pass %.3f fail %.4f with %.2f of the trials; worse: pass %.3f fail %.3f with %.2f",
			equalPass, equalFail, equalUsed, worsePass, worseFail, worseUsed)
		if equalFail > .0273 || worsePass > .088 {
			t.Errorf("looks spend too much: %.4f of equal sides fail, %.3f of worse sides pass",
				equalFail, worsePass)
		}
		if equalUsed > .9 {
			t.Errorf("looks gain little: %.2f of the trials", equalUsed)
		}
	}
}
