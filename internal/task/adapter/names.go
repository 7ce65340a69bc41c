package adapter

import (
	_ "embed"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A naming is a permutation of all names: it swaps names with those that are offered instead, and keeps
// all others. No name that is offered instead of another one is a name itself.
type naming map[string]string

// newNaming writes names in a style. A name that another one is, or has been written as, stays as it
// is.
func newNaming(known map[string]bool, s style) naming {
	n := make(naming)
	native := make(map[string]bool) // words
	for name := range known {
		for _, w := range wordsOf(name) {
			native[w] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		words := wordsOf(name)
		if s.shortens {
			for i, w := range words {
				if short := shortened(w); !native[short] {
					words[i] = short
				}
			}
		}
		offered := s.casing.join(words)
		if s.casing == keep {
			offered = casingOf(name).join(words)
		}
		if _, taken := n[offered]; words == nil || taken || known[offered] {
			continue
		}
		n[name], n[offered] = offered, name
	}
	return n
}

// only returns the part of the naming that swaps the names of an object's members.
func (n naming) only(members map[string]*codec) naming {
	part := make(naming)
	for name := range members {
		if offered, ok := n[name]; ok {
			part[name], part[offered] = offered, name
		}
	}
	return part
}

// offer returns the name that is offered instead of a name. It is its own inverse.
func (n naming) offer(name string) string {
	if offered, ok := n[name]; ok {
		return offered
	}
	return name
}

// A casing is a way to write the words of a name.
type casing int

const (
	keep casing = iota // as the name has them
	snake
	kebab
	camel
	pascal
)

var casings = []casing{snake, kebab, camel, pascal}

// casingOf returns the casing of a name that [wordsOf] can split.
func casingOf(name string) casing {
	switch {
	case strings.Contains(name, "-"):
		return kebab
	case name[0] >= 'A' && name[0] <= 'Z':
		return pascal
	case strings.ToLower(name) != name:
		return camel
	}
	return snake
}

func (c casing) join(words []string) string {
	switch c {
	case kebab:
		return strings.Join(words, "-")
	case camel, pascal:
		var b strings.Builder
		for i, w := range words {
			if i > 0 || c == pascal {
				w = strings.ToUpper(w[:1]) + w[1:]
			}
			b.WriteString(w)
		}
		return b.String()
	}
	return strings.Join(words, "_")
}

var (
	splittable = regexp.MustCompile(`^(?:[a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*|[a-z][a-z0-9]*(?:-[a-z][a-z0-9]*)+|[A-Za-z][a-z0-9]*(?:[A-Z][a-z0-9]*)*)$`)
	nameWord   = regexp.MustCompile(`[A-Z]?[a-z0-9]+|[A-Z]`)
)

// wordsOf returns the words of a name in lower case, or nil if it is not written in a casing.
func wordsOf(name string) []string {
	if !splittable.MatchString(name) {
		return nil
	}
	words := nameWord.FindAllString(name, -1)
	for i := range words {
		words[i] = strings.ToLower(words[i])
	}
	return words
}

//go:embed short.txt
var shortText string

var shorts = func() map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(shortText) {
		long, short, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[long] = short
	}
	return all
}()

// The length from which words without a usual short form are cut, and how much is left at least.
const longWord, leftOfWord = 7, 4

// shortened returns the short form of a word: the usual one, or its beginning up to a consonant.
func shortened(word string) string {
	if short, ok := shorts[word]; ok {
		return short
	}
	if len(word) < longWord {
		return word
	}
	end := leftOfWord
	for end < len(word) && strings.ContainsRune("aeiou", rune(word[end-1])) {
		end++
	}
	return word[:end]
}
