package workflow

import (
	"fmt"
	"slices"
)

// shuffles is how many random orders compete to be the worst.
const shuffles = 8

// disorder changes the order of the steps so that the required order or a
// dependency breaks. Mild is one swap of neighbours, worse a further one, and
// worst the order farthest from the plan among some.
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

// swap exchanges two neighbours such that the result breaks: those that lead
// farthest from the plan, and no nearer to it. It returns nil where there are
// none.
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

// orders returns the plan's steps in random orders and backwards.
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

// breaks reports whether steps in another order do not run the required tools
// in order any more, or call a tool too early that the plan did not.
func (f *flawed) breaks(steps []Step) bool {
	left := f.task.Required
	for _, s := range steps {
		if len(left) > 0 && left[0] == s.Tool {
			left = left[1:]
		}
	}
	return len(left) > 0 || early(steps) > early(f.steps)
}

// early counts what steps need and what comes, but later.
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

// distance is the least number of steps to be added, left out or changed to
// come from one list to the other.
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
