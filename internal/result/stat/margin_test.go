package stat_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A gate is data of two versions of a model. The new one, side B, loses a share of its successes on
// each task. Repeats of a task correlate by within, because that share of the tasks always has the
// same outcome.
type gate struct {
	tasks, repeats     int
	rate, within, drop float64
}

func (g gate) draw(r *rand.Rand) (tasks []stat.Matched) {
	for range g.tasks {
		p := g.rate
		if r.Float64() < g.within {
			p = float64(betaBinomial(r, 1, p, 0))
		}
		c := stat.Pair{NA: g.repeats, NB: g.repeats}
		for range g.repeats {
			c.B += betaBinomial(r, 1, p*(1-g.drop/g.rate), 0)
			c.A += betaBinomial(r, 1, p, 0)
		}
		tasks = append(tasks, stat.Matched{Cells: []stat.Cell{{Pair: c}}})
	}
	return tasks
}

func (g gate) size() stat.Size {
	return stat.Size{
		Clusters: slices.Repeat([]int{1}, g.tasks), Repeats: g.repeats,
		Rate: g.rate, Within: g.within,
	}
}

// found returns the smallest drop that fails in a share of runs.
func found(s stat.Size, power float64) float64 {
	low, high := 0., s.Rate
	for range 40 {
		if mid := (low + high) / 2; s.Fails(mid) >= power {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// .5 % of equal sides fail; 5 % of sides that are worse by the margin pass, and as many fail as
// planned, within three points. As many equal sides pass as planned, within four points. With 4,000
// draws, three standard errors are .3, 1.0 and at most 2.4 points.
func TestNoninferior(t *testing.T) {
	simulates(t, "144,000 comparisons")
	const draws = 4000
	for _, tasks := range []int{40, 100, 250} {
		for _, rate := range []float64{.5, .9} {
			for i, power := range []float64{.5, .8, .95} { // three effect sizes
				g := gate{tasks: tasks, repeats: 3, rate: rate, within: .4}
				t.Run(fmt.Sprintf("%d tasks, rate %g, power %g", tasks, rate, power),
					func(t *testing.T) {
						t.Parallel()
						r := rand.New(rand.NewPCG(uint64(tasks), uint64(i)))
						margin := found(g.size(), power)
						of := func(g gate) (pass, fail float64) {
							for range draws {
								n := stat.Noninferior(g.draw(r), false, margin)
								if n.Passes(stat.PassLevel) {
									pass++
								} else if n.Fails(stat.FailLevel) {
									fail++
								}
							}
							return pass / draws, fail / draws
						}
						equalPass, equalFail := of(g)
						worse := g
						worse.drop = margin
						worsePass, worseFail := of(worse)
						planned := g.size().Passes(margin)
						t.Logf("margin %.3f: equal pass %.3f (planned %.3f) fail %.4f; "+
							"worse pass %.3f fail %.3f",
							margin, equalPass, planned, equalFail, worsePass, worseFail)
						if equalFail > .009 {
							t.Errorf("%.4f of equal sides fail", equalFail)
						}
						if worsePass > .07 {
							t.Errorf("%.3f of sides that are worse by the margin pass", worsePass)
						}
						if math.Abs(equalPass-planned) > .04 {
							t.Errorf("%.3f of equal sides pass, planned %.3f", equalPass, planned)
						}
						if math.Abs(worseFail-power) > .03+.024 {
							t.Errorf("%.3f of worse sides fail, planned %.3f", worseFail, power)
						}
					})
			}
		}
	}
}

// At most 1 % of 1,000 pairs of equal sides fail.
func TestEqualSidesSeldomFail(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(8, 8))
	failed := 0
	for range 1000 {
		g := gate{tasks: 60, repeats: 2, rate: .3 + .6*r.Float64(), within: .5}
		if n := stat.Noninferior(g.draw(r), false, .05); n.Fails(stat.FailLevel) {
			failed++
		}
	}
	if upper := stat.Wilson(failed, 1000, stat.Z95).High; failed > 10 || upper > .02 {
		t.Errorf("%d of 1,000 equal pairs fail, at most %.2f %%", failed, 100*upper)
	}
}

func TestNoninferiorLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		margin := rapid.Float64Range(.001, .5).Draw(t, "margin")
		var tasks []stat.Matched
		for i, p := range pairs(t) {
			tasks = append(tasks, stat.Matched{Sequence: i / 2, Cells: []stat.Cell{{Pair: p}}})
		}
		bySequence := rapid.Bool().Draw(t, "by sequence")
		n := stat.Noninferior(tasks, bySequence, margin)
		wider := stat.Noninferior(tasks, bySequence, margin*1.5)
		switch {
		case n.Lower < -1 || n.Upper > 1 || n.Lower > n.Upper:
			t.Errorf("bounds [%v, %v]", n.Lower, n.Upper)
		case wider.PPass > n.PPass:
			t.Errorf("a wider margin is harder to pass: %v, %v", n.PPass, wider.PPass)
		case wider.PFail != n.PFail:
			t.Errorf("the margin changes the failure: %v, %v", n.PFail, wider.PFail)
		case n.Lower > -1 && n.Passes(stat.PassLevel) != (n.Lower >= -margin):
			t.Errorf("passes with p %v and bound %v at margin %v", n.PPass, n.Lower, margin)
		case n.Upper < 1 && n.Fails(stat.FailLevel) != (n.Upper <= 0):
			t.Errorf("fails with p %v and bound %v", n.PFail, n.Upper)
		}
	})
}

// The levels for two-sided 5 % and five equal looks match the published boundaries of Lan and
// DeMets.
func TestSpendReference(t *testing.T) {
	t.Parallel()
	want := []float64{4.8769, 3.3569, 2.6803, 2.2898, 2.0310}
	got := stat.Spend(.025, []float64{.2, .4, .6, .8, 1})
	for i, p := range got {
		if z := math.Sqrt2 * math.Erfcinv(2*p); math.Abs(z-want[i]) > 2e-4 {
			t.Errorf("look %d: z = %.4f, want %.4f", i, z, want[i])
		}
	}
	if one := stat.Spend(.05, []float64{1})[0]; math.Abs(one-.05) > 1e-6 {
		t.Errorf("a single look has the level %v", one)
	}
}

// Looks at growing data spend no more error than one look, and few more trials are needed for the
// same power.
func TestLooksSpendWhatIsPlanned(t *testing.T) {
	simulates(t, "40,000 comparisons with four looks")
	const draws, looks = 5000, 4
	fractions := []float64{.25, .5, .75, 1}
	pass, fail := stat.Spend(stat.PassLevel, fractions), stat.Spend(stat.FailLevel, fractions)
	for i, g := range []gate{
		{tasks: 160, repeats: 2, rate: .7, within: .4},
		{tasks: 160, repeats: 2, rate: .9, within: .2},
	} {
		r := rand.New(rand.NewPCG(21, uint64(i)))
		margin := found(g.size(), .8)
		of := func(g gate) (passed, failed, used float64) {
			for range draws {
				tasks := g.draw(r)
				for k := range looks {
					n := stat.Noninferior(tasks[:(k+1)*g.tasks/looks], false, margin)
					used += 1. / looks
					if n.Passes(pass[k]) {
						passed++
						break
					}
					if n.Fails(fail[k]) {
						failed++
						break
					}
				}
			}
			return passed / draws, failed / draws, used / draws
		}
		equalPass, equalFail, equalUsed := of(g)
		worse := g
		worse.drop = margin
		worsePass, worseFail, worseUsed := of(worse)
		t.Logf("equal: pass %.3f fail %.4f with %.2f of the trials; worse: pass %.3f fail %.3f with %.2f",
			equalPass, equalFail, equalUsed, worsePass, worseFail, worseUsed)
		if equalFail > .009 || worsePass > .065 {
			t.Errorf("looks spend too much: %.4f of equal sides fail, %.3f of worse sides pass",
				equalFail, worsePass)
		}
		if worseFail < .75 || equalUsed > .85 {
			t.Errorf("looks gain little: power %.3f, %.2f of the trials", worseFail, equalUsed)
		}
	}
}

// TestPowerOfGates compares the power that a gate prints with the shares of verdicts on new data of
// the same kind. They are within nine points with 20 tasks or more, three standard errors included,
// and within five on average.
func TestPowerOfGates(t *testing.T) {
	simulates(t, "19,200 gates")
	r := rand.New(rand.NewPCG(8, 13))
	const draws = 400
	off, n := 0., 0.
	for _, tasks := range []int{20, 60} {
		for _, repeats := range []int{1, 4} {
			for _, c := range [][3]float64{{.6, .2, .1}, {.6, .2, .2}, {.6, .7, .2}, {.9, .2, .1}, {.9, .2, .2}, {.9, .7, .2}} {
				g := gate{tasks: tasks, repeats: repeats, rate: c[0], within: c[1]}
				printed, seen := g.power(r, c[2], draws)
				for i, what := range []string{"similar: fail", "similar: pass", "these: fail", "these: pass"} {
					d := math.Abs(printed[i] - seen[i])
					if off, n = off+d, n+1; d > .09 {
						t.Errorf("%+v, margin %g, %s: printed %.2f, seen %.2f", g, c[2], what, printed[i], seen[i])
					}
				}
			}
		}
	}
	if t.Logf("off by %.3f on average", off/n); off/n > .05 {
		t.Errorf("off by %.3f on average", off/n)
	}
}

// power returns the mean printed shares of verdicts, and the shares of draws that have them: sides
// that are worse by the margin and fail, and equal ones that pass, for similar tasks and for these.
func (g gate) power(r *rand.Rand, margin float64, draws int) (printed, seen [4]float64) {
	worse := g
	worse.drop = margin
	for range draws {
		equal, other := g.draw(r), worse.draw(r)
		for i, test := range []func([]stat.Matched) stat.Noninferiority{
			func(x []stat.Matched) stat.Noninferiority { return stat.Noninferior(x, false, margin) },
			func(x []stat.Matched) stat.Noninferiority { return stat.NoninferiorFixed(x, margin) },
		} {
			n, w := test(equal), test(other)
			printed[2*i] += n.Finds / float64(draws)
			printed[2*i+1] += n.Passing / float64(draws)
			if w.Fails(stat.FailLevel) && !w.Passes(stat.PassLevel) {
				seen[2*i] += 1 / float64(draws)
			}
			if n.Passes(stat.PassLevel) {
				seen[2*i+1] += 1 / float64(draws)
			}
		}
	}
	return printed, seen
}
