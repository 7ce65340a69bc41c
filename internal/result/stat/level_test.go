package stat_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assay-eval/assay/internal/result/stat"
)

// An urn describes how two sides try tasks. Chances are logistic in the sum of
// the mean, the condition, the task, its sequence, the side's own effect on the
// sequence, and the true difference. All but the mean and the difference are
// normal with the given standard deviations.
type urn struct {
	tasks      int
	sequences  int // 0 if each task has its own
	conditions int
	repeats    func(r *rand.Rand, condition int) (a, b int)

	mean, task, sequence, own, apart float64
}

// The numbers of trials on two sides. Turned ones differ by condition, as in
// Simpson's paradox.
var (
	single = func(*rand.Rand, int) (a, b int) { return 1, 1 }
	triple = func(*rand.Rand, int) (a, b int) { return 3, 3 }
	lost   = func(r *rand.Rand, _ int) (a, b int) { return 1 + r.IntN(4), 1 + r.IntN(4) }
	turned = func(_ *rand.Rand, condition int) (a, b int) {
		if condition%2 == 0 {
			return 4, 1
		}
		return 1, 4
	}
)

// draw draws tasks. Sequences have unequal numbers of tasks.
func (u urn) draw(r *rand.Rand) []stat.Matched {
	sequences := u.sequences
	if sequences == 0 {
		sequences = u.tasks
	}
	effects := make([][3]float64, sequences)
	for i := range effects {
		effects[i] = [3]float64{
			u.sequence * r.NormFloat64(), u.own * r.NormFloat64(), u.own * r.NormFloat64(),
		}
	}
	tasks := make([]stat.Matched, u.tasks)
	for i := range tasks {
		s := i
		if i >= sequences {
			s = int(math.Pow(r.Float64(), 2) * float64(sequences))
		}
		tasks[i].Sequence = s
		task := u.mean + u.task*r.NormFloat64() + effects[s][0]
		for c := range u.conditions {
			easy, p := u.effect(c), stat.Pair{}
			p.NA, p.NB = u.repeats(r, c)
			p.A = betaBinomial(r, p.NA, logistic(task+easy+effects[s][1]+u.apart/2), 0)
			p.B = betaBinomial(r, p.NB, logistic(task+easy+effects[s][2]-u.apart/2), 0)
			tasks[i].Cells = append(tasks[i].Cells, stat.Cell{Condition: c, Pair: p})
		}
	}
	return tasks
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// truth returns the difference in the population of tasks and sequences.
func (u urn) truth(r *rand.Rand) (difference float64) {
	const draws = 50_000
	spread := math.Sqrt(u.task*u.task + u.sequence*u.sequence + u.own*u.own)
	for range draws {
		x := u.mean + spread*r.NormFloat64()
		for c := range u.conditions {
			at := x + u.effect(c)
			d := logistic(at-u.apart/2) - logistic(at+u.apart/2)
			difference += d / float64(draws*u.conditions)
		}
	}
	return difference
}

// effect returns how much easier a condition is than the mean.
func (u urn) effect(condition int) float64 {
	return []float64{1, -1, .5, -1.5}[condition] * float64(min(1, u.conditions-1))
}

// urns returns designs of independent tasks and of tasks of few sequences.
func urns() map[string]urn {
	all := make(map[string]urn)
	for name, repeats := range map[string]func(*rand.Rand, int) (int, int){
		"single": single, "triple": triple, "turned": turned, "lost": lost,
	} {
		for _, conditions := range []int{1, 4} {
			u := urn{conditions: conditions, repeats: repeats, mean: .8, task: 1}
			for _, u.tasks = range []int{20, 50, 100} {
				all[fmt.Sprintf("%d tasks, %d conditions, %s", u.tasks, conditions, name)] = u
			}
			u.tasks, u.task, u.sequence, u.own = 100, .5, 1, .7
			for _, u.sequences = range []int{7, 13, 25, 50} {
				all[fmt.Sprintf("%d sequences, %d conditions, %s", u.sequences, conditions, name)] = u
			}
		}
	}
	return all
}

// simulates skips a test with -short.
func simulates(t *testing.T, what string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: simulates %s", what)
	}
	t.Parallel()
}

// TestLevelAndCoverage checks that P is below 0.05 in 3 to 6 % of comparisons
// without a difference, that the interval contains the truth in 94 to 97 %, and
// that PConditions is below 0.05 in at most 6 % if conditions are alike. The
// bounds of a single design are wider by three standard errors.
func TestLevelAndCoverage(t *testing.T) {
	simulates(t, "19,200 comparisons")
	r := rand.New(rand.NewPCG(13, 37))
	const draws = 300
	slack := 3 * math.Sqrt(.05*.95/draws)
	var calledMean, heldMean float64
	all := urns()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		u := all[name]
		called, held, uneven := u.shares(r, draws)
		u.apart = .8
		_, also, _ := u.shares(r, draws)
		t.Logf("%s: called %.3f, held %.3f and %.3f, uneven %.3f", name, called, held, also, uneven)
		if called > .06+slack || called < .03-slack {
			t.Errorf("%s: called different in %.3f", name, called)
		}
		if worst := min(held, also); worst < .94-slack {
			t.Errorf("%s: interval holds the truth in %.3f", name, worst)
		}
		if uneven > .06+slack {
			t.Errorf("%s: conditions called different in %.3f", name, uneven)
		}
		calledMean += called / float64(len(all))
		heldMean += also / float64(len(all))
	}
	if calledMean < .03 || calledMean > .06 || heldMean < .94 || heldMean > .97 {
		t.Errorf("on average called different in %.3f, held the truth in %.3f", calledMean, heldMean)
	}
}

// shares returns how often sides are called different, their interval contains
// the truth, and their conditions are called different.
func (u urn) shares(r *rand.Rand, draws int) (called, held, uneven float64) {
	truth := u.truth(r)
	for range draws {
		c := stat.Compare(u.draw(r), u.sequences > 0)
		if c.P < .05 {
			called += 1 / float64(draws)
		}
		if c.Interval.Low <= truth && truth <= c.Interval.High {
			held += 1 / float64(draws)
		}
		if c.PConditions < .05 {
			uneven += 1 / float64(draws)
		}
	}
	return called, held, uneven
}

// TestRatesOfSequencesAreCovered checks the interval of a rate at large if tasks of one sequence
// are one group, and that it is far too narrow if each task is a group.
func TestRatesOfSequencesAreCovered(t *testing.T) {
	simulates(t, "6,000 intervals")
	r := rand.New(rand.NewPCG(13, 13))
	const draws = 1000
	for _, sequences := range []int{13, 25, 50} {
		u := urn{
			tasks: 400, sequences: sequences, conditions: 1, repeats: single, mean: .8, task: .5,
			sequence: 1,
		}
		truth := u.rate(r)
		var at, large float64
		for range draws {
			groups, tasks := make([]stat.Group, sequences), make([]stat.Group, u.tasks)
			for i, task := range u.draw(r) {
				p := task.Cells[0]
				tasks[i] = stat.Group{Full: p.A, N: p.NA}
				groups[task.Sequence].Full += p.A
				groups[task.Sequence].N += p.NA
			}
			holds := func(i stat.Interval) float64 {
				if i.Low <= truth && truth <= i.High {
					return 1. / draws
				}
				return 0
			}
			large += holds(stat.Clustered(groups, .95).Interval)
			at += holds(stat.Clustered(tasks, .95).Interval)
		}
		t.Logf("%d sequences: by sequence %.3f, by task %.3f", sequences, large, at)
		if large < .93 || large > .985 || at > .85 {
			t.Errorf("%d sequences: by sequence %.3f, by task %.3f", sequences, large, at)
		}
	}
}

// rate returns the rate of success in the population.
func (u urn) rate(r *rand.Rand) (rate float64) {
	const draws = 100_000
	for range draws {
		spread := math.Hypot(u.task, u.sequence)
		rate += logistic(u.mean+spread*r.NormFloat64()) / draws
	}
	return rate
}

// TestRareFailuresShowLittle computes exactly how often equal sides are called
// different if they try 20 tasks once. At the worst rate it is 5.0 %. At a rate of
// 95 % it is 0.2 %, because 9.5 % of the tasks differ, seldom more than three. To
// reach 3 % there, three tasks in favour of one side would have to be enough, and
// this would call 13 % different at another rate.
func TestRareFailuresShowLittle(t *testing.T) {
	t.Parallel()
	const tasks = 20
	p := make(map[[2]int]float64)
	for a := range tasks + 1 {
		for b := range tasks + 1 - a {
			p[[2]int{a, b}] = compare(fourfold(tasks-a-b, a, b, 0)).P
		}
	}
	called := func(at, differ float64) (share float64) {
		for ab, p := range p {
			if p <= at {
				n := ab[0] + ab[1]
				share += binomial(tasks, n, differ) * binomial(n, ab[0], .5)
			}
		}
		return share
	}
	worst := func(at float64) (most float64) {
		for differ := .01; differ < 1; differ += .01 {
			most = max(most, called(at, differ))
		}
		return most
	}
	four, three := p[[2]int{4, 0}]+1e-9, p[[2]int{3, 0}]+1e-9
	for _, c := range []struct {
		name           string
		got, low, high float64
	}{
		{"at 95 %", called(.05, .095), 0, .003},
		{"at worst", worst(.05), .045, .0525},
		{"at worst, with four to none", worst(four), .06, 1},
		{"at 95 %, with three to none", called(three, .095), .03, .06},
		{"at worst, with three to none", worst(three), .12, 1},
	} {
		t.Logf("%s: %.4f", c.name, c.got)
		if c.got < c.low || c.got > c.high {
			t.Errorf("%s: %.4f of equal sides are called different", c.name, c.got)
		}
	}
}

// TestConditionsOfNestedTasks checks that PConditions keeps its level if a task has only some of
// the conditions, such as the difficulty that it was made for. The bound is wider by three standard
// errors.
func TestConditionsOfNestedTasks(t *testing.T) {
	simulates(t, "12,000 comparisons of nested tasks")
	r := rand.New(rand.NewPCG(2008, 90))
	const draws = 1000
	slack := 3 * math.Sqrt(.05*.95/draws)
	mean := 0.
	for _, tasks := range []int{12, 20, 60} {
		for _, u := range []urn{
			{conditions: 2, repeats: triple, mean: 2},
			{conditions: 4, repeats: triple, mean: .8},
			{conditions: 4, repeats: lost, mean: 2},
			{conditions: 4, repeats: triple, mean: 2},
		} {
			u.tasks, u.task = tasks, 1
			called := 0.
			for range draws {
				tasks := u.draw(r)
				for i, t := range tasks {
					at := i % u.conditions
					tasks[i].Cells = t.Cells[at : at+1]
				}
				if stat.Compare(tasks, false).PConditions < .05 {
					called += 1. / draws
				}
			}
			t.Logf("%d tasks, %d conditions: %.3f", tasks, u.conditions, called)
			if mean += called / 12; called > .06+slack {
				t.Errorf("%+v: conditions are called different in %.3f", u, called)
			}
		}
	}
	if mean < .035 || mean > .056 {
		t.Errorf("on average, conditions are called different in %.3f", mean)
	}
}
