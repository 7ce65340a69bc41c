package stat_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A suite describes tasks like a team's own: their rates on side A are spread evenly from low
// to 1. Side B loses the same share of each. If the luck is shared, the trials of a repeat meet the
// same luck on both sides.
type suite struct {
	tasks, repeats int
	low, drop      float64
	shared         bool
}

func (s suite) draw(r *rand.Rand) []stat.Matched {
	mean := (1 + s.low) / 2
	all := make([]stat.Matched, s.tasks)
	for i := range all {
		rate := s.low + (1-s.low)*(float64(i)+.5)/float64(s.tasks)
		p := stat.Pair{NA: s.repeats, NB: s.repeats}
		for range s.repeats {
			b, a := r.Float64(), r.Float64()
			if s.shared {
				b = a
			}
			if b < rate*(1-s.drop/mean) {
				p.B++
			}
			if a < rate {
				p.A++
			}
		}
		all[i].Cells = []stat.Cell{{Pair: p}}
	}
	return all
}

// verdicts returns the shares of 2,000 draws that pass and fail at a margin.
func (s suite) verdicts(margin float64) (pass, fail float64) {
	const draws = 2000
	r := rand.New(rand.NewPCG(uint64(s.tasks), uint64(1000*s.drop)))
	for range draws {
		n := stat.NoninferiorFixed(s.draw(r), margin)
		if n.Passes(stat.PassLevel) {
			pass += 1. / draws
		} else if n.Fails(stat.FailLevel) {
			fail += 1. / draws
		}
	}
	return pass, fail
}

// gateTable is the table of docs/gate.md: error rates and power for a team's own tasks.
func gateTable(t *testing.T) string {
	var text strings.Builder
	for _, tasks := range []int{6, 12, 24, 48} {
		s := suite{tasks: tasks, repeats: 4, low: .6}
		_, alone := s.verdicts(.1)
		s.shared = true
		_, shared := s.verdicts(.1)
		if max(alone, shared) > .01 {
			t.Errorf("%d tasks: %.4f and %.4f of equal sides fail", tasks, alone, shared)
		}
		s.shared = false
		fmt.Fprintf(&text, "| %d × 4 | %.2f %% | %.2f %%", tasks, 100*alone, 100*shared)
		for _, s.drop = range []float64{.1, .2, .3, .4} {
			pass, fail := s.verdicts(.1)
			if s.drop == .1 {
				fmt.Fprintf(&text, " | %.1f %%", 100*pass)
				if pass > .065 {
					t.Errorf("%d tasks: %.3f pass that are worse by the margin", tasks, pass)
				}
			}
			fmt.Fprintf(&text, " | %.0f %%", 100*fail)
		}
		text.WriteString(" |\n")
	}
	return text.String()
}

// This simulation gives the table of docs/gate.md.
func TestGateTable(t *testing.T) {
	simulates(t, "48,000 comparisons of few tasks")
	page, err := os.ReadFile("../../../docs/gate.md")
	if err != nil {
		t.Fatal(err)
	}
	if table := gateTable(t); !strings.Contains(string(page), table) {
		t.Errorf("docs/gate.md lacks the rows\n%s", table)
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
		if got := stat.NoninferiorFixed(c.tasks, .1).PFail; math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: p = %v, want %v", c.tasks, got, c.want)
		}
	}
	// 24 of 24 against 15 of 24 on 6 tasks.
	var six []stat.Matched
	for i := range 6 {
		six = append(six, one(2+i%2, 4, 4, 4))
	}
	if n := stat.NoninferiorFixed(six, .05); !n.Fails(stat.FailLevel) {
		t.Errorf("24 of 24 against 15 of 24: p = %v", n.PFail)
	}
	if n := stat.Noninferior(six[:1], false, .05); n.Fails(stat.FailLevel) {
		t.Errorf("one task says something about more tasks: p = %v", n.PFail)
	}
}

// The p-value is the share of all ways to reassign trials to the sides that are as bad, whatever
// the numbers of trials and conditions.
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
		if got := stat.NoninferiorFixed(tasks, .1).PFail; math.Abs(got-as/all) > 1e-9 {
			t.Errorf("p = %v, want %v of %v", got, as, all)
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

func TestFixedLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		margin := rapid.Float64Range(.001, .5).Draw(t, "margin")
		var tasks, worse []stat.Matched
		trials := 0
		for _, p := range pairs(t) {
			trials += min(p.NA, p.NB)
			tasks = append(tasks, stat.Matched{Cells: []stat.Cell{{Pair: p}}})
			p.B = max(0, p.B-1)
			worse = append(worse, stat.Matched{Cells: []stat.Cell{{Pair: p}}})
		}
		// The variance of the score test depends on the difference, so neither p nor the bound is
		// monotone for a handful of trials, or where p is far from any level.
		few := trials < 20
		n := stat.NoninferiorFixed(tasks, margin)
		less := stat.NoninferiorFixed(worse, margin)
		switch {
		case n.Lower < -1 || n.Upper > 1 || n.Lower > n.Upper:
			t.Errorf("bounds [%v, %v]", n.Lower, n.Upper)
		case !(n.PFail > 0 && n.PFail <= 1 && n.PPass >= 0 && n.PPass <= 1):
			t.Errorf("p-values %v, %v", n.PPass, n.PFail)
		case !few && less.PPass < n.PPass-1e-9 && less.PPass < .5:
			t.Errorf("a worse side passes more easily: %v, %v", less.PPass, n.PPass)
		case !few && n.Passes(stat.PassLevel) != (n.Lower >= -margin) && math.Abs(n.Lower+margin) > 1e-6:
			t.Errorf("passes with p %v and bound %v at margin %v", n.PPass, n.Lower, margin)
		}
	})
}

// At most 6 % of sides that are worse by just the margin pass, up to three standard errors.
func TestFixedMargin(t *testing.T) {
	simulates(t, "20,000 comparisons")
	for _, s := range []suite{
		{tasks: 6, repeats: 16, low: 0},
		{tasks: 6, repeats: 2, low: 0},
		{tasks: 12, repeats: 8, low: 0},
		{tasks: 24, repeats: 4, low: .6},
		{tasks: 48, repeats: 1, low: .9},
	} {
		for _, s.drop = range []float64{.05, .2} {
			if pass, _ := s.verdicts(s.drop); pass > .06+.016 {
				t.Errorf("%+v: %.3f pass", s, pass)
			}
		}
	}
}

// Planned shares of verdicts are within six points of simulated ones.
func TestFixedSize(t *testing.T) {
	simulates(t, "24,000 comparisons")
	const margin = .15
	for _, s := range []suite{
		{tasks: 6, repeats: 8, low: .6},
		{tasks: 6, repeats: 16, low: .2},
		{tasks: 12, repeats: 6, low: .9},
		{tasks: 24, repeats: 4, low: .6},
		{tasks: 6, repeats: 24, low: 1},
		{tasks: 6, repeats: 12, low: 1},
		{tasks: 48, repeats: 3, low: 0},
	} {
		rate := (1 + s.low) / 2
		size := stat.FixedSize{Tasks: s.tasks, Repeats: s.repeats, Rate: rate}
		if s.low < 1 {
			size.Within = (1 - s.low) * (1 - s.low) / 12 / rate / (1 - rate)
		}
		pass, _ := s.verdicts(margin)
		s.drop = margin
		_, fail := s.verdicts(margin)
		passes := size.Passes(margin)
		fails := min(size.Fails(margin), 1-stat.PassLevel) // a side that passes does not fail
		t.Logf("%+v: pass %.3f planned %.3f, fail %.3f planned %.3f", s, pass, passes, fail, fails)
		if math.Abs(pass-passes) > .06 || math.Abs(fail-fails) > .06 {
			t.Errorf("%+v: pass %.3f, planned %.3f; fail %.3f, planned %.3f", s, pass, passes, fail,
				fails)
		}
	}
}

// Four looks at growing repeats fail at most 1 % of equal sides, and pass at most 6 % of those that
// are worse by the margin.
func TestFixedLooks(t *testing.T) {
	simulates(t, "16,000 comparisons with four looks")
	fractions := []float64{.25, .5, .75, 1}
	passes := stat.Spend(stat.PassLevel, fractions)
	fails := stat.Split(stat.FailLevel, fractions)
	for _, tasks := range []int{6, 12, 24, 48} {
		for _, drop := range []float64{0, .1} {
			s := suite{tasks: tasks, repeats: 1, low: .6, drop: drop}
			r := rand.New(rand.NewPCG(uint64(tasks), 4))
			var pass, fail float64
			for range 2000 {
				all := s.draw(r)
			looks:
				for k := range fractions {
					n := stat.NoninferiorFixed(all, .1)
					switch {
					case n.Passes(passes[k]):
						pass += 1. / 2000
						break looks
					case n.Fails(fails[k]):
						fail += 1. / 2000
						break looks
					}
					for i, more := range s.draw(r) {
						c, m := &all[i].Cells[0], more.Cells[0]
						c.A, c.NA, c.B, c.NB = c.A+m.A, c.NA+m.NA, c.B+m.B, c.NB+m.NB
					}
				}
			}
			t.Logf("%d tasks, drop %g: pass %.3f, fail %.4f", tasks, drop, pass, fail)
			if drop == 0 && fail > .01 || drop > 0 && pass > .06+.016 {
				t.Errorf("%d tasks, drop %g: pass %.3f, fail %.4f", tasks, drop, pass, fail)
			}
		}
	}
}

// The bounds of a rate come from the binomial distribution, and hold for tasks of any rates.
func TestRateOfFixed(t *testing.T) {
	t.Parallel()
	tasks := func(full ...int) (all []stat.Task) {
		for _, k := range full {
			all = append(all, stat.Task{Cells: []stat.Group{{Full: k, N: 4}}})
		}
		return all
	}
	b := stat.RateOfFixed(tasks(4, 4, 4, 4, 4, 4))
	if want := math.Pow(.05, 1./24); math.Abs(b.Lower-want) > 1e-9 || b.Upper != 1 {
		t.Errorf("24 of 24: %+v, want %.4f to 1", b, want)
	}
	r := rand.New(rand.NewPCG(3, 3))
	rates := []float64{1, 1, .95, .9, .7, .85} // .9 on average
	var below, above int
	const draws = 4000
	for range draws {
		full := make([]int, len(rates))
		for i, rate := range rates {
			for range 4 {
				if r.Float64() < rate {
					full[i]++
				}
			}
		}
		if b := stat.RateOfFixed(tasks(full...)); b.Lower > .9 {
			below++
		} else if b.Upper < .9 {
			above++
		}
	}
	if below > draws*5/100 || above > draws/100 {
		t.Errorf("of %d lower bounds %d are too high, and %d upper ones too low", draws, below, above)
	}
}
