package report

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Build returns the table of [Design.Analyze].
func (d Design) Build(
	experiment string,
	trials iter.Seq[assay.Trial],
	attempts iter.Seq2[assay.Attempt, error],
) (*Table, error) {
	a, err := d.Analyze(experiment, trials, attempts, Beside{})
	if err != nil {
		return nil, err
	}
	return a.Table, nil
}

// Build calls [Design.Build] on the zero Design.
func Build(
	experiment string,
	trials iter.Seq[assay.Trial],
	attempts iter.Seq2[assay.Attempt, error],
) (*Table, error) {
	return Design{}.Build(experiment, trials, attempts)
}

// Definitions has the meaning of every measure as docs/results.md has it, from their declarations.
func Definitions() string {
	var b strings.Builder
	seen := make(map[string]bool)
	for _, part := range []struct {
		title    string
		measures []*Measure
	}{
		{"On the first screen", []*Measure{
			StandingSuccess, StandingSkill, FlawedPlan, WorstFlaw, ToolFailures, WorstKind, Recovery,
			FalseSuccess, DollarsPerSuccess, Finished,
		}},
		{"In the tables", slices.Concat(
			mainMeasures, Tables["cost"], rowMeasures, effortMeasures, Tables["exposure"], Tables["reactions"])},
		{"In the profile of models", slices.Concat(Tables["profile"], Tables["robustness"], Tables["variance"],
			Tables["predictability"], Tables["published"], Tables["published-robustness"])},
		{"On unwanted effects", Tables["safety"]},
		{"Only in `pilot`", Tables["pilot"][1:]},
	} {
		fmt.Fprintf(&b, "%s:\n\n", part.title)
		for _, m := range part.measures {
			if name := part.title + m.Key + m.Heads[0]; m.Means != "" && !seen[name] {
				seen[name] = true
				fmt.Fprintf(&b, "- **%s** (`%s`): %s\n", strings.Join(m.Heads, ", "), m.Key, m.Means)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
