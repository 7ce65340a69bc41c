package document

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// factsTitle stands above the facts.
const factsTitle = "To do the same again"

// WriteMarkdown writes the document as GitHub's Markdown, with the texts of
// charts. Hints of cells and episodes are left out.
func (d *Document) WriteMarkdown(w io.Writer) error {
	blocks := []string{heading("# ", d.Title), alarmQuotes(d.Alarms), prosaic(d.Lead)}
	for _, s := range d.Sections {
		blocks = append(blocks, s.markdown())
	}
	if len(d.Facts) > 0 {
		facts := &Table{Columns: []Column{{Head: "Fact", Names: true}, {Head: "Value", Names: true}}}
		for _, f := range d.Facts {
			facts.Rows = append(facts.Rows, []Cell{{Text: f.Name}, {Text: f.Value}})
		}
		blocks = append(blocks, heading("## ", factsTitle), facts.markdown())
	}
	_, err := io.WriteString(w, join("\n\n", blocks...)+"\n")
	return err
}

func heading(mark, text string) string {
	if text = escape(text); text == "" {
		return ""
	}
	return mark + text
}

// prosaic returns text as paragraphs.
func prosaic(text string) string {
	var out []string
	for _, p := range paragraphs(text) {
		out = append(out, escape(p))
	}
	return strings.Join(out, "\n\n")
}

// alarmQuotes returns a block quote for each alarm, which GitHub colours.
func alarmQuotes(alarms []Alarm) string {
	var out []string
	for _, a := range alarms {
		title := escape(a.Title)
		if title != "" {
			title = "**Alarm: " + title + "**"
		}
		var where []string
		for _, w := range a.Where {
			if w = escape(w); w != "" {
				where = append(where, "- "+w)
			}
		}
		if len(where) > 0 {
			where = slices.Insert(where, 0, "Where:", "")
		}
		text := "[!CAUTION]\n" + join("\n\n", title, prosaic(a.Text), strings.Join(where, "\n"))
		out = append(out, strings.TrimRight("> "+strings.ReplaceAll(text, "\n", "\n> "), " "))
	}
	return strings.ReplaceAll(strings.Join(out, "\n\n"), "> \n", ">\n")
}

func (s Section) markdown() string {
	parts := []string{heading("## ", s.Title), prosaic(s.Lead)}
	var notes []string
	if s.Chart != nil {
		parts = append(parts, prosaic(s.Chart.Text))
	}
	if s.Table != nil {
		parts = append(parts, s.Table.markdown())
		if l := s.Table.legend(); l != "" {
			notes = append(notes, "- "+l)
		}
		for _, c := range s.Table.Columns {
			if c.Head != "" && c.Hint != "" {
				notes = append(notes, fmt.Sprintf("- **%s**: %s", escape(c.Head), escape(c.Hint)))
			}
		}
	}
	for _, n := range s.Notes {
		if n = escape(n); n != "" {
			notes = append(notes, "- "+n)
		}
	}
	return join("\n\n", append(parts, join("\n", notes...))...)
}

func (t *Table) markdown() string {
	if len(t.Columns) == 0 {
		return ""
	}
	head, rule := "|", "|"
	for _, c := range t.Columns {
		head += " " + escape(c.Head) + " |"
		if c.Names {
			rule += " :--- |"
		} else {
			rule += " ---: |"
		}
	}
	lines := []string{head, rule}
	for _, row := range t.Rows {
		l := "|"
		for i := range t.Columns {
			text := ""
			if i < len(row) {
				text = row[i].marked()
			}
			l += " " + text + " |"
		}
		lines = append(lines, l)
	}
	return strings.Join(lines, "\n")
}

// marked returns the escaped text with the sign of its tone, and the note.
func (c Cell) marked() string {
	text := escape(c.Text)
	switch {
	case c.Tone == Muted:
		text = "(" + text + ")"
	case sign[c.Tone] != "":
		text = join(" ", text, sign[c.Tone])
	}
	return join("<br>", text, escape(c.Note))
}

// escaped are the characters of Markdown and HTML that mean something in the
// middle of a line, each with what stands for it. A dollar would begin a
// formula.
var escaped = map[rune]string{
	'\\': `\\`, '`': "\\`", '*': `\*`, '_': `\_`, '[': `\[`, ']': `\]`, '|': `\|`, '~': `\~`,
	'<': "&lt;", '>': "&gt;", '&': "&amp;", '$': "&#36;",
}

// mark matches the beginning of a line that would be a heading, a list or a
// rule, up to the character that makes it one.
var mark = regexp.MustCompile(`^(#|=|[-+]( |$|-)|\d+[.)]( |$))`)

// escape returns text as one line that Markdown shows as it is. An underscore
// within a word means nothing and stays, so that names can be read.
func escape(text string) string {
	runes := []rune(line(text))
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	var b strings.Builder
	if m := mark.FindString(string(runes)); m != "" {
		at := strings.IndexAny(m, "#=-+.)") // digits come before it
		b.WriteString(m[:at] + `\` + m[at:at+1])
		runes = runes[at+1:]
	}
	for i, r := range runes {
		switch e, ok := escaped[r]; {
		case r == '_' && inWord(i-1) && inWord(i+1), !ok:
			b.WriteRune(r)
		default:
			b.WriteString(e)
		}
	}
	return b.String()
}
