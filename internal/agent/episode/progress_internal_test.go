package episode

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// play feeds turns to a progress. A turn is a word whose characters are marks: a lower-case letter
// is a successful call of that tool, an upper-case letter a mistake with it, "-" a failure by
// chance of a, "!" a malformed action, "?" a lookup without news, "+" a lookup of a new tool, i, j
// and k lookups about a tool of that name, and "." a reply without an action.
func play(rules assay.LoopRules, turns ...string) []assay.LoopRecord {
	p := newProgress(rules)
	shown := 0
	p.shown(search, "old")
	for i, turn := range turns {
		p.begin(i + 1)
		var rec assay.TurnRecord
		actions := 0
		for _, c := range turn {
			actions++
			name := string(c)
			switch {
			case c == '.':
				actions--
			case c == '!':
				p.failed("not closed")
			case c == '?':
				rec.Lookups++
				p.shown(search, "old")
			case c >= 'i' && c <= 'k':
				rec.Lookups++
				p.shown(info, name)
			case c == '+':
				rec.Lookups++
				shown++
				p.shown(search, fmt.Sprint("tool", shown))
			case c == '-':
				p.called(&assay.CallRecord{Tool: "a", Code: "TIMEOUT"})
			case c >= 'A' && c <= 'Z':
				name = strings.ToLower(name)
				p.called(&assay.CallRecord{
					Tool: name, Code: assay1.InvalidInput, Error: assay1.InvalidInput + ": no",
					Mistake: true,
				})
			default:
				p.called(&assay.CallRecord{Tool: name, OK: true})
			}
		}
		p.end(actions, &rec)
	}
	return p.loops
}

func TestLoops(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		turns string
		want  string // KIND BEGAN-NOTICED, joined by commas
	}{
		{"nothing", "a b c d", ""},
		{"the same call", "a b b b", "repeat 2-4"},
		{"in one reply", "abbb", ""},
		{"twice in each reply", "bb bb bb", "repeat 1-3"},
		{"malformed in one reply", "!!!! a", ""},
		{"two alternating in one reply", "ababab", ""},
		{"two alternating in each reply", "ab ab ab", "ping_pong 1-3"},
		{"reading about what was found", "+ i j k ?", ""},
		{"reading the same", "+ i i i i", "search 3-5"},
		{"not often enough", "a a b a a", ""},
		{"polling after bad luck", "- - - - - - a", ""},
		{"bad luck between the same calls", "a - a - a", "repeat 1-5"},
		{"a lookup between the same calls", "a + a + a", "repeat 1-5"},
		{"the same mistake", "A A A", "error 1-3, repeat 1-3"},
		{"mistakes with other tools", "A B C", ""},
		{"mistakes with lookups in between", "A ? A + A", "error 1-5, repeat 1-5"},
		{"a corrected mistake", "A A a A A", ""},
		{"malformed", "! ! !", "error 1-3"},
		{"malformed and mistakes", "! ! A ! !", ""},
		{"two alternating", "a b a b a b", "ping_pong 1-6"},
		{"two alternating, later", "c a b a b a b", "ping_pong 2-7"},
		{"three alternating", "a b c a b c a b c", ""},
		{"two rounds and a half", "a b a b a c", ""},
		{"searching without news", "+ ? ? ?", "search 2-4"},
		{"searching with news", "+ + + + + +", ""},
		{"news in between", "? ? + ? ?", ""},
		{"a call in between", "? ? a ? ?", ""},
		{"a lookup next to a call", "?a ?b ?c", ""},
		{"talk", "a . . .", "monologue 2-4"},
		{"talk and actions", ". . a . .", ""},
		{"talk and bad luck", ". . - . .", ""},
		{"two kinds", ". . . a a a", "monologue 1-3, repeat 4-6"},
		{"each kind once", "a a a a a a", "repeat 1-3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, l := range play(DefaultLoops(world.Assay1Name), strings.Fields(tc.turns)...) {
				got = append(got, fmt.Sprintf("%s %d-%d", l.Kind, l.Began, l.Noticed))
			}
			if got := strings.Join(got, ", "); got != tc.want {
				t.Errorf("%q gives %q, want %q", tc.turns, got, tc.want)
			}
		})
	}
}

// TestLoopLaws checks three laws: without a rule, no loop is noticed. A larger threshold never
// notices a loop earlier. A loop begins before it is noticed.
func TestLoopLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		turns := rapid.SliceOfN(rapid.StringMatching(`[abAB!?+.-]{1,2}`), 1, 25).Draw(t, "turns")
		at := make(map[assay.LoopKind]int)
		for after := 2; after <= 5; after++ {
			rules := make(assay.LoopRules)
			for _, kind := range assay.LoopKinds {
				rules[kind] = assay.LoopRule{After: after}
			}
			now := make(map[assay.LoopKind]int)
			for _, l := range play(rules, turns...) {
				if l.Began < 1 || l.Began > l.Noticed || l.Noticed > len(turns) {
					t.Fatalf("%v: loop %+v", turns, l)
				}
				now[l.Kind] = l.Noticed
				if after > 2 && (at[l.Kind] == 0 || at[l.Kind] > l.Noticed) {
					t.Fatalf("%v: threshold %d notices %s in turn %d, a lower one in turn %d",
						turns, after, l.Kind, l.Noticed, at[l.Kind])
				}
			}
			at = now
		}
		if loops := play(nil, turns...); loops != nil {
			t.Fatalf("%v: loops %v without rules", turns, loops)
		}
	})
}

func TestDefaultLoopRules(t *testing.T) {
	t.Parallel()
	for _, w := range world.Simulated {
		rules, err := rulesOf(&assay.Trial{Setting: assay.Setting{World: w}})
		stops := rules[assay.SearchLoop].Stop
		if err != nil || stops != (w == world.Assay1Name) || len(rules) != len(assay.LoopKinds) {
			t.Errorf("%s: rules %v, error %v", w, rules, err)
		}
	}
	if _, err := rulesOf(&assay.Trial{Setting: assay.Setting{Loops: "repeat=x"}}); err == nil {
		t.Error("a rule without a number is accepted")
	}
}
