package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// TestPredictabilityReference has figures that Python computed from the definitions by counting pairs
// and prefixes.
func TestPredictabilityReference(t *testing.T) {
	t.Parallel()
	p := stat.Predictability([]stat.Stated{
		stated(0, stat.Statement{.9, true}, stat.Statement{.8, false}),
		stated(0, stat.Statement{.8, true}, stat.Statement{.3, false}),
		stated(0, stat.Statement{.55, true}, stat.Statement{.1, false}),
		{},
	}, false)
	near(t, "Brier", p.Brier.Value, 0.8345833333333333, 1e-12)
	near(t, "overconfidence", p.Overconfidence.Value, 0.07500000000000001, 1e-12)
	near(t, "discrimination", p.Discrimination.Value, 0.75, 1e-12)
	near(t, "calibration error", p.CalibrationError, 0.2583333333333333, 1e-12)
	near(t, "risk and coverage", p.RiskCoverage, 0.6846846846846848, 1e-12)
	if p.Runs != 6 || p.Brier.Tasks != 3 || len(p.Bins) != 5 {
		t.Errorf("%+v", p)
	}
}

func stated(sequence int, all ...stat.Statement) stat.Stated {
	return stat.Stated{Sequence: sequence, Conditions: [][]stat.Statement{all}}
}

// TestPredictabilityAveragesConditions has a condition with three runs of a task, and another one with one.
func TestPredictabilityAveragesConditions(t *testing.T) {
	t.Parallel()
	p := stat.Predictability([]stat.Stated{{Conditions: [][]stat.Statement{
		{{1, false}, {1, false}, {1, false}}, {{1, true}},
	}}}, false)
	near(t, "Brier", p.Brier.Value, .5, 1e-12)
	near(t, "overconfidence", p.Overconfidence.Value, .5, 1e-12)
	near(t, "calibration error", p.CalibrationError, .75, 1e-12)
}

// TestDiscriminationIgnoresClusters has four tasks. Whether two tasks share a sequence decides about the
// interval, not about the pairs that are compared.
func TestDiscriminationIgnoresClusters(t *testing.T) {
	t.Parallel()
	tasks := []stat.Stated{
		stated(0, stat.Statement{.9, true}, stat.Statement{.2, false}), stated(0, stat.Statement{.95, false}),
		stated(1, stat.Statement{.6, true}), stated(1, stat.Statement{.3, false}),
	}
	one, other := stat.Predictability(tasks, false), stat.Predictability(tasks, true)
	near(t, "discrimination", one.Discrimination.Value, .6, 1e-12) // 3 of 5 pairs
	near(t, "discrimination by sequence", other.Discrimination.Value, .6, 1e-12)
	alone := stat.Predictability(tasks[:2], true)
	near(t, "discrimination in a sequence", alone.Discrimination.Value, 0, 1e-12)
	if alone.Discrimination.Tasks != 2 {
		t.Errorf("%+v", alone.Discrimination)
	}
}

// TestPredictabilityLaws checks ranges and what a change of all confidences does.
func TestPredictabilityLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		statement := rapid.Custom(func(t *rapid.T) stat.Statement {
			return stat.Statement{float64(rapid.IntRange(0, 20).Draw(t, "confidence")) / 20, rapid.Bool().Draw(t, "full")}
		})
		var tasks, opposite []stat.Stated
		for range rapid.IntRange(1, 6).Draw(t, "tasks") {
			all := rapid.SliceOfN(statement, 1, 4).Draw(t, "statements")
			tasks = append(tasks, stated(0, all...))
			var other []stat.Statement
			for _, s := range all {
				other = append(other, stat.Statement{1 - s.Confidence, !s.Full})
			}
			opposite = append(opposite, stated(0, other...))
		}
		p, q := stat.Predictability(tasks, false), stat.Predictability(opposite, false)
		for _, e := range []stat.Estimate{p.Brier, p.Discrimination} {
			if e.Tasks > 0 && !(e.Interval.Low >= 0 && e.Interval.Low <= e.Value+1e-12 && e.Value <= e.Interval.High+1e-12 && e.Interval.High <= 1) {
				t.Fatalf("%+v", p)
			}
		}
		if math.Abs(p.Brier.Value-q.Brier.Value) > 1e-9 || math.Abs(p.Overconfidence.Value+q.Overconfidence.Value) > 1e-9 ||
			math.Abs(p.Discrimination.Value-q.Discrimination.Value) > 1e-9 {
			t.Fatalf("%+v, of the opposite %+v", p, q)
		}
		if !(p.RiskCoverage >= 0 && p.RiskCoverage <= 1 && p.CalibrationError >= 0 && p.CalibrationError <= 1) {
			t.Fatalf("%+v", p)
		}
		runs := 0
		for _, b := range p.Bins {
			runs += b.Runs
		}
		if runs != p.Runs {
			t.Fatalf("%d runs in bins of %d", runs, p.Runs)
		}
	})
}

// TestPredictabilityCoverage checks bias and coverage. A calibrated model states its tasks' rates, which
// are uniform: the truth of 1 - Brier is 1 - E[p(1-p)] = 5/6, and of the area under the curve 5/6, too.
func TestPredictabilityCoverage(t *testing.T) {
	t.Parallel()
	draws := 2000
	if testing.Short() {
		draws = 200
	}
	for _, n := range []int{10, 30, 100} {
		r := rand.New(rand.NewPCG(uint64(n), 1))
		var brier, over, auc study
		chance := 0.
		for range draws {
			var tasks []stat.Stated
			for range n {
				p := r.Float64()
				var all []stat.Statement
				for range 5 {
					all = append(all, stat.Statement{p, r.Float64() < p})
				}
				tasks = append(tasks, stated(0, all...))
			}
			p := stat.Predictability(tasks, false)
			brier.note(p.Brier, 5./6)
			over.note(p.Overconfidence, 0)
			auc.note(p.Discrimination, 5./6)
			chance += (p.CalibrationError - p.ByChance) / float64(draws)
		}
		brier.check(t, "Brier", n)
		over.check(t, "overconfidence", n)
		auc.check(t, "discrimination", n)
		if math.Abs(chance) > .02 {
			t.Errorf("%d tasks: the calibration error of a calibrated model is off by %.3f", n, chance)
		}
	}
}

// A study counts how often intervals hold the truth, and adds up errors.
type study struct{ n, held, sum, squares float64 }

func (s *study) note(e stat.Estimate, truth float64) {
	s.n++
	off := e.Value - truth
	s.sum, s.squares = s.sum+off, s.squares+off*off
	if e.Interval.Low <= truth && truth <= e.Interval.High {
		s.held++
	}
}

// check allows for four standard errors of both.
func (s *study) check(t *testing.T, name string, tasks int) {
	t.Helper()
	coverage, slack := s.held/s.n, 4*math.Sqrt(.05*.95/s.n)
	if coverage < .93-slack || coverage > .975+slack {
		t.Errorf("%s, %d tasks: coverage %.3f", name, tasks, coverage)
	}
	if bias := s.sum / math.Sqrt(s.squares); math.Abs(bias) > 4 {
		t.Errorf("%s, %d tasks: off by %.1f standard errors", name, tasks, bias)
	}
	t.Logf("%s, %d tasks: coverage %.3f, %.1f standard errors", name, tasks, coverage, s.sum/math.Sqrt(s.squares))
}
