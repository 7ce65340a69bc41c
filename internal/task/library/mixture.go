package library

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
)

// difficulties are all that a task can have: the five wordings and the
// mixtures of them, in the order of every table.
var difficulties = slices.Concat(assay.Difficulties, assay.Mixtures)

// A mixture says how many percent of all tasks have which of the five wordings,
// in the order of [assay.Difficulties].
type mixture [5]int

var mixtures = map[string]mixture{
	"easy_biased":   {30, 50, 15, 4, 1},
	"medium_biased": {5, 20, 50, 20, 5},
	"hard_biased":   {1, 4, 15, 50, 30},
}

// counts divides n tasks. Shares are rounded down, and the wording in the middle
// gets what is left over.
func (m mixture) counts(n int) (counts [5]int) {
	left := n
	for i, percent := range m {
		counts[i] = n * percent / 100
		left -= counts[i]
	}
	counts[len(counts)/2] += left
	return counts
}

// wordings returns the wordings of n tasks of each type in the mixture of that
// name, by type. They are dealt out so that tasks of every type and length have
// each in proportion, as far as whole numbers allow.
func (m mixture) wordings(name string, n int) map[string][]string {
	type card struct {
		typ string
		k   int
	}
	var order []card
	wordings := make(map[string][]string)
	for _, typ := range assay.TaskTypes {
		wordings[typ] = make([]string, n)
		first := len(order)
		for k := range n {
			order = append(order, card{typ, k})
		}
		slices.SortFunc(order[first:], func(a, b card) int {
			return cmp.Or(
				cmp.Compare(len(chain(typ, a.k)), len(chain(typ, b.k))),
				cmp.Compare(roll(1<<40, name, typ, a.k), roll(1<<40, name, typ, b.k)),
				cmp.Compare(a.k, b.k))
		})
	}
	counts, given := m.counts(len(order)), [5]int{}
	for i, c := range order {
		next, most := 0, 0
		for w := range counts { // which is furthest behind
			if behind := counts[w]*(i+1) - given[w]*len(order); behind > most {
				next, most = w, behind
			}
		}
		given[next]++
		wordings[c.typ][c.k] = assay.Difficulties[next]
	}
	return wordings
}
