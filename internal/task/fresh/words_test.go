//go:build !race

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

// TestOneSolution checks that from the first records of a task only one path of any tools leads to the
// last ones within its limits, and that there are others beyond them, as short or shorter.
func TestOneSolution(t *testing.T) {
	t.Parallel()
	g := New("4")
	tempting, all := 0, 0
	for _, length := range []int{3, 5, 7} {
		found := g.solutionsOf(length)
		if len(found) < 20 {
			t.Errorf("only %d solutions of %d steps", len(found), length)
		}
		for _, s := range found {
			from, to := s.path[0].from, s.path[length-1].to
			if n := g.count(from, to, maxSteps, s.profile); n != 1 {
				t.Errorf("%d paths for %v", n, s)
			}
			if length > 5 { // any tools make tens of thousands of paths
				continue
			}
			if others := g.count(from, to, length, -1) - 1; others < 2 {
				t.Errorf("only %d other paths that are no longer than %v", others, s)
			}
			if all++; g.count(from, to, length-1, -1) > 0 {
				tempting++
			}
		}
	}
	if t.Logf("%d of %d have shorter paths", tempting, all); 4*tempting < all {
		t.Errorf("only %d of %d solutions are not the shortest path of any tools", tempting, all)
	}
}

// count counts the paths of at most a number of steps that keep to the limits of a profile, or of any
// steps if it is -1.
func (g *Grammar) count(from, to kindPlace, limit, profile int) (n int) {
	if from == to {
		n++
	}
	if limit > 0 {
		for _, s := range g.from(from) {
			if profile < 0 || g.keeps(s, profile) {
				n += g.count(s.to, to, limit-1, profile)
			}
		}
	}
	return n
}

// TestChoicesDiffer checks that each of the tools that do the same is right for some tasks, and that
// limits decide which.
func TestChoicesDiffer(t *testing.T) {
	t.Parallel()
	g := New("4")
	var ranks [3]int
	for i := 0; i+2 < len(g.steps); i++ {
		s := g.steps[i : i+3]
		if s[0].from != s[2].from || s[0].to != s[2].to {
			continue
		}
		for profile := range profiles {
			for rank := range s {
				if g.keeps(s[rank], profile) {
					ranks[rank]++
				}
			}
		}
		i += 2
	}
	if t.Logf("right: %v", ranks); slices.Min(ranks[:]) < 15 {
		t.Errorf("of tools that do the same, the first, second and third are right %v times", ranks)
	}
}

// TestDrawsEnoughWords checks that no seed runs out of words.
func TestDrawsEnoughWords(t *testing.T) {
	t.Parallel()
	for seed := range 200 {
		g := New(strings.Repeat("x", seed))
		for _, s := range g.steps {
			if s.verb == "" {
				t.Errorf("seed %d has an operation without a verb", seed)
			}
		}
		for _, kinds := range g.kinds {
			for _, k := range kinds {
				if k.head == "" || k.modifier == "" {
					t.Errorf("seed %d has a kind without a name", seed)
				}
			}
		}
	}
}
