package document_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/document"
	"gotest.tools/v3/golden"
)

// written returns the output of a document's method.
func written(t interface {
	Helper()
	Fatal(...any)
}, write func(io.Writer) error,
) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func plain(d *document.Document) func(io.Writer) error {
	return on(d, document.Terminal{})
}

func on(d *document.Document, t document.Terminal) func(io.Writer) error {
	return func(w io.Writer) error { return d.WriteText(w, t) }
}

func TestDocumentAsText(t *testing.T) {
	t.Parallel()
	golden.Assert(t, written(t, plain(sample())), "sample.txt")
}

func TestDocumentAsMarkdown(t *testing.T) {
	t.Parallel()
	golden.Assert(t, written(t, sample().WriteMarkdown), "sample.md")
}

var escapeSequence = regexp.MustCompile("\x1b\\[[0-9;]*m")

// Colours add escape sequences and keep the text.
func TestColoursOnlyAddEscapes(t *testing.T) {
	t.Parallel()
	d := sample()
	colored := written(t, on(d, document.Terminal{Color: true}))
	if n := len(escapeSequence.FindAllString(colored, -1)); n < 20 {
		t.Errorf("%d changes of colour", n)
	}
	if diff := cmp.Diff(written(t, plain(d)), escapeSequence.ReplaceAllString(colored, "")); diff != "" {
		t.Errorf("text without and with colours (-want +got):\n%s", diff)
	}
}

func TestAnswersComeBeforeWarningsAndFigures(t *testing.T) {
	t.Parallel()
	d := sample()
	for name, text := range map[string]string{
		"text":     written(t, plain(d)),
		"Markdown": written(t, d.WriteMarkdown),
		"HTML":     body(written(t, d.WriteHTML)),
	} {
		at := 0
		for _, next := range []string{
			"fully succeeds in 68 %", "7,200 of", d.Warnings[0].Title, "Who succeeds",
		} {
			i := strings.Index(text, next)
			if i < at {
				t.Errorf("%s: %q is at %d, want it after %d", name, next, i, at)
			}
			at = i
		}
	}
}

func TestFoldedRowsAreCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rows, shown, written int }{
		"all":             {rows: 5, shown: 0, written: 5},
		"a single row":    {rows: 5, shown: 4, written: 5},
		"a long tail":     {rows: 50, shown: 10, written: 10},
		"more than there": {rows: 5, shown: 10, written: 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table := &document.Table{
				Columns: []document.Column{{Head: "name", Names: true}},
				Shown:   c.shown,
			}
			for i := range c.rows {
				table.Rows = append(table.Rows, []document.Cell{{Text: fmt.Sprint("row-", i)}})
			}
			d := &document.Document{Sections: []document.Section{{ID: "a", Table: table}}}
			note := fmt.Sprintf("%d more rows", c.rows-c.written)
			for format, text := range map[string]string{
				"text": written(t, plain(d)), "Markdown": written(t, d.WriteMarkdown),
			} {
				if got := strings.Count(text, "row-"); got != c.written {
					t.Errorf("%s has %d rows, want %d", format, got, c.written)
				}
				if got := strings.Contains(text, note); got != (c.written < c.rows) {
					t.Errorf("%s counts the folded rows: %v", format, got)
				}
			}
			if got := strings.Count(body(written(t, d.WriteHTML)), "row-"); got != c.rows {
				t.Errorf("HTML has %d rows, want all %d", got, c.rows)
			}
		})
	}
}

// Text and HTML show twelve places of a warning at first and count the rest. HTML can unfold them,
// and Markdown lists all.
func TestLongListsOfPlacesAreFolded(t *testing.T) {
	t.Parallel()
	for n, more := range map[int]int{0: 0, 1: 0, 12: 0, 13: 1, 148: 136} {
		var places []string
		for i := range n {
			places = append(places, fmt.Sprintf("cell-%d, hard", i+1))
		}
		d := &document.Document{
			Warnings: []document.Warning{{Title: "0 %", Text: "No success.", Where: places}},
		}
		text, markdown := written(t, plain(d)), written(t, d.WriteMarkdown)
		page := body(written(t, d.WriteHTML))
		if got := strings.Count(text, "- cell-"); got != n-more {
			t.Errorf("text lists %d of %d places", got, n)
		}
		if got := strings.Contains(text, fmt.Sprintf("and %d more; --format html or json lists all\n", more)); got != (more > 0) ||
			strings.Contains(text, "more;") != got {
			t.Errorf("text of %d places: says how many more is %v", n, got)
		}
		if got := strings.Count(markdown, "\n> - cell-"); got != n ||
			strings.Contains(markdown, "more") {
			t.Errorf("Markdown lists %d of %d places:\n%s", got, n, markdown)
		}
		shown, rest, _ := strings.Cut(page, "<details>")
		hidden, paper, _ := strings.Cut(rest, "</details>")
		if a, b, c := strings.Count(shown, "<li>cell-"), strings.Count(hidden, "<li>cell-"), strings.Count(paper, "<li>cell-"); a != n-more ||
			b != more ||
			c != more {
			t.Errorf("HTML of %d places shows %d, hides %d, and has %d more for paper", n, a, b, c)
		}
		if got := strings.Contains(page, fmt.Sprintf("<summary>and %d more</summary>", more)); got != (more > 0) {
			t.Errorf("HTML of %d places: says how many more is %v", n, got)
		}
	}
}

// A table that is too wide for paper is split into sheets. Each column occurs once, in order, after
// the leading columns of names. Other tables are not split.
func TestWideTablesSplitForPaper(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		left, columns := rapid.IntRange(0, 3).
			Draw(t, "left"),
			rapid.IntRange(1, 60).
				Draw(t, "columns")
		width := rapid.IntRange(1, 12).Draw(t, "width")
		table, want := &document.Table{Rows: make([][]document.Cell, 1)}, ""
		for c := range left + columns {
			table.Columns = append(
				table.Columns,
				document.Column{Head: fmt.Sprintf("h%d", c), Names: c < left},
			)
			table.Rows[0] = append(
				table.Rows[0],
				document.Cell{
					Text: fmt.Sprintf("%0*d", width, c),
					Note: strings.Repeat("0", rapid.IntRange(0, 14).Draw(t, "note")),
				},
			)
			if c >= left {
				want += fmt.Sprintf("h%d ", c)
			}
		}
		d := &document.Document{Sections: []document.Section{{ID: "a", Table: table}}}
		_, sheets, split := strings.Cut(body(written(t, d.WriteHTML)), `<div class="sheet"`)
		if n := left + columns; split && n < 5 || !split && n > 40 {
			t.Fatalf("a table of %d columns is parted: %v", n, split)
		}
		if !split {
			return
		}
		got := ""
		for _, s := range strings.Split(sheets, `<div class="sheet"`) {
			var heads, cells []string
			for _, m := range regexp.MustCompile(`<span class="head">(h\d+)</span>`).FindAllStringSubmatch(s, -1) {
				heads = append(heads, m[1])
			}
			for _, m := range regexp.MustCompile(`<span>0*(\d+)</span>`).FindAllStringSubmatch(s, -1) {
				cells = append(cells, "h"+m[1])
			}
			if diff := cmp.Diff(heads, cells); diff != "" {
				t.Fatalf("cells are not those of the heads (-want +got):\n%s", diff)
			}
			if len(heads) <= left || strings.Count(s, "<tr>") != 2 {
				t.Fatalf("a sheet has %d columns and %d rows", len(heads), strings.Count(s, "<tr>"))
			}
			for i := range left {
				if heads[i] != fmt.Sprintf("h%d", i) {
					t.Fatalf("a sheet begins with %v", heads)
				}
			}
			got += strings.Join(heads[left:], " ") + " "
		}
		if got != want {
			t.Fatalf("sheets have %s, want %s", got, want)
		}
	})
}

func TestEmptyDocument(t *testing.T) {
	t.Parallel()
	var d document.Document
	d.Sections = []document.Section{{Table: &document.Table{}}}
	if got := written(t, plain(&d)); strings.TrimSpace(got) != "" {
		t.Errorf("text is %q", got)
	}
	if got := written(t, d.WriteMarkdown); got != "\n" {
		t.Errorf("Markdown is %q", got)
	}
	if got := written(t, d.WriteHTML); strings.Contains(got, "vegaEmbed") ||
		strings.Contains(got, "Vega") {
		t.Error("a page without charts holds the code for them")
	}
}

// No attribute and no style of the page refers to a network, and its policy only allows its own
// scripts.
func TestPageLoadsNothing(t *testing.T) {
	t.Parallel()
	page := written(t, sample().WriteHTML)
	tags := tag.FindAllString(body(page), -1)
	for _, tg := range tags {
		if m := regexp.MustCompile(`\s(src|href|srcset|action|data|poster|background|on\w+)="([^"]*)"`).FindStringSubmatch(tg); m != nil &&
			(m[1] != "href" || !strings.HasPrefix(m[2], "#") && m[2] != "data:,") {
			t.Errorf("%s loads or does something", tg)
		}
		if regexp.MustCompile(`^<(iframe|object|embed|img|base|form|video|audio)\b`).
			MatchString(tg) {
			t.Errorf("%s is in the page", tg)
		}
	}
	style := page[strings.Index(page, "<style>"):strings.Index(page, "</style>")]
	for _, word := range []string{"url(", "@import", "@font-face", "//"} {
		if strings.Contains(style, word) {
			t.Errorf("the style holds %s", word)
		}
	}
	for _, word := range []string{"sourceMappingURL", "cdn."} {
		if strings.Contains(page, word) {
			t.Errorf("the page holds %s", word)
		}
	}
	policy := regexp.MustCompile(`content="(default-src [^"]*)"`).FindStringSubmatch(page)[1]
	policy = regexp.MustCompile(`'sha256-[A-Za-z0-9+/]{43}='`).ReplaceAllString(policy, "#")
	if want := "default-src 'none'; script-src # # # # #; style-src 'unsafe-inline'; img-src data: blob:; connect-src 'none'; base-uri 'none'; form-action 'none'"; policy != want {
		t.Errorf("policy is %s", policy)
	}
	if n := strings.Count(page, "</script>"); n != 5+6 {
		t.Errorf("%d ends of scripts, want those of 5 scripts and 6 charts", n)
	}
}

// Without scripts all text is still in the page.
func TestPageIsCompleteWithoutScripts(t *testing.T) {
	t.Parallel()
	d := sample()
	page := html.UnescapeString(tag.ReplaceAllString(body(written(t, d.WriteHTML)), ""))
	for _, s := range d.Sections {
		texts := append([]string{s.Title}, s.Notes...)
		if s.Chart != nil {
			texts = append(texts, s.Chart.Text)
		}
		if s.Table != nil {
			for _, row := range s.Table.Rows {
				for _, c := range row {
					texts = append(texts, c.Text, c.Hint)
				}
			}
		}
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("section %s: %q is missing", s.ID, text)
			}
		}
	}
	for _, text := range []string{"a3f9: llama", "It named a tool", "Made by Assay 0.9.0.", "significantly worse", "UNKNOWN_TOOL"} {
		if !strings.Contains(page, text) {
			t.Errorf("%q is missing", text)
		}
	}
}

// Every link leads to an element in the page. Cells with an unknown episode have no link.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	d := sample()
	d.Sections[0].Table.Rows[0][9] = document.Cell{Text: "lost", Episode: "lost"}
	page := body(written(t, d.WriteHTML))
	links := regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1)
	var ids []string
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		ids = append(ids, m[1])
	}
	if len(links) != len(d.Sections)+2+2 {
		t.Errorf("%d links", len(links))
	}
	for _, l := range links {
		if !slices.Contains(ids, l[1]) {
			t.Errorf("link to #%s leads nowhere", l[1])
		}
	}
	slices.Sort(ids)
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
		t.Errorf("IDs are not unique: %v", ids)
	}
}

// The error comes before anything is written.
func TestInvalidChartFailsBeforeWriting(t *testing.T) {
	t.Parallel()
	d := sample()
	d.Sections[2].Chart.Spec = json.RawMessage(`{"mark": `)
	var b bytes.Buffer
	err := d.WriteHTML(&b)
	if err == nil || !strings.Contains(err.Error(), `"flaws"`) || b.Len() > 0 {
		t.Errorf("error %v after %d bytes", err, b.Len())
	}
}
