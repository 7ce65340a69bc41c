package workflow

import (
	"fmt"
	"slices"
)

// shuffles is the number of random orders among which the worst is chosen.
const shuffles = 8

// disorder changes the order of the steps so that it breaks the required order or a dependency. A
// light flaw swaps two neighbours, a medium flaw swaps two more, and a severe flaw takes the order
// farthest from the plan among several.
func (f *flawed) disorder() []Step {
	worse := f.swap(f.steps, "first swap")
	if f.severity == light {
		return worse
	}
	if further := f.swap(worse, "second swap"); further != nil {
		worse = further
	}
	if f.severity == medium {
		return worse
	}
	for _, order := range f.orders() {
		if f.breaks(order) && distance(f.steps, order) >= distance(f.steps, worse) {
			worse = order
		}
	}
	return worse
}

// swap exchanges two neighbours so that the result breaks. It picks the swap that leads farthest
// from the plan, and never one that leads closer. It returns nil if there is no such swap.
func (f *flawed) swap(steps []Step, purpose string) []Step {
	var best []Step
	farthest := distance(f.steps, steps) - 1
	for _, i := range f.dice.shuffle(purpose, numbers(0, len(steps)-1)) {
		swapped := slices.Clone(steps)
		swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
		if d := distance(f.steps, swapped); d > farthest && f.breaks(swapped) {
			best, farthest = swapped, d
		}
	}
	return best
}

// orders returns the plan's steps in random orders, and backwards.
func (f *flawed) orders() [][]Step {
	var orders [][]Step
	for k := range shuffles {
		var order []Step
		for _, i := range f.dice.shuffle(fmt.Sprint("order ", k), numbers(0, len(f.steps))) {
			order = append(order, f.steps[i])
		}
		orders = append(orders, order)
	}
	backwards := slices.Clone(f.steps)
	slices.Reverse(backwards)
	return append(orders, backwards)
}

// breaks reports whether reordered steps no longer run the required tools in order, or call a tool
// before its dependency more often than the plan does.
func (f *flawed) breaks(steps []Step) bool {
	left := f.task.Required
	for _, s := range steps {
		if len(left) > 0 && left[0] == s.Tool {
			left = left[1:]
		}
	}
	return len(left) > 0 || early(steps) > early(f.steps)
}

// early counts the dependencies that come only after the step that needs them.
func early(steps []Step) int {
	n := 0
	for i, s := range steps {
		for _, need := range s.Needs {
			is := func(s Step) bool { return s.Tool == need }
			if slices.ContainsFunc(steps[i:], is) && !slices.ContainsFunc(steps[:i], is) {
				n++
			}
		}
	}
	return n
}

// distance returns the minimum number of steps to add, remove or change to turn one list into the
// other.
func distance(a, b []Step) int {
	row := numbers(0, len(b)+1)
	for i, s := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, t := range b {
			cost := diagonal
			if s.Tool != t.Tool || !slices.Equal(s.Arguments, t.Arguments) {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
