package library

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
)

// difficulties lists all difficulties that a task can have, in the order of every table: the five
// wordings, then their mixtures.
var difficulties = slices.Concat(assay.Difficulties, assay.Mixtures)

// A mixture is the percentage of tasks that have each of the five wordings, in the order of
// [assay.Difficulties].
type mixture [5]int

var mixtures = map[string]mixture{
	"easy_biased":   {30, 50, 15, 4, 1},
	"medium_biased": {5, 20, 50, 20, 5},
	"hard_biased":   {1, 4, 15, 50, 30},
}

// counts divides n tasks. It rounds shares down and adds the remainder to the middle wording.
func (m mixture) counts(n int) (counts [5]int) {
	left := n
	for i, percent := range m {
		counts[i] = n * percent / 100
		left -= counts[i]
	}
	counts[len(counts)/2] += left
	return counts
}

// wordings returns, by type, the wordings of n tasks of each type in the mixture with the given
// name. The mixture's shares also hold among the tasks of one type and length, as far as whole
// numbers allow.
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
		next, most := 0, 0 // the wording that is furthest behind its share
		for w := range counts {
			if behind := counts[w]*(i+1) - given[w]*len(order); behind > most {
				next, most = w, behind
			}
		}
		given[next]++
		wordings[c.typ][c.k] = assay.Difficulties[next]
	}
	return wordings
}
