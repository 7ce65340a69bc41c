package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// nested returns runs with the given outcomes, by task, luck and replay.
func nested(outcomes [][]string) (tasks []stat.Repeated) {
	for _, lucks := range outcomes {
		var runs []stat.Run
		for luck, text := range lucks {
			for _, c := range text {
				runs = append(runs, stat.Run{Luck: luck, Full: c == '1'})
			}
		}
		tasks = append(tasks, stat.Repeated{Conditions: [][]stat.Run{runs}, Names: []int{0}})
	}
	return tasks
}

// TestSplitReference compares with the estimators of the analysis of variance of a balanced nested design
// for these outcomes, which Python computed from mean squares: 0.1018519, 0.0416667 and 0.1250000 for task,
// luck and model.
func TestSplitReference(t *testing.T) {
	t.Parallel()
	s := stat.SplitVariance(nested([][]string{{"11", "11", "10"}, {"00", "01", "00"}, {"11", "00", "10"}, {"11", "11", "11"}}), false)
	near(t, "task", s.Task.Value, 0.3793103448275862, 1e-9)
	near(t, "luck", s.Luck.Value, 0.15517241379310345, 1e-9)
	near(t, "model", s.Model.Value, 0.4655172413793103, 1e-9)
}

func TestSplitExtremes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name              string
		outcomes          [][]string
		task, luck, model float64
	}{
		{"task", [][]string{{"11", "11"}, {"00", "00"}, {"11", "11"}, {"00", "00"}}, 1, 0, 0},
		{"luck", [][]string{{"11", "00"}, {"00", "11"}, {"11", "00"}, {"00", "11"}}, 0, 1, 0},
		{"model", [][]string{{"10", "01"}, {"10", "10"}, {"01", "01"}, {"10", "01"}}, 0, 0, 1},
	} {
		s := stat.SplitVariance(nested(tc.outcomes), false)
		near(t, tc.name+": task", s.Task.Value, tc.task, 1e-9)
		near(t, tc.name+": luck", s.Luck.Value, tc.luck, 1e-9)
		near(t, tc.name+": model", s.Model.Value, tc.model, 1e-9)
		if tc.name == "task" && (s.Task.Interval.Low > .7 || s.Model.Interval.High < .3) {
			t.Errorf("four tasks look certain: %+v", s)
		}
	}
}

// TestSplitRoundsAlike repeats a split over several conditions, whose figures are compared between reports.
func TestSplitRoundsAlike(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var tasks []stat.Repeated
	for range 5 {
		var task stat.Repeated
		for condition := range 7 {
			var runs []stat.Run
			for luck := range 3 {
				runs = append(runs, stat.Run{Luck: luck, Full: r.IntN(2) > 0}, stat.Run{Luck: luck, Full: r.IntN(2) > 0})
			}
			task.Conditions, task.Names = append(task.Conditions, runs), append(task.Names, condition)
		}
		tasks = append(tasks, task)
	}
	first := stat.SplitVariance(tasks, false)
	for range 50 {
		if again := stat.SplitVariance(tasks, false); again != first {
			t.Fatalf("%+v, and then %+v", first, again)
		}
	}
}

func TestSplitNeedsReplaysAndRepeats(t *testing.T) {
	t.Parallel()
	for _, outcomes := range [][][]string{
		nil, {{"11", "11"}}, {{"1", "0"}, {"1", "1"}}, {{"10"}, {"11"}}, {{"11", "11"}, {"11", "11"}},
	} {
		if s := stat.SplitVariance(nested(outcomes), false); s.Task.Tasks+s.Luck.Tasks+s.Model.Tasks > 0 {
			t.Errorf("%v: %+v", outcomes, s)
		}
	}
}

// TestSplitLaws checks that shares are within their intervals and [0,1], and that neither the meaning of
// success nor the order of tasks matters.
func TestSplitLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lucks := rapid.SliceOfN(rapid.StringMatching("[01]{2,3}"), 2, 3)
		outcomes := rapid.SliceOfN(lucks, 2, 8).Draw(t, "outcomes")
		s := stat.SplitVariance(nested(outcomes), false)
		other := nested(outcomes)
		for _, task := range other {
			for k := range task.Conditions[0] {
				task.Conditions[0][k].Full = !task.Conditions[0][k].Full
			}
		}
		slices.Reverse(other)
		again := stat.SplitVariance(other, false)
		for i, e := range []stat.Estimate{s.Task, s.Luck, s.Model} {
			o := []stat.Estimate{again.Task, again.Luck, again.Model}[i]
			if math.Abs(e.Value-o.Value) > 1e-9 || e.Tasks != o.Tasks {
				t.Fatalf("%+v, and %+v of the opposite", s, again)
			}
			if e.Tasks > 0 && !(e.Interval.Low >= 0 && e.Interval.Low <= e.Value && e.Value <= e.Interval.High && e.Interval.High <= 1) {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// TestSplitFindsTruth has tasks of rates .1 and .9, luck that turns a quarter of them over, and a model
// that does otherwise in a tenth of its runs.
func TestSplitFindsTruth(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var outcomes [][]string
	for range 20_000 {
		good := r.IntN(2) > 0
		lucks := make([]string, 2)
		for i := range lucks {
			works := good != (r.Float64() < .25)
			for range 2 {
				text := "0"
				if works != (r.Float64() < .1) {
					text = "1"
				}
				lucks[i] += text
			}
		}
		outcomes = append(outcomes, lucks)
	}
	s := stat.SplitVariance(nested(outcomes), true)
	// With d = 1 - 2·.1 and e = 1 - 2·.25, a run's mean is ½ ± d·e/2 by task, and ½ ± d/2 by luck.
	near(t, "task", s.Task.Value, .64*.25, .02)
	near(t, "luck", s.Luck.Value, .64*.75, .02)
	near(t, "model", s.Model.Value, .36, .02)
}
