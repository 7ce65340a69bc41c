package main

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A taskPopulation has tasks of templates. The tasks of a template are equally hard.
type taskPopulation struct{ tasks, templates int }

func (p taskPopulation) String() string {
	if p.templates == p.tasks {
		return fmt.Sprintf("%d tasks", p.tasks)
	}
	return fmt.Sprintf("%d tasks of %d templates", p.tasks, p.templates)
}

// unequal repeats are 1 to 5 trials of a task in a cell.
const unequal = 0

// A field is an experiment of two models, with the right plan, two flawed ones, and two kinds of
// failing tools.
type field struct {
	taskPopulation
	repeats int
}

// effects are the shares of success that flawed plans, failing tools and the second model cost.
type effects struct{ flawed, failing, second float64 }

// mean returns the mean share of success that is left over all conditions.
func (e effects) mean() float64 {
	sum := 0.
	for _, c := range conditions {
		sum += e.left(c)
	}
	return sum / float64(len(conditions))
}

// left returns the share of success that is left under a condition.
func (e effects) left(c condition) float64 {
	switch {
	case report.IsFlawed(c.variant):
		return 1 - e.flawed
	case c.reliability < 1:
		return 1 - e.failing
	}
	return 1
}

// A condition is a variant with tools.
type condition struct {
	variant     string
	reliability float64
	faults      string
}

var conditions = []condition{
	{assay.Optimal, 1, ""},
	{"flawed_tool_misuse", 1, ""},
	{"flawed_missing_step", 1, ""},
	{assay.Optimal, .7, ""},
	{assay.Optimal, .7, "after=1"},
}

// The truth beside rates: the mean cost of a trial, the share of failures that are claimed to be
// successes, and the floor and the ceiling of the tasks.
const (
	meanUSD, claims        = .015, .3
	floorRate, ceilingRate = .2, .95
)

// rate draws the rate of full success of a template.
func rate(r *rand.Rand) float64 { return min(1, max(0, .7+.2*r.NormFloat64())) }

func meanRate(r *rand.Rand) (mean float64) {
	const draws = 200_000
	for range draws {
		mean += rate(r) / draws
	}
	return mean
}

// A drawn experiment has the trials and attempts of both models.
type drawn struct {
	trials   []assay.Trial
	attempts []assay.Attempt
	mean     float64 // rate of its tasks
}

var models = []string{"a", "b"}

func (f field) draw(r *rand.Rand, e effects) (x drawn) {
	rates := make([]float64, f.templates)
	for i := range rates {
		rates[i] = rate(r)
	}
	for task := range f.tasks {
		x.mean += rates[task%f.templates] / float64(f.tasks)
		for i, model := range models {
			for _, c := range conditions {
				chance := rates[task%f.templates] * e.left(c) * (1 - e.second*float64(i))
				f.try(r, &x, model, c, task, chance)
			}
		}
	}
	return x
}

// try adds the trials of a task in a cell.
func (f field) try(r *rand.Rand, x *drawn, model string, c condition, task int, chance float64) {
	n := f.repeats
	if n == unequal {
		n = 1 + r.IntN(5)
	}
	cell := assay.Cell{
		Model: model, Variant: c.variant, Reliability: c.reliability, Faults: c.faults,
		Difficulty: []string{"easy", "medium"}[task/f.templates%2], TaskType: "basic_task",
	}
	ref := assay.TaskRef{ID: assay.TaskID(fmt.Sprint("t", task)), Digest: "d"}
	for repeat := range n {
		t := assay.NewTrial(cell, ref, assay.Setting{World: "assay-1"}, 1, repeat+1)
		a := assay.Attempt{
			Trial: t, Spend: assay.Spend{CostUSD: meanUSD * (.5 + r.Float64())},
			Outcome: assay.Outcome{Level: assay.Failure, Ended: assay.TurnLimit, Turns: 3},
		}
		a.ScoreVersion, a.Best = "assay-1", ceilingRate
		a.RequiredTools = []string{fmt.Sprint("s", task%f.templates)}
		if r.Float64() < 1-c.reliability {
			a.FaultsMet = 1
		}
		if r.Float64() < claims {
			a.Ended = assay.Finished
		}
		if r.Float64() < chance {
			a.Level, a.Ended = assay.FullSuccess, assay.Finished
		}
		x.trials, x.attempts = append(x.trials, t), append(x.attempts, a)
	}
}

// of yields the attempts of a model, or all of them.
func (x drawn) of(model string) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		for _, a := range x.attempts {
			if (model == "" || a.Model == model) && !yield(a, nil) {
				return
			}
		}
	}
}

func (x drawn) standings() ([]report.Standing, error) {
	d := report.Design{Floor: func(assay.Cell, *float64) (float64, bool) { return floorRate, true }}
	a, err := d.Analyze("levels", slices.Values(x.trials), x.of(""), report.Beside{})
	if err != nil {
		return nil, err
	}
	return a.Standings, nil
}

func (x drawn) compare() (*report.Comparison, error) {
	return report.Compare(models[0], models[1], stat.Auto, x.of(models[0]), x.of(models[1]))
}
