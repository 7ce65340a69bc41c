package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A decision is a row of the second table: the share of draws in which a rule decides so, for each
// number of tasks.
type decision struct {
	name string
	of   func(r *rand.Rand, tasks int) bool
}

// decisionTasks are the numbers of tasks of the second table.
var decisionTasks = []int{30, 60, 100}

// decisions lists the rows. Gates have four repeats, and half of the pairs share their luck.
func decisions() (all []decision) {
	for _, margin := range []float64{.05, .1} {
		for _, these := range []bool{false, true} {
			about := "similar"
			if these {
				about = "these"
			}
			row := func(what string, x sides, pass bool) {
				x.margin = margin
				all = append(all, decision{
					fmt.Sprintf("`gate`, %s, %g points: %s", about, 100*margin, what),
					func(r *rand.Rand, tasks int) bool { return x.verdict(r, tasks, these, pass) },
				})
			}
			row("flawless, pass", sides{rate: 1}, true)
			row("hopeless, pass", sides{}, true)
			row("equal at .9, pass", sides{rate: .9, within: .33}, true)
			row("equal at .9, fail", sides{rate: .9, within: .33}, false)
			row("lost evenly, pass", sides{rate: .9, within: .33, lost: evenly}, true)
			row("lost in whole tasks, pass", sides{rate: .95, within: .33, lost: inWholeTasks}, true)
			row("flawless lost whole tasks, pass", sides{rate: 1, lost: inWholeTasks}, true)
		}
	}
	for _, rate := range []float64{.67, .9} {
		all = append(all, decision{
			fmt.Sprintf("largest loss of 3 trials at %g: shown without any", rate),
			func(r *rand.Rand, tasks int) bool { return oneModel(r, tasks, rate, 0).Top != nil },
		})
	}
	all = append(all, decision{
		"largest loss of 30 points: shown", func(r *rand.Rand, tasks int) bool {
			top := oneModel(r, tasks, .9, .3).Top
			return top != nil && top.Family == stat.ByLevel
		},
	}, decision{
		"largest loss of 30 points: bound above it", func(r *rand.Rand, tasks int) bool {
			top := oneModel(r, tasks, .9, .3).Top
			return top != nil && (top.Family != stat.ByLevel || top.AtLeast > .3)
		},
	})
	for _, models := range []int{3, 10} {
		all = append(all, decision{
			fmt.Sprintf("ranking of %d equal models: one beats another", models),
			func(r *rand.Rand, tasks int) bool { return firstBeatsLast(r, tasks, models, 0) },
		})
	}
	return append(all, decision{
		"ranking of 10 models over 30 points: the first beats the last",
		func(r *rand.Rand, tasks int) bool { return firstBeatsLast(r, tasks, 10, .3) },
	})
}

// How a candidate loses the margin.
const (
	evenly       = "evenly"
	inWholeTasks = "in whole tasks"
)

// sides describes a baseline, and a candidate that loses the margin, or nothing.
type sides struct {
	rate, within, margin float64
	lost                 string
}

const sideRepeats, luck = 4, .5

func (x sides) verdict(r *rand.Rand, tasks int, these, pass bool) bool {
	passes, fails := x.draw(r, tasks, these).Decide(stat.GateRule{
		These: these, Margin: x.margin, Pass: stat.PassLevel, Fail: stat.FailLevel,
	})
	return pass && passes || !pass && fails
}

// draw draws the trials of both sides. If the question is about these tasks, as many of them are lost
// as the margin says, up to one.
func (x sides) draw(r *rand.Rand, tasks int, these bool) stat.GateData {
	d := stat.GateData{SameLuck: true}
	share := min(1, x.margin/max(1e-9, x.rate))
	whole := int(math.Ceil(share * float64(tasks)))
	for i := range tasks {
		p, kept := x.draws(r), 1.
		switch {
		case x.lost == evenly:
			kept = 1 - share
		case x.lost == inWholeTasks && (these && i < whole || !these && r.Float64() < share):
			kept = 0
		}
		a, b := make([]bool, sideRepeats), make([]bool, sideRepeats)
		for k := range a {
			u := r.Float64()
			a[k] = u < p
			if r.Float64() >= luck {
				u = r.Float64()
			}
			b[k] = u < p*kept
		}
		d.Tasks = append(d.Tasks, stat.Matched{Cells: []stat.Cell{stat.NewCell(0, a, b)}})
	}
	return d
}

// draws draws the rate of a task.
func (x sides) draws(r *rand.Rand) float64 {
	if x.within == 0 {
		return x.rate
	}
	c := 1/x.within - 1
	return distuv.Beta{Alpha: x.rate * c, Beta: (1 - x.rate) * c, Src: r}.Rand()
}

// binomial draws a number of successes.
func binomial(r *rand.Rand, n int, p float64) (k int) {
	for range n {
		if r.Float64() < p {
			k++
		}
	}
	return k
}

// oneModel draws an experiment with one model at three levels of a factor, of which the last costs
// flaw points, and five types of tasks.
func oneModel(r *rand.Rand, tasks int, rate, flaw float64) stat.Losing {
	const n = 3
	d := stat.LossData{Levels: make([][]stat.Matched, 2)}
	for i := range tasks {
		first := binomial(r, n, rate)
		for level := range d.Levels {
			k := binomial(r, n, rate-flaw*float64(level))
			d.Levels[level] = append(d.Levels[level], stat.Matched{Cells: []stat.Cell{{
				Pair: stat.Pair{A: first, NA: n, B: k, NB: n},
			}}})
		}
		d.Tasks = append(d.Tasks, stat.TriedTask{
			Type: i % 5, Cells: []stat.TriedCell{{Group: stat.Group{Full: first, N: n}}},
		})
	}
	return stat.LargestLoss(d)
}

// firstBeatsLast draws models whose rates are spread over some points.
func firstBeatsLast(r *rand.Rand, tasks, models int, spread float64) bool {
	x := sides{rate: .65, within: .3}
	var all []stat.Shared
	for range tasks {
		p := x.draws(r)
		cell := make([]stat.Group, models)
		for m := range cell {
			better := spread * (.5 - float64(m)/float64(models-1))
			cell[m] = stat.Group{Full: binomial(r, 3, min(1, max(0, p+better))), N: 3}
		}
		all = append(all, stat.Shared{Cells: [][]stat.Group{cell}})
	}
	ranking := stat.Rank(all, false)
	return ranking.Beats(ranking.Order[0], ranking.Order[models-1])
}

// decide prints the second table, row by row.
func decide(out io.Writer, draws int, only string) error {
	_, err := fmt.Fprintf(out, "| |%s\n|---|%s\n", join(decisionTasks),
		strings.Repeat("---|", len(decisionTasks)))
	for i, d := range decisions() {
		if !strings.Contains(d.name, only) || err != nil {
			continue
		}
		row := "| " + d.name + " |"
		for _, tasks := range decisionTasks {
			r := rand.New(rand.NewPCG(uint64(i), uint64(tasks)))
			hits := 0
			for range draws {
				if d.of(r, tasks) {
					hits++
				}
			}
			row += fmt.Sprintf(" %.1f |", 100*float64(hits)/float64(draws))
		}
		_, err = fmt.Fprintln(out, row)
	}
	return err
}

func join(numbers []int) string {
	text := fmt.Sprint(numbers)
	return " " + strings.ReplaceAll(strings.Trim(text, "[]"), " ", " | ") + " |"
}
