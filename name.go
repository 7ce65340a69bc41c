package assay

import (
	"fmt"
	"slices"
	"strings"
)

// NameHint words a hint for an unknown name: the nearest known name, or all known names if no name
// is near and there are at most 24. It returns "" if there is no helpful hint.
func NameHint(name string, known []string) string {
	if near := NearestName(name, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	if len(known) == 0 || len(known) > 24 {
		return ""
	}
	return "known are " + strings.Join(known, ", ")
}

// maxName is the length of the longest names that are compared.
const maxName = 200

// NearestName returns the known name with the fewest edits to name. It returns "" if no known name
// is within half of its own length.
func NearestName(name string, known []string) string {
	best, least := "", 1<<30
	for _, k := range known {
		if len(name) > maxName || len(k) > maxName {
			continue // a distance takes time and memory that grow with the square of the length
		}
		d := distance(strings.ToLower(name), strings.ToLower(k))
		if d < least && d <= max(1, len(k)/2) && d < len(k) {
			best, least = k, d
		}
	}
	return best
}

// distance counts insertions, deletions, replacements and swaps of neighbours
// (optimal string alignment).
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(s)][len(t)]
}

// Enumerate joins at least one word with commas, and the last one with a conjunction.
func Enumerate[T ~string](words []T, conjunction string) string {
	var b strings.Builder
	for i, word := range words {
		switch {
		case i > 0 && i == len(words)-1:
			b.WriteString(" " + conjunction + " ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(string(word))
	}
	return b.String()
}
