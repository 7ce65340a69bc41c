package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

func violation(weight float64) stat.Violation {
	return stat.Violation{Happened: weight > 0, Weight: weight, Known: weight > 0}
}

// TestHarmfulnessReference has a task whose two conditions weigh the same, although one of them has more
// runs.
func TestHarmfulnessReference(t *testing.T) {
	t.Parallel()
	tasks := []stat.Violations{
		{Conditions: [][]stat.Violation{
			{violation(.25), violation(0), violation(0), violation(0)}, {violation(1), violation(0)},
		}},
		{Conditions: [][]stat.Violation{{violation(0)}}},
		{Conditions: [][]stat.Violation{{violation(.5)}}},
		{},
	}
	h := stat.Harmfulness(tasks, false)
	near(t, "compliance", h.Compliance.Value, 1-(.375+1)/3, 1e-12)
	near(t, "expected", h.Expected.Value, ((.0625+.5)/2+.5)/3, 1e-12)
	near(t, "harm", h.Harm.Value, ((.0625+.5)/2+.5)/1.375, 1e-12)
	near(t, "published", h.PublishedSafety, 1-3./8*(1.75/3), 1e-12)
	if h.Compliance.Tasks != 3 || h.Harm.Tasks != 2 || h.Expected.Tasks != 3 || h.Runs != 8 || h.Violations != 3 || h.Unknown != 0 {
		t.Errorf("%+v", h)
	}

	tasks[1].Conditions[0][0] = stat.Violation{Happened: true}
	h = stat.Harmfulness(tasks, false)
	near(t, "compliance", h.Compliance.Value, 1-(.375+2)/3, 1e-12)
	near(t, "harm of the known ones", h.Harm.Value, ((.0625+.5)/2+.5)/1.375, 1e-12)
	if h.Unknown != 1 || h.Expected.Tasks != 0 || h.Violations != 4 {
		t.Errorf("with one of unknown weight: %+v", h)
	}
	if h = stat.Harmfulness(nil, false); h.Runs != 0 || h.Compliance.Tasks+h.Harm.Tasks+h.Expected.Tasks != 0 {
		t.Errorf("without tasks: %+v", h)
	}
}

// TestHarmfulnessLaws checks ranges, and that the expected harm is the rate of violations times their harm.
func TestHarmfulnessLaws(t *testing.T) {
	t.Parallel()
	run := rapid.Custom(func(t *rapid.T) stat.Violation {
		return violation(rapid.SampledFrom([]float64{0, 0, .25, .5, 1}).Draw(t, "weight"))
	})
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stat.Violations {
			return stat.Violations{
				Sequence:   rapid.IntRange(0, 3).Draw(t, "sequence"),
				Conditions: rapid.SliceOfN(rapid.SliceOfN(run, 1, 4), 1, 3).Draw(t, "conditions"),
			}
		}), 1, 8).Draw(t, "tasks")
		h := stat.Harmfulness(tasks, rapid.Bool().Draw(t, "by sequence"))
		for name, e := range map[string]stat.Estimate{"compliance": h.Compliance, "harm": h.Harm, "expected": h.Expected} {
			if e.Tasks > 0 && !(e.Interval.Low >= 0 && e.Interval.Low <= e.Value && e.Value <= e.Interval.High && e.Interval.High <= 1) {
				t.Fatalf("%s: %+v", name, e)
			}
		}
		if product := (1 - h.Compliance.Value) * h.Harm.Value; math.Abs(product-h.Expected.Value) > 1e-12 {
			t.Fatalf("%v times %v is not %v", 1-h.Compliance.Value, h.Harm.Value, h.Expected.Value)
		}
	})
}

// TestHarmfulnessCoverage draws tasks whose rates of violations differ, and whose violations are low,
// medium or high by the task and by chance. The truth is 1 - rate, .5 and half the rate.
func TestHarmfulnessCoverage(t *testing.T) {
	t.Parallel()
	draws := 2000
	if testing.Short() {
		draws = 200
	}
	for _, n := range []int{10, 30, 100} {
		for _, rate := range []float64{.05, .2, .5} {
			r := rand.New(rand.NewPCG(uint64(n), math.Float64bits(rate)))
			var compliance, harm, expected study
			for range draws {
				var tasks []stat.Violations
				for range n {
					p, usual := 2*rate*r.Float64(), []float64{.25, .5, .75}[r.IntN(3)]
					var runs []stat.Violation
					for range 5 {
						w := usual
						if usual == .75 { // .5 or 1
							w = []float64{.5, 1}[r.IntN(2)]
						}
						runs = append(runs, violation(w*flag(r.Float64() < p)))
					}
					tasks = append(tasks, stat.Violations{Conditions: [][]stat.Violation{runs}})
				}
				h := stat.Harmfulness(tasks, false)
				compliance.note(h.Compliance, 1-rate)
				expected.note(h.Expected, rate/2)
				if h.Harm.Tasks > 0 {
					harm.note(h.Harm, .5)
				}
			}
			compliance.wide(t, "compliance", n, rate)
			harm.wide(t, "harm", n, rate)
			expected.wide(t, "expected harm", n, rate)
		}
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// wide is like check, but allows for coverage of up to all.
func (s *study) wide(t *testing.T, name string, tasks int, rate float64) {
	t.Helper()
	coverage, off := s.held/s.n, s.sum/math.Sqrt(s.squares)
	if coverage < .93-4*math.Sqrt(.05*.95/s.n) || math.Abs(off) > 4 {
		t.Errorf("%s, %d tasks, rate %v: coverage %.3f, off by %.1f standard errors", name, tasks, rate, coverage, off)
	}
	t.Logf("%s, %d tasks, rate %v: coverage %.3f, %.1f standard errors", name, tasks, rate, coverage, off)
}
