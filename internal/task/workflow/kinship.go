package workflow

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-eval/assay"
)

// kinship measures how similar the tools of a catalog are, by the share of words that their names
// and descriptions have in common.
type kinship struct {
	tools []assay.Tool
	words [][]string // of each tool
}

// sameCategory is added to the similarity of tools of the same category, as if they shared another
// quarter of their words.
const sameCategory = 0.25

func newKinship(catalog *assay.Catalog) kinship {
	k := kinship{tools: catalog.All()}
	for _, t := range k.tools {
		k.words = append(k.words, words(t))
	}
	return k
}

// nearest returns the tools that are not taken, most similar to the named one first. No tool is
// similar to one that the catalog does not have.
func (k kinship) nearest(name string, taken []string) []string {
	to := slices.IndexFunc(k.tools, func(t assay.Tool) bool { return t.Name == name })
	type candidate struct {
		name     string
		likeness float64
	}
	var candidates []candidate
	for i, t := range k.tools {
		if !slices.Contains(taken, t.Name) {
			candidates = append(candidates, candidate{t.Name, k.likeness(to, i)})
		}
	}
	mostAlike := func(a, b candidate) int { return cmp.Compare(b.likeness, a.likeness) }
	slices.SortStableFunc(candidates, mostAlike)
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = c.name
	}
	return names
}

// likeness returns how similar tool i is to tool to, or to an unknown tool if to is negative.
func (k kinship) likeness(to, i int) float64 {
	if to < 0 {
		return 0
	}
	likeness := shared(k.words[to], k.words[i])
	if k.tools[to].Category == k.tools[i].Category {
		likeness += sameCategory
	}
	return likeness
}

// words returns the distinct words of a tool's name and description in sorted order. It drops short
// words, which occur in all texts.
func words(tool assay.Tool) []string {
	text := strings.ToLower(tool.Name + " " + tool.Description)
	list := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	list = slices.DeleteFunc(list, func(w string) bool { return len(w) < 4 })
	slices.Sort(list)
	return slices.Compact(list)
}

// shared returns the share of all words in either list that occur in both.
func shared(a, b []string) float64 {
	both := 0
	for _, w := range a {
		if _, ok := slices.BinarySearch(b, w); ok {
			both++
		}
	}
	return float64(both) / float64(max(1, len(a)+len(b)-both))
}
