package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Capital begins a text with a capital letter.
func Capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// Readable returns a name from a data file the way a person would write it.
func Readable(name string) string {
	if name == "" {
		return "none"
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, "flawed_"), "_", " ")
}

// ReadableList joins readable names with commas.
func ReadableList(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, Readable(n))
	}
	return strings.Join(out, ", ")
}

// Percent writes a share as a percentage.
func Percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// Probability writes a p or q value the way statisticians do, without a leading zero.
func Probability(p float64) string {
	if p < .001 {
		return "< .001"
	}
	return strings.TrimPrefix(fmt.Sprintf("%.3f", p), "0")
}
