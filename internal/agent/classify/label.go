package classify

import (
	"strings"

	"github.com/assay-eval/assay"
)

// labels maps what models call the categories, squeezed, to their names. Words
// of the 2025 original are among them.
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
		assay.CategoryOther:           "",
	} {
		for _, name := range append(strings.Fields(also), category) {
			m[squeeze(name)] = category
		}
	}
	return m
}()

// Label reads a category as a model writes it: in any case, with whatever
// stands between the words, in the plural, with "error" at its end, by another
// name that is in use, or with one typing error. A text that could be two of
// them is none.
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

// squeeze leaves the letters of a name, in lower case, without the s of a
// plural and without the word error at the end.
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

// slip reports whether a is b with one letter left out, put in or replaced, or
// two neighbours swapped.
func slip(a, b string) bool {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}
