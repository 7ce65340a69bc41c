package stat_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// tried returns a task made of its cells. Each cell lists its repeats, 1 for a
// fulfilled one and 0 for another.
func tried(cells ...[]int) stat.Task {
	t := stat.Task{Cells: make([]stat.Group, len(cells))}
	for i, cell := range cells {
		t.Repeats = append(t.Repeats, make([]stat.Group, max(0, len(cell)-len(t.Repeats)))...)
		for j, full := range cell {
			for _, g := range []*stat.Group{&t.Cells[i], &t.Repeats[j]} {
				g.Full += full
				g.N++
			}
		}
	}
	return t
}

// TestNoiseReference uses four tasks with two repeats each, one of which
// flipped. The variance between its repeats is 1/2, so the difference of two
// runs of four tasks has a variance of 2·(1/8)/4 = 1/16. Only one task shows a
// variance, so Limit is the largest possible difference of four tasks, whose
// variance is at most 2·(1/4)/4.
func TestNoiseReference(t *testing.T) {
	t.Parallel()
	got := stat.Noise([]stat.Task{
		tried([]int{1, 1}), tried([]int{1, 0}), tried([]int{0, 0}),
		tried([]int{1, 1}),
		{},
	}, false)
	want := stat.NoiseFloor{
		Tasks: 4, Repeated: 4, Flip: .25, FlipInterval: stat.Wilson(1, 4, stat.Z95),
		Unstable: .25, SD: .25, Change: .25 * math.Sqrt(2/math.Pi),
		Limit: math.Sqrt(1./8) * stat.Z95,
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNoiseCells has a task whose two cells flip together, with a variance of
// 1/2 between repeats, and one whose cells flip in opposite directions, with a
// variance of 0. Both flip in each cell. The first has 2 of 5 trials, so the
// difference of two runs has a variance of 2·(1/2)·(2/5)². The third task was
// tried once and is assumed to be like the others, which adds a factor of
// (4+4+1)/(4+4).
func TestNoiseCells(t *testing.T) {
	t.Parallel()
	got := stat.Noise([]stat.Task{
		tried([]int{1, 0}, []int{1, 0}),
		tried([]int{1, 0}, []int{0, 1}), tried([]int{1}),
	}, false)
	if got.Tasks != 3 || got.Repeated != 2 || got.Flip != 1 || got.Unstable != 1 {
		t.Errorf("got %+v", got)
	}
	near(t, "SD", got.SD, math.Sqrt(.16*9/8), 1e-12)
}

// TestNoiseShort checks that a repeat that lacks trials has less weight. Rates
// of 1, 1/2 and 1 with the weights 2, 2 and 1 have a mean of 4/5 and the
// unbiased variance (2·.04 + 2·.09 + .04)/(5 - 9/5) = 3/32.
func TestNoiseShort(t *testing.T) {
	t.Parallel()
	task := stat.Task{
		Cells:   []stat.Group{{3, 3}, {1, 2}},
		Repeats: []stat.Group{{2, 2}, {1, 2}, {1, 1}},
	}
	got := stat.Noise([]stat.Task{task, task}, false)
	near(t, "SD", got.SD, math.Sqrt(2*2*4*3./32)/4, 1e-12)
	if got.Repeated != 2 {
		t.Errorf("got %+v", got)
	}
}

// TestNoiseUnknown checks that without repeats, runs may differ as much as fair
// coins. If no repeats differed, runs may differ as much as the largest
// plausible share of flips allows.
func TestNoiseUnknown(t *testing.T) {
	t.Parallel()
	got := stat.Noise([]stat.Task{tried([]int{1}), tried([]int{0}), {}}, false)
	want := stat.NoiseFloor{Tasks: 2, FlipInterval: stat.Interval{High: 1}, Limit: stat.Z95 / 2}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	same := make([]stat.Task, 50)
	for i := range same {
		same[i] = tried([]int{1, 1, 1}, []int{0, 0, 0})
	}
	got, flips := stat.Noise(same, false), stat.Wilson(0, 50, stat.Z95)
	want = stat.NoiseFloor{
		Tasks: 50, Repeated: 50, FlipInterval: flips,
		Limit: stat.Z95 * math.Sqrt(flips.High/50),
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-12)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := stat.Noise(nil, false); got.Limit != 0 || got.Tasks != 0 {
		t.Errorf("Noise(nil) = %+v", got)
	}
}

// A bench is a set of tasks in cells, each with its own probability. In a share
// of the repeats, all cells of a task have the same luck.
type bench struct {
	chances [][]float64 // by task and cell
	shared  float64
}

// newBench draws tasks whose probabilities are a power of a uniform number, and
// cells that are better or worse for all tasks. The given number of tasks in a
// row are alike.
func newBench(r *rand.Rand, tasks, cells int, shared, power float64, alike int) bench {
	b := bench{make([][]float64, tasks), shared}
	var p float64
	for i := range b.chances {
		b.chances[i] = make([]float64, cells)
		if i%alike == 0 {
			p = math.Pow(r.Float64(), power)
		}
		for j := range cells {
			b.chances[i][j] = math.Pow(p, 1+.5*float64(j)/float64(cells))
		}
	}
	return b
}

// run tries a task once in each cell.
func (b bench) run(r *rand.Rand, task int, cell func(at, full int)) {
	luck, shared := r.Float64(), r.Float64() < b.shared
	for j, p := range b.chances[task] {
		if !shared {
			luck = r.Float64()
		}
		full := 0
		if luck < p {
			full = 1
		}
		cell(j, full)
	}
}

// repeated tries all tasks the given number of times.
func (b bench) repeated(r *rand.Rand, repeats int) []stat.Task {
	tasks := make([]stat.Task, len(b.chances))
	for i := range tasks {
		t := stat.Task{
			Cells:   make([]stat.Group, len(b.chances[i])),
			Repeats: make([]stat.Group, repeats),
		}
		for repeat := range repeats {
			b.run(r, i, func(j, full int) {
				t.Cells[j].Full += full
				t.Cells[j].N++
				t.Repeats[repeat].Full += full
				t.Repeats[repeat].N++
			})
		}
		tasks[i] = t
	}
	return tasks
}

// rate returns the rate of a run with one repeat.
func (b bench) rate(r *rand.Rand) float64 {
	full, n := 0, 0
	for i := range b.chances {
		b.run(r, i, func(_, f int) { full, n = full+f, n+1 })
	}
	return float64(full) / float64(n)
}

// TestNoiseLimit checks the claims in the comment of Noise: how many
// differences between two new runs exceed the limit, whether the cells of a
// task share their luck or not. With 2,000 experiments the standard error is
// 0.5 points at 5 %, and the bounds are the claims plus one standard error. SD²
// is unbiased, and 2,000 squares of normal numbers have an error of 3.2 %.
func TestNoiseLimit(t *testing.T) {
	simulates(t, "54,000 noise floors")
	r := rand.New(rand.NewPCG(2, 9))
	for _, tc := range []struct {
		tasks, cells, repeats int
		power                 float64
		least                 float64
		alike                 int // tasks of a sequence
	}{
		{50, 1, 3, 1, .03, 1},
		{50, 8, 2, 1, .03, 1},
		{50, 8, 5, .3, .03, 1},
		{100, 4, 3, 3, .03, 1},
		{100, 1, 3, 1, .03, 8},
		{20, 8, 3, 1, 0, 1},
		{10, 8, 2, 1, 0, 1},
		{10, 8, 10, 1, 0, 1},
		{10, 16, 3, .2, 0, 1},
	} {
		for _, shared := range []float64{0, .5, 1} {
			const experiments = 2000
			var variance, change, seen, seenChange, beyond float64
			for range experiments {
				b := newBench(r, tc.tasks, tc.cells, shared, tc.power, tc.alike)
				f := stat.Noise(b.repeated(r, tc.repeats), tc.alike > 1)
				difference := b.rate(r) - b.rate(r)
				variance += f.SD * f.SD / experiments
				change += f.Change / experiments
				seen += difference * difference / experiments
				seenChange += math.Abs(difference) / experiments
				if math.Abs(difference) > f.Limit {
					beyond += 1. / experiments
				}
			}
			t.Logf("%+v, %v shared: SD %.4f, seen %.4f; change %.4f, seen %.4f; beyond %.3f",
				tc, shared, math.Sqrt(variance), math.Sqrt(seen), change, seenChange, beyond)
			if beyond < tc.least-.005 || beyond > .06+.005 {
				t.Errorf("%+v, %v shared: %.3f of differences are beyond the limit",
					tc, shared, beyond)
			}
			if math.Abs(variance/seen-1) > .1 || math.Abs(change/seenChange-1) > .08 {
				t.Errorf("%+v, %v shared: SD %.4f, seen %.4f; change %.4f, seen %.4f",
					tc, shared, math.Sqrt(variance), math.Sqrt(seen), change, seenChange)
			}
		}
	}
}

// trials draws a task's trials by cell and repeat. Some are missing.
func trials(t *rapid.T) stat.Task {
	cells := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 1), 0, 4), 0, 3).Draw(t, "cells")
	return tried(cells...)
}

func TestNoiseLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.SliceOf(rapid.Custom(trials)).Draw(t, "tasks")
		f := stat.Noise(tasks, false)
		if f.Flip < 0 || f.Flip > 1 || f.Unstable < 0 || f.Unstable > 1 || f.Change > f.SD ||
			f.SD > f.Limit || f.Limit > 1 {
			t.Fatalf("%+v", f)
		}
		if f.Flip < f.FlipInterval.Low-1e-12 || f.Flip > f.FlipInterval.High+1e-12 ||
			(f.Flip > 0) != (f.Unstable > 0) {
			t.Fatalf("%+v", f)
		}
		// A limit of 0 is never certain.
		if f.Tasks > 0 && f.Limit == 0 {
			t.Fatalf("%+v", f)
		}
		// Swapping successes and failures, or reordering tasks and repeats, has
		// no effect.
		for i, task := range tasks {
			for _, groups := range [][]stat.Group{task.Cells, task.Repeats} {
				for j, g := range groups {
					groups[j].Full = g.N - g.Full
				}
			}
			if n := len(task.Repeats); n > 0 {
				task.Repeats[0], task.Repeats[n-1] = task.Repeats[n-1], task.Repeats[0]
			}
			tasks[i], tasks[0] = tasks[0], task
		}
		if m := stat.Noise(tasks, false); !cmp.Equal(f, m, cmpopts.EquateApprox(1e-9, 1e-9)) {
			t.Fatalf("%+v, mirrored %+v", f, m)
		}
	})
}
