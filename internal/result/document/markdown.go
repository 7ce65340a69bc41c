package document

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// factsTitle is the title of the facts.
const factsTitle = "Reproduce this run"

// WriteMarkdown writes the document in GitHub's Markdown, with the texts of charts. Folded rows,
// hints of cells and episodes are left out.
func (d *Document) WriteMarkdown(w io.Writer) error {
	blocks := []string{heading("# ", d.Title), summaryList(d.Headline), summaryList(d.Summary), prosaic(d.Lead)}
	if d.Chart != nil {
		blocks = append(blocks, prosaic(d.Chart.Text))
	}
	if d.Overview != nil {
		blocks = append(blocks, d.Overview.markdown())
	}
	blocks = append(blocks, warningQuotes(d.Warnings))
	for _, s := range d.Sections {
		blocks = append(blocks, s.markdown())
	}
	if len(d.Facts) > 0 {
		facts := &Table{
			Columns: []Column{{Head: "Fact", Names: true}, {Head: "Value", Names: true}},
		}
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

// summaryList returns the points of a summary as a list.
func summaryList(points []Point) string {
	var out []string
	for _, p := range points {
		out = append(out, "- **"+escape(p.Label)+"** "+withCode(p.Text))
	}
	return strings.Join(out, "\n")
}

// withCode escapes a line, except for its code. What would need an escape inside code, which has none, is
// no code.
func withCode(text string) string {
	out := ""
	for _, p := range pieces(text) {
		switch {
		case p.Code && !strings.ContainsAny(p.Text, "<|\\&"):
			out += "`" + p.Text + "`"
		case p.Code:
			out += escapeWithin("`" + p.Text + "`")
		default:
			out += escapeWithin(p.Text)
		}
	}
	return out
}

// prosaic returns text as paragraphs, with its commands as code.
func prosaic(text string) string {
	var out []string
	for _, p := range paragraphs(text) {
		out = append(out, withCode(p))
	}
	return strings.Join(out, "\n\n")
}

// warningQuotes returns a block quote for each warning. GitHub colours them.
func warningQuotes(warnings []Warning) string {
	var out []string
	for _, w := range warnings {
		title := escape(w.Title)
		if title != "" {
			title = "**" + title + "**"
		}
		var where []string
		for _, place := range w.Where {
			if place = escape(place); place != "" {
				where = append(where, "- "+place)
			}
		}
		if len(where) > 0 {
			where = slices.Insert(where, 0, "Where:", "")
		}
		text := "[!WARNING]\n" + join("\n\n", title, prosaic(w.Text), strings.Join(where, "\n"))
		out = append(out, strings.TrimRight("> "+strings.ReplaceAll(text, "\n", "\n> "), " "))
	}
	return strings.ReplaceAll(strings.Join(out, "\n\n"), "> \n", ">\n")
}

func (s Section) markdown() string {
	parts := []string{heading("## ", s.Title), prosaic(s.Lead), s.indented()}
	var notes []string
	if s.Chart != nil {
		parts = append(parts, prosaic(s.Chart.Text))
		if len(s.Chart.Dots) > 0 {
			parts = append(parts, "```text\n"+pen{}.plot(s.Chart.Dots)+"\n```")
		}
	}
	if s.Table != nil {
		parts = append(parts, s.Table.markdown())
		for _, l := range []string{s.Table.foldedText(), s.Table.legend()} {
			if l != "" {
				notes = append(notes, "- "+l)
			}
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
	first, _ := t.shown()
	for _, row := range first {
		l := "|"
		for i := range t.Columns {
			l += " " + cellAt(row, i).marked() + " |"
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

// escaped maps the characters that have a meaning in the middle of a line, in Markdown or HTML,
// to their escapes. A dollar sign would start a formula.
var escaped = map[rune]string{
	'\\': `\\`, '`': "\\`", '*': `\*`, '_': `\_`, '[': `\[`, ']': `\]`, '|': `\|`, '~': `\~`,
	'<': "&lt;", '>': "&gt;", '&': "&amp;", '$': "&#36;",
}

// mark matches the start of a heading, a list or a rule, up to the character that makes it one.
var mark = regexp.MustCompile(`^(#|=|[-+]( |$|-)|\d+[.)]( |$))`)

// escape returns text as one line that Markdown shows literally. Underscores within words have no
// meaning and stay, so that names can be read.
func escape(text string) string { return escapeWithin(line(text)) }

// escapeWithin is escape for a part of a line, whose spaces it keeps.
func escapeWithin(text string) string {
	runes := []rune(text)
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	var b strings.Builder
	if m := mark.FindString(string(runes)); m != "" {
		at := strings.IndexAny(m, "#=-+.)") // digits may come before it
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
