//go:build !race

package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// TestEquivalent checks that about 5 % of sides that differ by just the margin, in either
// direction, are called equivalent, and nearly all equal sides if there are many tasks. With 1,000
// draws, three standard errors are 2 points.
func TestEquivalent(t *testing.T) {
	t.Parallel()
	const draws, margin = 300, .1
	for name, c := range map[string]struct {
		drop      float64
		exchange  bool
		low, high float64
	}{
		"equal":                    {0, false, .95, 1},
		"worse by the margin":      {margin, false, .03, .07},
		"better by the margin":     {margin, true, .03, .07},
		"worse by twice as much":   {2 * margin, false, 0, .002},
		"better by half as much":   {margin / 2, true, .3, .9},
		"worse by half the margin": {margin / 2, false, .3, .9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := versions{tasks: 150, repeats: 3, rate: .7, within: .4, drop: c.drop}
			r := rand.New(rand.NewPCG(3, 4))
			held := 0
			for range draws {
				d := g.draw(r)
				if c.exchange {
					d = exchanged(d)
				}
				if d.Equivalent(margin).Holds() {
					held++
				}
			}
			t.Logf("%.4f", float64(held)/draws)
			if share := float64(held) / draws; share < c.low || share > c.high {
				t.Errorf("%.4f are called equivalent, want %g to %g", share, c.low, c.high)
			}
		})
	}
}

// The test is the same from either side, and holds if and only if the interval is within the
// margin.
func TestEquivalenceLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		margin := rapid.Float64Range(.001, .5).Draw(t, "margin")
		var tasks []stat.Matched
		for i, p := range pairs(t) {
			tasks = append(tasks, stat.Matched{Sequence: i / 2, Cells: []stat.Cell{{Pair: p}}})
		}
		d := gateOf(tasks)
		d.BySequence = true
		e, f := d.Equivalent(margin), exchanged(d).Equivalent(margin)
		if e.P != f.P || e.Lower != -f.Upper || e.Upper != -f.Lower {
			t.Errorf("%+v from one side, %+v from the other", e, f)
		}
		within := e.Lower >= -margin && e.Upper <= margin
		if e.Holds() != within && min(e.Lower+margin, margin-e.Upper) > 1e-9 {
			t.Errorf("holds %v, interval within the margin %v: %+v", e.Holds(), within, e)
		}
	})
}

// TestEquivalencePower compares the share of equal sides that a certificate expects to pass with the
// share that does. With 500 draws, three standard errors are 6.7 points.
func TestEquivalencePower(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 14))
	const draws = 200
	for _, g := range []versions{
		{tasks: 40, repeats: 3, rate: .7, within: .4},
		{tasks: 60, repeats: 3, rate: .7, within: .4},
		{tasks: 60, repeats: 3, rate: .9, within: .2},
		{tasks: 120, repeats: 1, rate: .8, within: .5},
	} {
		held, said := 0., 0.
		for i := range draws {
			d := g.draw(r)
			if d.Equivalent(.1).Holds() {
				held += 1. / draws
			}
			if i%20 == 0 {
				said += d.EquivalentPassing(.1) * 20 / draws
			}
		}
		t.Logf("%+v: %.3f, said %.3f", g, held, said)
		if math.Abs(held-said) > .08 {
			t.Errorf("%+v: %.3f are called equivalent, said %.3f", g, held, said)
		}
	}
}

// exchanged returns the data with side B in place of side A.
func exchanged(d stat.GateData) stat.GateData {
	out := d
	out.Tasks = nil
	for _, m := range d.Tasks {
		x := stat.GateTask{Sequence: m.Sequence}
		for _, c := range m.Cells {
			c.Pair = stat.Pair{A: c.B, NA: c.NB, B: c.A, NB: c.NA}
			losses := make([]float64, len(c.Losses))
			for i, l := range c.Losses {
				losses[i] = -l
			}
			c.Losses = losses
			x.Cells = append(x.Cells, c)
		}
		out.Tasks = append(out.Tasks, x)
	}
	return out
}
