package fresh

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/task/bm25"
)

// TestFormsShareStem checks that a reader who compares stems recognises each form of a word.
// Otherwise a task would not be as hard as its difficulty says.
func TestFormsShareStem(t *testing.T) {
	t.Parallel()
	var lists []string
	for _, d := range domains() {
		lists = append(lists, d.Verbs)
		for _, noun := range strings.Fields(d.Heads) {
			sameStem(t, noun, plural(noun))
		}
	}
	lists = append(lists, words().Verbs)
	for _, verb := range strings.Fields(strings.Join(lists, " ")) {
		sameStem(t, verb, third(verb), past(verb), gerund(verb))
		if doubling.MatchString(verb) {
			t.Errorf("%s is not regular: its last letter is doubled", verb)
		}
	}
}

// doubling matches verbs of one syllable such as plan, planned.
var doubling = regexp.MustCompile(`^[^aeiou]*[aeiou][^aeiouwxy]$`)

func sameStem(t *testing.T, forms ...string) {
	t.Helper()
	stems := bm25.Words(strings.Join(forms, " "))
	if slices.Sort(stems); len(slices.Compact(stems)) != 1 {
		t.Errorf("the stems of %q differ: %q", forms, stems)
	}
}

// TestPathsAreUnique checks that a task has one solution only: no other steps lead from its first
// records to its last ones within any limit of calls.
func TestPathsAreUnique(t *testing.T) {
	t.Parallel()
	g := New("4")
	const limit = 10
	for length := 1; length <= 7; length++ {
		for _, path := range g.pathsOf(length) {
			if n := g.count(path[0].from, path[length-1].to, limit); n != 1 {
				t.Errorf("%d paths for %v", n, path)
			}
		}
	}
}

// count counts the paths of at most a number of steps.
func (g *Grammar) count(from, to kindPlace, limit int) (n int) {
	if from == to {
		n++
	}
	if limit > 0 {
		for _, s := range g.from(from) {
			n += g.count(s.to, to, limit-1)
		}
	}
	return n
}

// TestDrawsEnoughWords checks that no seed runs out of words.
func TestDrawsEnoughWords(t *testing.T) {
	t.Parallel()
	for seed := range 200 {
		g := New(strings.Repeat("x", seed))
		for _, kinds := range g.kinds {
			for _, k := range kinds {
				if k.head == "" || k.modifier == "" {
					t.Errorf("seed %d has a kind without a name", seed)
				}
			}
		}
	}
}
