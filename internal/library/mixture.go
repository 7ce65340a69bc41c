package library

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
)

// difficulties are all that a task can have: the five wordings and the
// mixtures of them, in the order of every table.
var difficulties = slices.Concat(assay.Difficulties, assay.Mixtures)

// A mixture says how many percent of the tasks of each type have which of the
// five wordings, in the order of [assay.Difficulties].
type mixture [5]int

var mixtures = map[string]mixture{
	"easy_biased":   {30, 50, 15, 4, 1},
	"medium_biased": {5, 20, 50, 20, 5},
	"hard_biased":   {1, 4, 15, 50, 30},
}

// counts divides n tasks. Shares are rounded down, and the main wording gets
// what is left over.
func (m mixture) counts(n int) (counts [5]int) {
	left, main := n, 0
	for i, percent := range m {
		counts[i] = n * percent / 100
		left -= counts[i]
		if percent > m[main] {
			main = i
		}
	}
	counts[main] += left
	return counts
}

// wordings returns the wordings of the n tasks of a type in the mixture of that
// name. They are dealt out so that tasks of every length have each in
// proportion, as far as whole numbers allow.
func (m mixture) wordings(name, typ string, n int) []string {
	order := make([]int, n)
	for k := range order {
		order[k] = k
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(len(chain(typ, a)), len(chain(typ, b))),
			cmp.Compare(roll(1<<40, name, typ, a), roll(1<<40, name, typ, b)),
			cmp.Compare(a, b))
	})
	counts, given := m.counts(n), [5]int{}
	wordings := make([]string, n)
	for i, k := range order {
		next, most := 0, 0
		for w := range counts { // which is furthest behind
			if behind := counts[w]*(i+1) - given[w]*n; behind > most {
				next, most = w, behind
			}
		}
		given[next]++
		wordings[k] = assay.Difficulties[next]
	}
	return wordings
}
