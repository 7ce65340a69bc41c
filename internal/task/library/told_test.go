package library

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// drafts calls f for every built-in task.
func drafts(f func(typ string, k int, d *draft)) {
	catalog := assay.NewCatalog(Tools())
	for ord, typ := range assay.TaskTypes {
		for k := range TasksPerType {
			f(typ, k, builtinDraft(catalog, ord, typ, k))
		}
	}
}

var mark = regexp.MustCompile(`\{\w+\}`)

// saysOf reports whether a text has one of the wordings, whatever stands in it
// for the marks.
func saysOf(text string, wordings []string) bool {
	return slices.ContainsFunc(wordings, func(w string) bool {
		rest, found := strings.ToLower(text), true
		for _, part := range mark.Split(strings.ToLower(w), -1) {
			_, after, ok := strings.Cut(rest, part)
			rest, found = after, found && ok
		}
		return found
	})
}

// TestEveryStepLeavesATrace: each wording says something of each step; only
// very_hard leaves untold what follows from the dependencies of the rest.
func TestEveryStepLeavesATrace(t *testing.T) {
	t.Parallel()
	plain := map[string]plainSteps{
		"very_easy": veryEasyWords().Steps,
		"easy":      easyWords().Steps,
		"medium":    mediumWords().Steps,
	}
	drafts(func(typ string, k int, d *draft) {
		for difficulty, words := range plain {
			text := d.describe(difficulty, k)
			for _, v := range d.verbs {
				if !saysOf(text, words[v]) {
					t.Errorf("%s %d at %s does not say %s: %s", typ, k, difficulty, v, text)
				}
			}
		}
		told := slices.Clone(d.essential())
		if got := d.closure(told); !slices.Equal(got, d.tools()) {
			t.Errorf("%s %d: from %v follows %v, want %v", typ, k, told, got, d.tools())
		}
		for difficulty, verbs := range map[string][]string{"hard": d.verbs, "very_hard": told} {
			aims, text := hardWords().Steps, d.describe(difficulty, k)
			if difficulty == "very_hard" {
				aims = veryHardWords().Steps
			}
			last := len(verbs) - 1
			if !saysOf(text, aims[verbs[last]].Goals) {
				t.Errorf("%s %d at %s does not tell the goal of %s: %s", typ, k, difficulty, verbs[last], text)
			}
			for _, v := range verbs[:last] {
				if !saysOf(text, aims[v].States) {
					t.Errorf("%s %d at %s does not say %s: %s", typ, k, difficulty, v, text)
				}
			}
		}
	})
}

// TestEveryTextTellsItsSubject: each says which things of which month it is
// about, or where they are.
func TestEveryTextTellsItsSubject(t *testing.T) {
	t.Parallel()
	drafts(func(typ string, k int, d *draft) {
		for _, difficulty := range assay.Difficulties {
			text := d.describe(difficulty, k)
			subject := strings.Contains(text, d.Things) && strings.Contains(text, d.month)
			switch difficulty {
			case "hard", "very_hard":
				if !subject || !strings.Contains(text, d.Team) {
					t.Errorf("%s %d at %s does not tell whose task on what it is: %s", typ, k, difficulty, text)
				}
				if strings.Contains(text, d.path()) || strings.Contains(text, d.host()) {
					t.Errorf("%s %d at %s tells the very place: %s", typ, k, difficulty, text)
				}
			default:
				if !subject && !strings.Contains(text, d.path()) && !strings.Contains(text, d.url()) {
					t.Errorf("%s %d at %s does not tell its subject: %s", typ, k, difficulty, text)
				}
			}
		}
	})
}

// TestScenariosDiffer: no two are about the same, so that no two descriptions
// can be equal.
func TestScenariosDiffer(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, s := range scenarios() {
		for _, key := range []string{s.Slug, s.Things} {
			if seen[key] {
				t.Errorf("two scenarios have %q", key)
			}
			seen[key] = true
		}
	}
	months := make(map[int]bool)
	for ord := range assay.TaskTypes {
		for turn := range 1 + MaxTasksPerType/len(scenarios()) {
			if m := month(ord, turn); months[m] || m >= 120 {
				t.Errorf("type %d has in turn %d month %d, which is taken or after the calendar's end", ord, turn, m)
			} else {
				months[m] = true
			}
		}
	}
}
