package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/stat"
)

// sharedTasks draws tasks of 1 to 8 models, some of which miss trials.
func sharedTasks(t *rapid.T) []stat.Shared {
	models := rapid.IntRange(1, 8).Draw(t, "models")
	skill := rapid.SliceOfN(rapid.Float64Range(0, 1), models, models).Draw(t, "skill")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	most := rapid.IntRange(1, 6).Draw(t, "most trials")
	tasks := make([]stat.Shared, rapid.IntRange(1, 40).Draw(t, "tasks"))
	for i := range tasks {
		tasks[i].Sequence = i / 2
		for range 1 + r.IntN(2) {
			cell := make([]stat.Group, models)
			for m := range cell {
				cell[m].N = r.IntN(most + 1)
				for range cell[m].N {
					if r.Float64() < skill[m] {
						cell[m].Full++
					}
				}
			}
			tasks[i].Cells = append(tasks[i].Cells, cell)
		}
	}
	return tasks
}

// What a ranking says in one way never contradicts what it says in another.
func TestRankNeverContradictsItself(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := stat.Rank(sharedTasks(t), rapid.Bool().Draw(t, "by sequence"))
		k := len(r.Order)
		for place, m := range r.Order {
			if place > 0 && r.Models[r.Order[place-1]].Rate < r.Models[m].Rate {
				t.Fatalf("order %v of %v", r.Order, r.Models)
			}
			first, last := 1, k
			for other, o := range r.Order {
				switch {
				case r.Beats(m, o) && r.Models[m].Rate <= r.Models[o].Rate:
					t.Fatalf("%d beats %d with a rate that is not higher", m, o)
				case r.Beats(m, o) && r.Beats(o, m):
					t.Fatalf("%d and %d beat each other", m, o)
				}
				if r.Beats(o, m) {
					first++
				}
				if r.Beats(m, o) {
					last--
				}
				for _, third := range r.Order[other:] {
					if r.Beats(m, o) && !r.Beats(m, third) {
						t.Fatalf("%d beats %d, but not the lower %d", m, o, third)
					}
				}
				if r.Splits(place) && other > place && !r.Beats(m, o) {
					t.Fatalf("a split after %d, which does not beat %d", m, o)
				}
			}
			x := r.Models[m]
			if x.First != first || x.Last != last || x.Best != (first == 1 || !r.Beats(r.Order[0], m)) {
				t.Fatalf("model %d: %+v, want ranks %d to %d", m, x, first, last)
			}
		}
	})
}

// With two models and few tasks, p is that of the exact sign-flip test, computed in another way.
func TestRankIsExactForTwo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		var tasks []stat.Shared
		var differences []int
		for range n {
			a, b := rapid.IntRange(0, 4).Draw(t, "a"), rapid.IntRange(0, 4).Draw(t, "b")
			differences = append(differences, a-b)
			tasks = append(tasks, stat.Shared{Cells: [][]stat.Group{{{Full: a, N: 4}, {Full: b, N: 4}}}})
		}
		sum := func(signs int) (s int) {
			for i, d := range differences {
				s += d * (1 - 2*(signs>>i&1))
			}
			return max(s, -s)
		}
		as := 0
		for signs := range 1 << n {
			if sum(signs) >= sum(0) {
				as++
			}
		}
		want := float64(as) / float64(int(1)<<n)
		r := stat.Rank(tasks, false)
		if got := min(r.P(0, 1), r.P(1, 0)); math.Abs(got-want) > 1e-12 {
			t.Fatalf("p %v, want %v", got, want)
		}
	})
}

// A model that is not above the others by itself cannot be above them together.
func TestRankOfClearDifferences(t *testing.T) {
	t.Parallel()
	var tasks []stat.Shared
	for i := range 30 {
		full := func(most int) stat.Group { return stat.Group{Full: max(0, most-i%2), N: 4} }
		tasks = append(tasks, stat.Shared{Cells: [][]stat.Group{{full(2), full(4), full(0), full(4)}}})
	}
	r := stat.Rank(tasks, false)
	if !slices.Equal(r.Order, []int{1, 3, 0, 2}) || r.Splits(0) || !r.Splits(1) || !r.Splits(2) {
		t.Errorf("order %v, splits %v %v %v", r.Order, r.Splits(0), r.Splits(1), r.Splits(2))
	}
	if r.Needed != 8 {
		t.Errorf("four models need %d clusters, want 8", r.Needed)
	}
	few := stat.Rank(tasks[:6], false)
	if few.Clusters >= few.Needed {
		t.Errorf("%d clusters are enough", few.Clusters)
	}
	if one := stat.Rank(nil, false); len(one.Order) != 0 {
		t.Errorf("%+v", one)
	}
}

// equalModels draws tasks that all models find equally hard.
func equalModels(r *rand.Rand, models, tasks, most int) (out []stat.Shared) {
	for range tasks {
		p := min(1, max(0, .7+.25*r.NormFloat64()))
		cell := make([]stat.Group, models)
		for m := range cell {
			cell[m].N = most
			if most > 3 {
				cell[m].N = 1 + r.IntN(most)
			}
			cell[m].Full = betaBinomial(r, cell[m].N, p, 0)
		}
		out = append(out, stat.Shared{Cells: [][]stat.Group{cell}})
	}
	return out
}

// At most 5 % of rankings of equal models have a difference; 2.5 standard errors are 2 points. A
// model that is better by 30 points is found.
func TestRankLevel(t *testing.T) {
	simulates(t, "2,100 rankings")
	const draws = 700
	for i, f := range []struct{ models, tasks, most int }{{3, 12, 3}, {5, 30, 3}, {5, 30, 5}} {
		r := rand.New(rand.NewPCG(uint64(i), 3))
		wrong := 0
		for range draws {
			x := stat.Rank(equalModels(r, f.models, f.tasks, f.most), false)
			if x.Beats(x.Order[0], x.Order[f.models-1]) {
				wrong++
			}
		}
		t.Logf("%+v: %.3f", f, float64(wrong)/draws)
		if wrong > draws*7/100 {
			t.Errorf("%+v: a difference in %d of %d", f, wrong, draws)
		}
	}
}

func BenchmarkRankOf40(b *testing.B) {
	r := rand.New(rand.NewPCG(4, 4))
	tasks := equalModels(r, 40, 500, 3)
	for b.Loop() {
		stat.Rank(tasks, false)
	}
}
