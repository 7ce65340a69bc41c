package document

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// line returns text as one line of words. It removes everything that a terminal would obey: control
// characters, characters that change the direction of writing, and invalid UTF-8.
func line(text string) string {
	separates := func(r rune) bool {
		return r == ' ' || r == '\u2028' || r == '\u2029' || unicode.IsControl(r) ||
			unicode.Is(unicode.Bidi_Control, r)
	}
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), separates), " ")
}

// code matches what a text has in backticks, such as a command.
var code = regexp.MustCompile("`([^`]+)`")

// A piece is a part of a text, which may be code.
type piece struct {
	Text string
	Code bool
}

// pieces divides a line into code and the text between it.
func pieces(text string) (all []piece) {
	text = line(text)
	at := 0
	for _, m := range code.FindAllStringSubmatchIndex(text, -1) {
		all = append(all, piece{text[at:m[0]], false}, piece{text[m[2]:m[3]], true})
		at = m[1]
	}
	return append(all, piece{text[at:], false})
}

// paragraphs returns the non-empty lines of text.
func paragraphs(text string) []string {
	var out []string
	for l := range strings.Lines(text) {
		if l = line(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

// words splits a line at spaces, but for those within backticks, because a command is copied as a
// whole.
func words(text string) (all []string) {
	open := false
	for _, word := range strings.Split(text, " ") {
		if open {
			all[len(all)-1] += " " + word
		} else {
			all = append(all, word)
		}
		open = open != (strings.Count(word, "`")%2 == 1)
	}
	return all
}

// wrapName is like wrap, and also breaks words that are wider than width after the signs that join the parts of a
// model's name: +, or slashes without any.
func wrapName(text string, width int) (out []string) {
	sign := "/"
	if strings.Contains(text, "+") {
		sign = "+"
	}
	for _, l := range wrap(text, width) {
		last := ""
		if strings.Contains(l, "`") { // a command is copied as a whole
			out = append(out, l)
			continue
		}
		for l != "" && lipgloss.Width(last+l) > width {
			end := 1 + strings.Index(l, sign)
			if end == 0 || end == len(l) {
				break
			}
			if last != "" && lipgloss.Width(last+l[:end]) > width {
				out, last = append(out, last), ""
			}
			last, l = last+l[:end], l[end:]
		}
		if last != "" && lipgloss.Width(last+l) > width {
			out, last = append(out, last), ""
		}
		out = append(out, last+l)
	}
	return out
}

// shortName leaves out the middle of a name that is wider than width.
func shortName(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= width {
		return name
	}
	return string(runes[:width/2]) + "…" + string(runes[len(runes)-(width-width/2-1):])
}

// wrap breaks a line between words. A part is only wider than width if it is a single word.
func wrap(text string, width int) []string {
	var out []string
	used := 0
	for _, word := range words(text) {
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

// A tone's sign follows the text that it marks, and its meaning is for readers who see no
// colours. Muted text stands in parentheses.
var (
	tones   = []Tone{Good, Bad, Muted}
	sign    = map[Tone]string{Good: "▲", Bad: "▼"}
	meaning = map[Tone]string{
		Good: "significantly better", Bad: "significantly worse", Muted: "unreliable",
	}
)

// legend explains the signs in the table. It is empty if there is no sign.
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

// foldedText counts the rows that were left out. It is empty if all are shown.
func (t *Table) foldedText() string {
	_, folded := t.shown()
	if folded == 0 {
		return ""
	}
	return fmt.Sprintf("%d more rows are not shown here; --format html or json has all of them.",
		folded)
}
