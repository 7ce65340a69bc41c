package exhibit

import (
	"fmt"
	"strings"

	"github.com/assay-eval/assay/internal/result/report"
)

// shortHash shortens a hash to its first characters.
func shortHash(hash string) string {
	if len(hash) <= 8 {
		return hash
	}
	return hash[:8] + "…"
}

// leftOutNotes returns a sentence for each variant and severity that was not planned for some
// tasks.
func leftOutNotes(left []report.LeftOut) []string {
	var variants []string
	types, total := make(map[string][]string), make(map[string]report.LeftOut)
	for _, l := range left {
		if l.Tasks == 0 {
			continue
		}
		name := report.PromptKey(l.Variant, l.Severity)
		sum, ok := total[name]
		if !ok {
			variants = append(variants, name)
		}
		total[name] = report.LeftOut{Tasks: sum.Tasks + l.Tasks, Of: sum.Of + l.Of}
		types[name] = append(types[name], l.TaskType)
	}

	var notes []string
	for _, name := range variants {
		have, are := "have", "are"
		if total[name].Tasks == 1 {
			have, are = "has", "is"
		}
		notes = append(notes, fmt.Sprintf("%s: %d of %d tasks (%s) %s no such plan and %s left out.",
			name, total[name].Tasks, total[name].Of, strings.Join(types[name], ", "),
			have, are))
	}
	return notes
}
