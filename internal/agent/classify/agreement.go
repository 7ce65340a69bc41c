package classify

import (
	"maps"
	"slices"
)

// An Agreement compares two opinions on the same attempts, such as the opinions of the rules and a
// model. Its zero value is empty.
type Agreement struct {
	counts map[[2]string]int
}

// Add counts an attempt with the categories of the rules and of the model.
func (a *Agreement) Add(rules, model string) {
	if a.counts == nil {
		a.counts = make(map[[2]string]int)
	}
	a.counts[[2]string{rules, model}]++
}

// Table returns the categories that occurred, in the order of [Categories] and with unknown ones
// last. counts has a row for each category of the rules and a column for each category of the
// model.
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

// Agreed returns the number of attempts on which both agreed, and the number of all attempts.
func (a *Agreement) Agreed() (same, total int) {
	for pair, n := range a.counts {
		total += n
		if pair[0] == pair[1] {
			same += n
		}
	}
	return same, total
}

// Kappa returns the agreement beyond chance. It is 1 if both always agree, and 0 if they agree as
// often as two raters who pick categories at random with the same frequencies (Cohen, "A
// coefficient of agreement for nominal scales", Educational and Psychological Measurement 20,
// 1960). It is not defined if both always gave the same single category, or if there are no
// attempts.
func (a *Agreement) Kappa() (kappa float64, defined bool) {
	_, counts := a.Table()
	same, total := a.Agreed()
	chance := 0 // agreement by chance, times total squared
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
