package classify

import (
	"maps"
	"slices"
)

// An Agreement compares two opinions on the same attempts, such as those of the
// rules and of a model. Its zero value has seen none.
type Agreement struct {
	counts map[[2]string]int
}

// Add counts an attempt on which the rules and the model have said this.
func (a *Agreement) Add(rules, model string) {
	if a.counts == nil {
		a.counts = make(map[[2]string]int)
	}
	a.counts[[2]string{rules, model}]++
}

// Table returns the categories that occurred, in the order of [Categories] and
// unknown ones after these, and how often each pair did: a row for what the
// rules said, a column for what the model said.
func (a *Agreement) Table() (categories []string, counts [][]int) {
	seen := make(map[string]bool)
	for pair := range a.counts {
		seen[pair[0]], seen[pair[1]] = true, true
	}
	for _, c := range slices.Concat(Categories, slices.Sorted(maps.Keys(seen))) {
		if seen[c] {
			categories = append(categories, c)
			delete(seen, c)
		}
	}
	for _, rules := range categories {
		row := make([]int, len(categories))
		for i, model := range categories {
			row[i] = a.counts[[2]string{rules, model}]
		}
		counts = append(counts, row)
	}
	return categories, counts
}

// Agreed returns on how many attempts both said the same, and how many there
// are.
func (a *Agreement) Agreed() (same, total int) {
	for pair, n := range a.counts {
		total += n
		if pair[0] == pair[1] {
			same += n
		}
	}
	return same, total
}

// Kappa is the agreement beyond chance, 1 for all and 0 for what two would reach
// that name categories at random, each as often as they did (Cohen, "A
// coefficient of agreement for nominal scales", Educational and Psychological
// Measurement 20, 1960). Where both always said one and the same, or nothing, it
// is not defined.
func (a *Agreement) Kappa() (kappa float64, defined bool) {
	_, counts := a.Table()
	same, total := a.Agreed()
	chance := 0 // the agreement by chance, times total squared
	for i, row := range counts {
		rules, model := 0, 0
		for j := range row {
			rules += counts[i][j]
			model += counts[j][i]
		}
		chance += rules * model
	}
	if total == 0 || chance == total*total {
		return 0, false
	}
	return float64(same*total-chance) / float64(total*total-chance), true
}
