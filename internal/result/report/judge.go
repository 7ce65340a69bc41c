package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Judge is a model that judges, and the version of the words with which it is asked.
type Judge struct{ Model, Prompt string }

// judgeOf returns the judge of an outcome, or the zero value.
func judgeOf(a *assay.Attempt) Judge {
	if a.Verdict == "" {
		return Judge{}
	}
	return Judge{a.JudgedBy, a.JudgePrompt}
}

// What a report says of judges that nobody has compared with people.
const (
	UncomparedTitle = "A model judged, and was never compared with people"
	UncomparedText  = "What it gets wrong counts as the agents' success or failure. Label some of these outcomes, and " +
		"let `assay judge agree LABELS.csv` say how often it agrees with people."
)

// Compare finds out which models judged that are none of the judges that were compared with people.
func (s *Side) Compare(compared []Judge) {
	for _, jury := range s.Juries {
		prompt, model, _ := strings.Cut(jury, " ")
		if !slices.Contains(compared, Judge{model, prompt}) && !slices.Contains(s.Uncompared, model) {
			s.Uncompared = append(s.Uncompared, model)
		}
	}
}

// String is empty for the zero value. No version has a blank in it.
func (j Judge) String() string { return strings.TrimSpace(j.Prompt + " " + j.Model) }

// uncompared counts the outcomes of each judge that nobody has compared with people.
func uncompared(models []*cell, b Beside) (where []string) {
	counts := make(map[string]int)
	for _, m := range models {
		for name, n := range m.tags[judges] {
			prompt, model, _ := strings.Cut(name, " ")
			if !slices.Contains(b.Compared, Judge{model, prompt}) {
				counts[model] += n
			}
		}
	}
	return judgedBy(counts)
}

// alone counts the outcomes that models decided without any other condition.
func alone(models []*cell) []string {
	counts := make(map[string]int)
	for _, m := range models {
		for model, n := range m.tags[judgedAlone] {
			counts[model] += n
		}
	}
	return judgedBy(counts)
}

func judgedBy(counts map[string]int) (where []string) {
	for _, model := range slices.Sorted(maps.Keys(counts)) {
		where = append(where, fmt.Sprintf("%s: %s", model, assay.Counted(counts[model], "outcome")))
	}
	return where
}
