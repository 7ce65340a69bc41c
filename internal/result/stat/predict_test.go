package stat_test

import (
	"math/rand/v2"
	"testing"

	"github.com/assay-eval/assay/internal/result/stat"
)

// The ranges that a gate states hold the shares of verdicts on new data of the same kind, within
// seven points: of equal sides that pass, and of losses that are found, spread and in whole tasks.
func TestPowerOfGates(t *testing.T) {
	simulates(t, "10,000 gates")
	const baselines, draws = 12, 300
	for _, c := range []struct {
		versions
		these  bool
		margin float64
	}{
		{versions{tasks: 30, repeats: 4, rate: .9, within: .3, luck: .5}, false, .1},
		{versions{tasks: 60, repeats: 4, rate: .9, within: .3, luck: .5}, true, .05},
		{versions{tasks: 60, repeats: 2, rate: .7, within: .3}, false, .15},
	} {
		rule := stat.GateRule{
			These: c.these, Margin: c.margin, Pass: stat.PassLevel, Fail: stat.FailLevel,
		}
		r := rand.New(rand.NewPCG(8, 13))
		var said [3]stat.Share
		for range baselines {
			p := c.draw(r).Design().Power(rule, 60)
			for i, s := range []stat.Share{p.Passing, p.Finds, p.FindsWhole} {
				said[i].Low += s.Low / baselines
				said[i].High += s.High / baselines
			}
		}
		worse, whole := c.versions, c.versions
		worse.drop, whole.drop, whole.whole = c.margin, c.margin, true
		passing, _ := c.verdicts(c.these, c.margin, draws)
		_, finds := worse.verdicts(c.these, c.margin, draws)
		_, wholly := whole.verdicts(c.these, c.margin, draws)
		for i, seen := range []float64{passing, finds, wholly} {
			t.Logf("%+v: said %.2f, seen %.2f", c, said[i], seen)
			if seen < said[i].Low-.07 || seen > said[i].High+.07 {
				t.Errorf("%+v: said %.2f, seen %.2f", c, said[i], seen)
			}
		}
	}
}
