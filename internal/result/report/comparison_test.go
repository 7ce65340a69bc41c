package report_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"pgregory.net/rapid"
)

// Counts of cells add up. Comparisons are on tasks that both sides tried.
func TestComparisonsUseSharedTasks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s scene
		full := make(map[string]int)
		for _, m := range []string{"a", "b"} {
			for _, v := range []string{"baseline", "optimal"} {
				n := rapid.IntRange(0, 12).Draw(t, "n")
				s.play(m, v, n, func(i int, a *assay.Attempt) {
					if rapid.Bool().Draw(t, "fails") {
						a.Level = assay.Failure
						return
					}
					full[m+v]++
				})
			}
		}
		a, err := report.Design{}.Analyze(
			"e", slices.Values(s.trials), all(s.attempts...), report.Beside{},
		)
		if err != nil {
			t.Fatal(err)
		}
		done := 0
		for _, c := range rows[row](a.Cells) {
			done += c.Done
			if c.Full != full[c.Model+c.Variant] || c.FullInterval.Low > c.FullRate ||
				c.FullInterval.High < c.FullRate {
				t.Fatalf("%+v", c)
			}
		}
		if done != len(s.attempts) || a.Done != done {
			t.Fatalf("cells have %d outcomes, the table %d, want %d", done, a.Done, len(s.attempts))
		}
		for _, p := range a.Variants {
			both := min(played(s, p.Model, p.A), played(s, p.Model, p.B))
			if p.Tasks != both || p.Q < p.P-1e-12 {
				t.Fatalf("%+v over %d tasks, want %d that both tried", p, p.Tasks, both)
			}
		}
	})
}

func played(s scene, model, variant string) (n int) {
	for _, t := range s.trials {
		if t.Model == model && t.Variant == variant {
			n++
		}
	}
	return n
}

// Exchanging the sides reverses all signs and flips. Trials of only one side count on neither, and
// a side does not differ from itself.
func TestExchangingSidesReversesSigns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		side := func(name, variant string) []assay.Attempt {
			var s scene
			s.play(
				"m",
				variant,
				rapid.IntRange(1, 15).Draw(t, name),
				func(i int, a *assay.Attempt) {
					if rapid.Bool().Draw(t, "fails") {
						a.Level = assay.Failure
					}
				},
			)
			return s.attempts
		}
		a, b := side("a", "baseline"), side("b", "optimal")
		ab, err := report.Compare("a", "b", stat.Auto, all(a...), all(b...))
		if err != nil {
			t.Fatal(err)
		}
		ba, err := report.Compare("b", "a", stat.Auto, all(b...), all(a...))
		if err != nil {
			t.Fatal(err)
		}
		flips := 0
		for i := range min(len(a), len(b)) {
			if a[i].Level != b[i].Level {
				flips++
			}
		}
		if ab.Whole.Tasks != min(len(a), len(b)) || ab.Worse+ab.Better != flips ||
			len(ab.Flips) != flips {
			t.Fatalf(
				"%d tasks and %d + %d flips, want %d and %d", ab.Whole.Tasks, ab.Worse, ab.Better,
				min(len(a), len(b)), flips,
			)
		}
		if ab.Whole.Difference != -ba.Whole.Difference || ab.Whole.P != ba.Whole.P ||
			ab.Worse != ba.Better {
			t.Fatalf("%+v and, exchanged, %+v", ab.Whole, ba.Whole)
		}
		if len(ab.Differ) != 1 || ab.Differ[0].A != "baseline" || ab.Differ[0].B != "optimal" {
			t.Fatalf("they differ in %v", ab.Differ)
		}
		replays := slices.Clone(a) // of the same luck, with the other outcome
		for i := range replays {
			replays[i].ID, replays[i].Replay = "replay of "+replays[i].ID, 1
			if replays[i].Level = assay.FullSuccess; a[i].Level == assay.FullSuccess {
				replays[i].Level = assay.Failure
			}
		}
		more, err := report.Compare("a", "b", stat.Auto, all(append(replays, a...)...), all(b...))
		if err != nil || more.Whole != ab.Whole || more.A.Trials != len(a) || more.A.Replays != len(a) {
			t.Fatalf("with replays: %+v, %v, want %+v", more, err, ab.Whole)
		}
		aa, err := report.Compare("a", "a", stat.Auto, all(a...), all(a...))
		if err != nil || aa.Whole.Difference != 0 || aa.Shared != len(a) || len(aa.Flips) > 0 {
			t.Fatalf("a side against itself: %+v, %v", aa, err)
		}
		again := slices.Clone(a) // the same trials, played by another run
		for i := range again {
			again[i].Run = "later"
		}
		aa, err = report.Compare("a", "again", stat.Auto, all(a...), all(again...))
		if err != nil || aa.Shared != 0 || aa.Whole.Tasks != len(a) {
			t.Fatalf("two runs of the same trials: %+v, %v", aa, err)
		}
	})
	checkMatching(t)
	var s, other scene
	s.play("m", "baseline", 3, func(int, *assay.Attempt) {})
	other.play("n", "baseline", 3, func(int, *assay.Attempt) {})
	for i := range other.attempts {
		other.attempts[i].Task = "elsewhere"
	}
	_, err := report.Compare("s", "other", stat.Auto, all(s.attempts...), all(other.attempts...))
	if err == nil {
		t.Error("sides without a common task compare")
	}
}

// checkMatching checks that trials with other seeds and settings are different trials, and that the
// factors in which the sides differ are named.
func checkMatching(t *testing.T) {
	t.Helper()
	side := func(
		model string, seeds []int64, failures []float64, level assay.Level,
	) (all []assay.Attempt) {
		for _, seed := range seeds {
			for _, burst := range failures {
				for i := range 5 {
					cell := assay.Cell{
						Model: model, Variant: "optimal", Difficulty: "easy",
						TaskType: "basic_task", Reliability: .8,
					}
					a := assay.Attempt{
						Trial: assay.NewTrial(
							cell, assay.TaskRef{ID: assay.TaskID(fmt.Sprint("t", i)), Digest: "d"},
							assay.Setting{World: "assay-1", Burst: burst}, seed, 1,
						),
					}
					a.Level = level
					all = append(all, a)
				}
			}
		}
		return all
	}
	compare := func(a, b []assay.Attempt) *report.Comparison {
		v, err := report.Compare("a", "b", stat.Auto, all(a...), all(b...))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	both, chances := []int64{1, 2}, []float64{0, .5}
	v := compare(
		side("m", both, chances, assay.Failure),
		side("n", both, chances, assay.FullSuccess),
	)
	if v.A.Matched != 20 || v.B.Matched != 20 || v.Better != 20 || !v.SameLuck ||
		len(v.Cells) != 2 ||
		v.Whole.Tasks != 5 {
		t.Errorf("two seeds and two settings: %+v", v)
	}
	if v.Whole.RateA != 0 || v.Whole.RateB != 1 || v.Whole.OnlyA != 0 || v.Whole.OnlyB != 5 ||
		v.Whole.Difference != 1 {
		t.Errorf("sides: %+v", v.Whole)
	}
	v = compare(
		side("m", both[:1], chances[:1], assay.Failure),
		side("m", both[1:], chances[1:], assay.FullSuccess),
	)
	if v.SameLuck || v.Better != 5 || len(v.Differ) != 1 || v.Differ[0].Factor != "failures" {
		t.Errorf("another seed and setting: %+v", v)
	}
	other := side("n", both, chances, assay.FullSuccess)
	for i := range other {
		if other[i].Task == "t0" {
			other[i].TaskDigest = "another"
		}
	}
	if v = compare(side("m", both, chances, assay.Failure), other); v.Unlike != 2 ||
		v.Whole.Tasks != 4 { // once in each condition
		t.Errorf("another task of the same name: %+v", v)
	}
}

// TestPhrasingsAreOfOneTask compares two models at tasks in two phrasings, of which one text differs.
func TestPhrasingsAreOfOneTask(t *testing.T) {
	t.Parallel()
	side := func(model string, full bool, changed string) iter.Seq2[assay.Attempt, error] {
		return func(yield func(assay.Attempt, error) bool) {
			for i := range 6 {
				for _, phrasing := range []string{"", assay.Casual} {
					cell := cellOf(model, "easy", 1)
					cell.Phrasing = phrasing
					ref := assay.TaskRef{ID: assay.TaskID(fmt.Sprint("t", i)), Digest: "d" + phrasing}
					if i == 0 && phrasing != "" {
						ref.Digest += changed
					}
					level := assay.Failure
					if full {
						level = assay.FullSuccess
					}
					if !yield(outcome(assay.NewTrial(cell, ref, assay.Setting{}, 1, 1), level, 3), nil) {
						return
					}
				}
			}
		}
	}
	for changed, unlike := range map[string]int{"": 0, " in other words": 1} {
		c, err := report.Compare("m", "n", stat.Auto, side("m", false, ""), side("n", true, changed))
		if err != nil {
			t.Fatal(err)
		}
		if c.Whole.Tasks != 6 || c.Population.Tasks != 6 || c.Unlike != unlike || c.A.Matched != 12-unlike {
			t.Errorf("changed %q: %d tasks in a population of %d, %d unlike, %d trials", changed, c.Whole.Tasks, c.Population.Tasks,
				c.Unlike, c.A.Matched)
		}
	}
}
