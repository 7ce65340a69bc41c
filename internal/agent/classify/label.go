package classify

import (
	"strings"

	"github.com/assay-eval/assay"
)

// labels maps the squeezed names that models use to categories. It includes the names of the 2025
// original.
var labels = func() map[string]string {
	m := make(map[string]string)
	for category, also := range map[string]string{
		assay.CategoryToolCallFormat:  "format formatting tool_format call_format tool_call_formatting",
		assay.CategoryTimeout:         "timed_out",
		assay.CategoryMaxTurns:        "maximum_turns turn_limit",
		assay.CategoryToolSelection:   "selection tool_choice",
		assay.CategoryParameterConfig: "parameter parameter_configuration",
		assay.CategorySequenceOrder:   "sequence order",
		assay.CategoryDependency:      "dependencies",
		assay.CategoryUnwantedEffect:  "effect side_effect unwanted",
		assay.CategoryAgentFailure:    "agent_crash",
		assay.CategoryFramework:       "framework_change",
		assay.CategoryOther:           "",
	} {
		for _, name := range append(strings.Fields(also), category) {
			m[squeeze(name)] = category
		}
	}
	return m
}()

// Label parses a category as models write it. It ignores case, separators, a plural s and a final
// "error", and it knows other common names. It accepts one typing error. If the text could mean two
// categories, Label returns false.
func Label(text string) (category string, ok bool) {
	text = squeeze(text)
	if category, ok = labels[text]; ok {
		return category, true
	}
	for label, c := range labels {
		if !slip(text, label) {
			continue
		}
		if category != "" && category != c {
			return "", false
		}
		category = c
	}
	return category, category != ""
}

// squeeze reduces a name to its letters in lower case, without a plural s and without a final
// "error".
func squeeze(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(name))
	name = strings.TrimSuffix(strings.TrimSuffix(name, "s"), "error")
	return strings.TrimSuffix(name, "s")
}

// slip reports whether a equals b after one letter is removed, added or replaced, or two neighbours
// are swapped.
func slip(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	swapped := len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
	return len(a) <= 1 && len(b) <= 1 || swapped
}
