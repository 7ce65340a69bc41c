//go:build !race

package library

import (
	"fmt"
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

// contains reports whether a text contains one of the wordings, with any values for the marks.
func contains(text string, wordings []string) bool {
	return slices.ContainsFunc(wordings, func(w string) bool {
		rest, found := strings.ToLower(text), true
		for _, part := range mark.Split(strings.ToLower(w), -1) {
			_, after, ok := strings.Cut(rest, part)
			rest, found = after, found && ok
		}
		return found
	})
}

// TestDataCoversEveryStep gives whoever edits the data files a better message than a panic.
func TestDataCoversEveryStep(t *testing.T) {
	t.Parallel()
	last := make(map[string]bool) // verbs that only end chains
	for verb := range steps() {
		last[verb] = true
	}
	for typ, all := range chains() {
		for _, c := range all {
			verbs := strings.Fields(c)
			for i, v := range verbs {
				if _, ok := steps()[v]; !ok {
					t.Errorf("chains.yaml: %s has the unknown verb %s", typ, v)
				}
				last[v] = last[v] && i == len(verbs)-1
			}
		}
	}
	for verb := range steps() {
		for name, words := range plainWords() {
			if len(words[verb]) == 0 {
				t.Errorf("%s.yaml: no wording of %s", name, verb)
			}
		}
		for name, words := range goalWords() {
			w := words[verb]
			if len(w.Goals) == 0 || len(w.States) == 0 && !last[verb] {
				t.Errorf("%s.yaml: %s needs goals, and states unless it comes last", name, verb)
			}
		}
	}
}

func plainWords() map[string]plainSteps {
	return map[string]plainSteps{
		"very_easy": veryEasyWords().Steps,
		"easy":      easyWords().Steps,
		"medium":    mediumWords().Steps,
	}
}

func goalWords() map[string]goalSteps {
	return map[string]goalSteps{"hard": hardWords().Steps, "very_hard": veryHardWords().Steps}
}

// Only very_hard omits steps: those that follow from the dependencies of others.
func TestDescriptionMentionsEveryStep(t *testing.T) {
	t.Parallel()
	drafts(func(typ string, k int, d *draft) {
		for difficulty, words := range plainWords() {
			text := d.describe(difficulty, k)
			for _, v := range d.verbs {
				if !contains(text, words[v]) {
					t.Errorf("%s %d at %s doesn't mention %s: %s", typ, k, difficulty, v, text)
				}
			}
		}
		essential := slices.Clone(d.essential())
		if got := d.closure(essential); !slices.Equal(got, d.tools()) {
			t.Errorf("%s %d: %v requires %v, want %v", typ, k, essential, got, d.tools())
		}
		for difficulty, words := range goalWords() {
			verbs, text := d.verbs, d.describe(difficulty, k)
			if difficulty == "very_hard" {
				verbs = essential
			}
			last := len(verbs) - 1
			goal := verbs[last]
			if !contains(text, words[goal].Goals) {
				t.Errorf("%s %d at %s lacks the goal of %s: %s", typ, k, difficulty, goal, text)
			}
			for _, v := range verbs[:last] {
				if !contains(text, words[v].States) {
					t.Errorf("%s %d at %s doesn't mention %s: %s", typ, k, difficulty, v, text)
				}
			}
		}
	})
}

func TestDescriptionIdentifiesItsData(t *testing.T) {
	t.Parallel()
	drafts(func(typ string, k int, d *draft) {
		name := func(mark string) string { return d.names[mark].(string) }
		for _, difficulty := range assay.Difficulties {
			text := d.describe(difficulty, k)
			task := fmt.Sprintf("%s %d at %s", typ, k, difficulty)
			subject := strings.Contains(text, d.Things) && strings.Contains(text, d.month)
			located := strings.Contains(text, name("path")) || strings.Contains(text, name("url"))
			switch difficulty {
			case "hard", "very_hard":
				if !subject || !strings.Contains(text, d.Team) {
					t.Errorf("%s lacks its subject, month or team: %s", task, text)
				}
				if strings.Contains(text, name("path")) || strings.Contains(text, name("host")) {
					t.Errorf("%s gives the exact location: %s", task, text)
				}
			default:
				if !subject && !located {
					t.Errorf("%s has neither subject and month nor location: %s", task, text)
				}
			}
		}
	})
}

// Two tasks never share scenario and month, so their descriptions differ.
func TestScenariosAndMonthsAreDistinct(t *testing.T) {
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
			m := month(ord, turn)
			if months[m] || m >= 120 {
				t.Errorf("type %d, turn %d: month %d is taken or out of range", ord, turn, m)
			}
			months[m] = true
		}
	}
}
