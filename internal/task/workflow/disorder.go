package workflow

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay/internal/task/policy"
)

// shuffles is the number of random orders among which the most distant one is chosen.
const shuffles = 8

// disorder puts the steps into an order in which a step no longer gets the data of its feed. Their
// arguments are made for the new order. The first dose swaps two neighbours, the second swaps two
// more, and the third is one of the most distant orders.
func (f *flawed) disorder() []Step {
	if f.dose > 2 {
		return f.inOrder(f.severest())
	}
	order := f.swap(numbers(0, len(f.steps)))
	if f.dose == 2 {
		order = f.swap(order)
	}
	return f.inOrder(order)
}

// pairs returns the number of pairs of steps, or 0 if the order of the steps does not matter.
func (f *flawed) pairs() int {
	n := len(f.steps)
	if order := numbers(0, n); f.swap(order) == nil || !f.severed(backwards(order)) {
		return 0
	}
	return n * (n - 1) / 2
}

// swap exchanges two neighbours that are still in the plan's order. It prefers a step and its feed,
// and only takes such a pair first. It returns nil if it finds no pair.
func (f *flawed) swap(order []int) []int {
	feeds, first := f.needed(), slices.IsSorted(order)
	best := -1
	for _, i := range f.dice.shuffle(fmt.Sprint("swap in ", order), numbers(0, len(order)-1)) {
		feed, step := order[i], order[i+1]
		if feeds[step] == feed && f.isOnly(feed) && f.isOnly(step) {
			best = i
			break
		}
		if !first && feed < step {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	order = slices.Clone(order)
	order[best], order[best+1] = order[best+1], order[best]
	return order
}

// severest returns the random order that reverses the most pairs, or else the plan backwards.
func (f *flawed) severest() []int {
	plan := numbers(0, len(f.steps))
	worst := backwards(plan)
	most := min(2, reversed(worst)-1)
	for k := range shuffles {
		order := f.dice.shuffle(fmt.Sprint("order ", k), plan)
		if n := reversed(order); n > most && f.severed(order) {
			worst, most = order, n
		}
	}
	return worst
}

func backwards(order []int) []int {
	order = slices.Clone(order)
	slices.Reverse(order)
	return order
}

// reversed counts the pairs that are in reversed order.
func reversed(order []int) int {
	n := 0
	for i, a := range order {
		for _, b := range order[i+1:] {
			if a > b {
				n++
			}
		}
	}
	return n
}

// inOrder returns the steps in another order, with arguments for that order.
func (f *flawed) inOrder(order []int) []Step {
	var steps []Step
	for _, i := range order {
		steps = append(steps, f.steps[i])
		f.replace(steps, len(steps)-1, f.steps[i].Tool)
	}
	return steps
}

// needed returns the feed of each step that a required tool works on the result of, directly or
// through other steps, and of the required tools themselves. See [policy.Feeds].
func (f *flawed) needed() []int {
	names := toolNames(f.steps)
	needed := make([]int, len(names))
	for i := range needed {
		needed[i] = policy.NoFeed
	}
	feeds := policy.Feeds(f.catalog, names)
	for _, i := range policy.Places(names, f.task.Required) {
		for ; i != policy.NoFeed; i = feeds[i] {
			needed[i] = feeds[i]
		}
	}
	return needed
}

// severed reports whether a step never gets the data of its feed if the steps are called in another
// order, however often they are repeated.
func (f *flawed) severed(order []int) bool {
	steps := f.inOrder(order)
	for i, feed := range f.needed() {
		if feed != policy.NoFeed && !f.reaches(steps, f.steps[i].Tool, f.steps[feed].Tool) {
			return true
		}
	}
	return false
}

// reaches reports whether a tool's result can be made of another tool's result if both are only
// called as steps.
func (f *flawed) reaches(steps []Step, from, to string) bool {
	todo := []string{from}
	for i := 0; i < len(todo); i++ {
		tool, _ := f.catalog.Tool(todo[i])
		var sources []string
		if !policy.TakesData(tool) {
			sources = tool.Dependencies
		}
		for _, s := range steps {
			if s.Tool == tool.Name {
				sources = append(slices.Clone(sources), references(s.Arguments)...)
			}
		}
		for _, name := range sources {
			if name == to {
				return true
			}
			if _, known := f.catalog.Tool(name); known && !slices.Contains(todo, name) {
				todo = append(todo, name)
			}
		}
	}
	return false
}
