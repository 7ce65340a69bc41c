package stat_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/assay-eval/assay/internal/result/stat"
)

// judgements draws trials of which people would pass a share, a judge that errs in a share, and the labels of
// some. Each task has as many trials as repeats, whose truth is equal with the probability alike.
func judgements(r *rand.Rand, trials, labels, repeats int, rate, errs, alike float64) []stat.Judgement {
	var all []stat.Judgement
	var first bool
	for i := range trials {
		truth := r.Float64() < rate
		if i%repeats == 0 {
			first = truth
		} else if r.Float64() < alike {
			truth = first
		}
		j := stat.Judgement{Task: fmt.Sprint(i / repeats), Passed: truth != (r.Float64() < errs)}
		if i < labels {
			j.Person = &truth
		}
		all = append(all, j)
	}
	return all
}

// TestAgreeCovers counts how often the interval of the corrected rate holds the truth.
func TestAgreeCovers(t *testing.T) {
	t.Parallel()
	studies := 200
	if testing.Short() {
		studies = 100
	}
	r := rand.New(rand.NewPCG(11, 12))
	held, all := 0, 0
	worst := 1.0
	for _, trials := range []int{60, 200} {
		for _, rate := range []float64{.3, .6, .9} {
			for _, errs := range []float64{.1, .2} {
				n := 0
				for range studies {
					a := stat.Agree(judgements(r, trials, trials/2, 1, rate, errs, 0), .95)
					if a.Corrected.Interval.Low <= rate && rate <= a.Corrected.Interval.High {
						n++
					}
				}
				held, all = held+n, all+studies
				worst = min(worst, float64(n)/float64(studies))
				t.Logf("%d trials, rate %.1f, errors %.1f: %.3f", trials, rate, errs, float64(n)/float64(studies))
			}
		}
	}
	// Four standard errors of the mean, and of the worst of twelve.
	mean := float64(held) / float64(all)
	if bound := 4 * math.Sqrt(.05*.95/float64(all)); math.Abs(mean-.95) > bound+.01 {
		t.Errorf("the interval holds the truth in %.1f %% of the studies", 100*mean)
	}
	if bound := 4 * math.Sqrt(.05*.95/float64(studies)); worst < .95-bound {
		t.Errorf("under one condition, it does in %.1f %%", 100*worst)
	}
}

// A judge that agrees with people on everything needs no correction, and one that is always wrong is corrected to
// the truth; labels of all trials leave nothing to correct.
func TestAgreeLimits(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	right := stat.Agree(judgements(r, 100, 100, 1, .7, 0, 0), .95)
	if right.Raw.Value != 1 || right.Kappa.Value != 1 || right.Corrected.Value != right.Rate.Value {
		t.Errorf("a judge without errors: %+v", right)
	}
	if right.Kappa.Interval.Low > .99 || right.Kappa.Interval.Low < .8 {
		t.Errorf("100 labels without an error show a kappa of at least %.2f", right.Kappa.Interval.Low)
	}
	wrong := stat.Agree(judgements(r, 100, 100, 1, .7, 1, 0), .95)
	if wrong.Raw.Value != 0 || wrong.Kappa.Value >= 0 || math.Abs(wrong.Corrected.Value-(1-wrong.Rate.Value)) > 1e-9 {
		t.Errorf("a judge that is always wrong: %+v", wrong)
	}
	none := stat.Agree(judgements(r, 100, 0, 1, .7, .1, 0), .95)
	if none.Labelled != 0 || none.Corrected.Interval.High-none.Corrected.Interval.Low < .7 {
		t.Errorf("without a label, the corrected rate is %+v", none.Corrected)
	}
	empty := stat.Agree(nil, .95)
	if math.IsNaN(empty.Corrected.Value) || empty.Judged != 0 {
		t.Errorf("without a trial: %+v", empty)
	}
}

// Repeats of the same tasks tell less than as many tasks.
func TestAgreeKnowsTasks(t *testing.T) {
	t.Parallel()
	wider := 0
	for seed := range uint64(20) {
		apart := stat.Agree(judgements(rand.New(rand.NewPCG(seed, 1)), 120, 60, 1, .6, .1, 0), .95)
		alike := stat.Agree(judgements(rand.New(rand.NewPCG(seed, 1)), 120, 60, 6, .6, .1, 1), .95)
		if width := func(e stat.Inferred) float64 { return e.Interval.High - e.Interval.Low }; width(alike.Corrected) > width(apart.Corrected) {
			wider++
		}
	}
	if wider < 16 {
		t.Errorf("the interval is wider for repeats in %d of 20 draws", wider)
	}
}
