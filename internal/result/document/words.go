package document

import (
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// line returns text as one line of words, without what a terminal would obey:
// control characters, those that turn the direction of writing, invalid UTF-8.
func line(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return r == ' ' || r == '\u2028' || r == '\u2029' || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	}), " ")
}

// paragraphs returns the lines of text that are not empty.
func paragraphs(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		if l = line(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// wrap breaks a line between words, so that no part is wider than width if it
// has more than a word.
func wrap(text string, width int) []string {
	var out []string
	used := 0
	for _, word := range strings.Split(text, " ") {
		w := lipgloss.Width(word)
		if len(out) > 0 && used+1+w <= width {
			out[len(out)-1] += " " + word
			used += 1 + w
			continue
		}
		out, used = append(out, word), w
	}
	return out
}

// A tone's sign stands behind what it marks, and meaning is for those who see
// no colours. A muted text stands in parentheses.
var (
	tones   = []Tone{Good, Bad, Muted}
	sign    = map[Tone]string{Good: "▲", Bad: "▼"}
	meaning = map[Tone]string{Good: "significantly better", Bad: "significantly worse", Muted: "not to be relied on"}
)

// legend says what the signs in the table mean; it is empty without any.
func (t *Table) legend() string {
	used := make(map[Tone]bool)
	for _, row := range t.Rows {
		for _, c := range row {
			used[c.Tone] = true
		}
	}
	var out []string
	for _, tone := range tones {
		switch {
		case !used[tone]:
		case tone == Muted:
			out = append(out, "( ) "+meaning[tone])
		default:
			out = append(out, sign[tone]+" "+meaning[tone])
		}
	}
	return strings.Join(out, ", ")
}
