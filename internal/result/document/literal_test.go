package document_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"charm.land/lipgloss/v2"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// nasty draws text with a meaning to browsers, terminals or Markdown.
var nasty = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.OneOf(
		rapid.SampledFrom([]string{
			"<script>alert(1)</script>", "</script>", "<!--", "-->", "]]>", "</style>", "</title>", "'", `"`, "`", "&", "&lt;", "<", ">", "|", `\`, "*", "_", "[a](b)",
			"~", "$", "#", "+ ", "- ", "---", "1. ", "12) ", "===", "{{.}}", "javascript:alert(1)", "\x1b[31m", "\u009b", "\x00", "\r", "\u202e", "\u2028", "\xff", "模型", "é", " ", "  ",
		}),
		rapid.String(),
	), 1, 6).Draw(t, "parts")
	return strings.ReplaceAll(strings.Join(parts, ""), "\n", "")
})

// replaced applies f to every text in the document, and replaces the charts by a specification with
// text.
func replaced(d *document.Document, text string, f func(string) string) *document.Document {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch {
		case v.Type() == reflect.TypeFor[json.RawMessage]():
			var b bytes.Buffer
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			_ = e.Encode(map[string]string{"mark": text})
			v.SetBytes(b.Bytes())
		case v.Type() == reflect.TypeFor[document.Tone]():
		case v.Kind() == reflect.String && v.Len() > 0:
			v.SetString(f(v.String()))
		case v.Kind() == reflect.Pointer && !v.IsNil():
			walk(v.Elem())
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		}
	}
	walk(reflect.ValueOf(d))
	return d
}

// short returns the sample with the first and the last row of each table.
func short() *document.Document {
	d := sample()
	for _, s := range d.Sections {
		if s.Table != nil {
			rows := s.Table.Rows
			s.Table.Rows = [][]document.Cell{rows[0], rows[len(rows)-1]}
		}
	}
	return d
}

// plant adds text to every string of a document. All strings start with a letter and are one line,
// because the structure of the output depends on that.
func plant(d *document.Document, text string) *document.Document {
	return replaced(d, text, func(s string) string {
		return "x" + text + strings.NewReplacer("\n", " ", "`", "").Replace(s)
	})
}

// body returns a page without the contents of its scripts and styles.
func body(page string) string {
	var b strings.Builder
	for {
		start := min(index(page, "<script"), index(page, "<style"))
		head, rest, found := strings.Cut(page[start:], ">")
		b.WriteString(page[:start] + head)
		if !found {
			return b.String()
		}
		b.WriteString(">")
		page = rest[min(index(rest, "</script"), index(rest, "</style")):]
	}
}

// TestBackticksAreCode checks that no text of a page shows backticks: what stands in them is code. The
// words of episodes are shown as they are.
func TestBackticksAreCode(t *testing.T) {
	t.Parallel()
	d := plant(sample(), "`assay show 1` ")
	d.Episodes = nil
	for _, withOverview := range []bool{false, true} {
		if withOverview {
			d.Overview, d.Sections = &d.Sections[0], d.Sections[1:]
		}
		page := body(written(t, d.WriteHTML))
		_, page, _ = strings.Cut(page, "<body")
		shown := tag.ReplaceAllString(strings.ReplaceAll(page, "<code>assay show 1</code>", "CODE"), "")
		if at := strings.Index(shown, "`"); at >= 0 {
			t.Errorf("the page shows %q", shown[max(0, at-40):min(len(shown), at+60)])
		}
		if n := strings.Count(shown, "CODE"); n < 50 {
			t.Errorf("%d texts have code", n)
		}
		if folded := strings.Count(page, `class="fold"`); withOverview != (folded > 0) {
			t.Errorf("%d sections are folded, with an overview: %t", folded, withOverview)
		}
	}
}

// index returns the length of text if it does not contain part.
func index(text, part string) int {
	if i := strings.Index(text, part); i >= 0 {
		return i
	}
	return len(text)
}

var (
	tag    = regexp.MustCompile(`<[^>]*>`)
	quoted = regexp.MustCompile(`"[^"]*"`)
)

// skeleton returns a page's tags with the names of their attributes. The tag of code, which only holds
// text, is what a text gets that has something in backticks.
func skeleton(page string) []string {
	tags := slices.DeleteFunc(tag.FindAllString(body(page), -1), func(t string) bool {
		return t == "<code>" || t == "</code>"
	})
	for i, t := range tags {
		tags[i] = quoted.ReplaceAllString(t, `""`)
	}
	return tags
}

// sheets are the tables for paper. Their number depends on the width of the text.
var sheets = regexp.MustCompile(`(?s)<div class="sheet".*?</table>\n</div>\n`)

var ofSheets = regexp.MustCompile(
	`^</?(div|table|thead|tbody|tr|th|td|span|small)( (class|scope|data-tone|aria-hidden)="")*>$`,
)

// Strings of a document cannot change the structure of the output: HTML keeps its tags and scripts,
// Markdown its lines and columns, and text never controls the terminal.
func TestTextCannotChangeStructure(t *testing.T) {
	t.Parallel()
	harmless := plant(short(), "")
	wantTags := skeleton(sheets.ReplaceAllString(written(t, harmless.WriteHTML), ""))
	wantLines := strings.Split(written(t, harmless.WriteMarkdown), "\n")
	rapid.Check(t, func(t *rapid.T) {
		d := plant(short(), nasty.Draw(t, "text"))
		page := written(t, d.WriteHTML)
		tags := skeleton(sheets.ReplaceAllString(page, ""))
		if !slices.Equal(wantTags, tags) { // cmp.Diff is slow
			t.Fatalf("tags (-want +got):\n%s", cmp.Diff(wantTags, tags))
		}
		for _, s := range sheets.FindAllString(page, -1) {
			for _, tg := range skeleton(s) {
				if !ofSheets.MatchString(tg) {
					t.Fatalf("a sheet holds %s", tg)
				}
			}
		}
		lines := strings.Split(written(t, d.WriteMarkdown), "\n")
		if len(lines) != len(wantLines) {
			t.Fatalf("Markdown has %d lines, want %d", len(lines), len(wantLines))
		}
		for i, l := range lines {
			if got, want := bars(l), bars(wantLines[i]); got != want {
				t.Fatalf("line %q has %d bars, want %d", l, got, want)
			}
			if got, want := strings.Count(l, "<"), strings.Count(wantLines[i], "<"); got != want { // before a note
				t.Fatalf("line %q has %d tags, want %d", l, got, want)
			}
		}
		text := written(t, plain(d))
		for l := range strings.Lines(text) {
			l = strings.TrimSuffix(l, "\n")
			if strings.TrimRight(l, " ") != l {
				t.Fatalf("line %q ends in a space", l)
			}
			if at := strings.IndexFunc(l, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }); at >= 0 {
				t.Fatalf("line %q holds %q", l, l[at:])
			}
		}
	})
}

var escaped = regexp.MustCompile(`\\.`)

// bars counts the separators of cells in a line of Markdown.
func bars(line string) int {
	return strings.Count(escaped.ReplaceAllString(line, ""), "|")
}

var markdownText = strings.NewReplacer(
	`\\`, `\`, "\\`", "`", `\*`, "*", `\_`, "_", `\[`, "[", `\]`, "]", `\|`, "|", `\~`, "~", `\#`, "#",
	`\=`, "=", `\-`, "-", `\+`, "+", `\.`, ".", `\)`, ")",
	"&lt;", "<", "&gt;", ">", "&amp;", "&", "&#36;", "$",
)

// Markdown shows the text as one line, because everything with another meaning is escaped, except for what
// stands in backticks, which is code.
func TestMarkdownShowsTextLiterally(t *testing.T) {
	t.Parallel()
	active := regexp.MustCompile(
		"^(#|=|[-+]( |$|-)|\\d+[.)]( |$))|[`*\\[\\]|~<>$]|(^|[^\\pL\\pN])_|_([^\\pL\\pN]|$)",
	)
	rapid.Check(t, func(t *rapid.T) {
		text := nasty.Draw(t, "text")
		d := document.Document{Lead: text}
		got := strings.TrimSuffix(written(t, d.WriteMarkdown), "\n")
		want := strings.Join(
			strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
				return r == ' ' || r == '\u2028' || r == '\u2029' || unicode.IsControl(r) ||
					unicode.Is(unicode.Bidi_Control, r)
			}),
			" ",
		)
		if shown := markdownText.Replace(got); shown != want {
			t.Fatalf("%q is written as %q, which shows %q", text, got, shown)
		}
		rest := regexp.MustCompile(`\\[[:punct:]]|&(lt|gt|amp|#36);`).ReplaceAllString(got, "x")
		rest = regexp.MustCompile("`[^`<|]+`").ReplaceAllString(rest, "x")
		if m := active.FindString(rest); m != "" {
			t.Fatalf("%q is written as %q, where %q means something", text, got, m)
		}
	})
}

// Prose and tables fit the terminal, unless a word does not, or the terminal is narrower than 60
// columns.
func TestLinesFitTerminal(t *testing.T) {
	t.Parallel()
	word := rapid.StringOfN(rapid.SampledFrom([]rune("abcé%")), 1, 12, -1)
	words := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(word, 1, 40).Draw(t, "words"), " ")
	})
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.SampledFrom([]int{0, 20, 60, 61, 80, 100, 120, 200}).Draw(t, "width")
		d := replaced(short(), "", func(string) string { return words.Draw(t, "text") })
		for i := range d.Sections {
			if d.Sections[i].Table == nil {
				continue
			}
			for _, row := range d.Sections[i].Table.Rows {
				for k := range row {
					row[k].Text, row[k].Note = word.Draw(t, "cell"), word.Draw(t, "note")
					if d.Sections[i].Table.Columns[k].Names {
						row[k].Text = words.Draw(t, "name")
					}
				}
			}
		}
		for i := range d.Facts {
			d.Facts[i].Name = word.Draw(t, "name")
		}
		room := max(width, 60)
		if width == 0 {
			room = document.Screen
		}
		widest := 0
		for l := range strings.Lines(written(t, on(d, document.Terminal{Width: width}))) {
			w := lipgloss.Width(strings.TrimSuffix(l, "\n"))
			widest = max(widest, w)
			if w > room {
				t.Fatalf("a line is %d wide, the terminal %d: %s", w, room, l)
			}
		}
		if widest < min(room, 100) {
			t.Fatalf("no line is wider than %d, the terminal is %d", widest, room)
		}
	})
}
