package document_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/result/document"
)

func TestTextTableLayout(t *testing.T) {
	t.Parallel()
	table := document.NewTextTable("name", "kind", "n", "share")
	table.Row("a", "long kind", "1000", "5 %")
	table.Row("a longer name", "k", "7", "100 %")
	table.Row("模型", "", "–", "")
	want := `name           kind          n  share
───────────────────────────────────────
a              long kind  1000    5 %
a longer name  k             7  100 %
模型                         –`
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// Cells of the first two columns start where their head starts, and other cells end where it ends.
// Columns are two apart, and no line ends in a space.
func TestColumnsAlignWithHeads(t *testing.T) {
	t.Parallel()
	cell := rapid.StringOfN(rapid.SampledFrom([]rune("abcé模%")), 1, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 6).Draw(t, "columns")
		lines := rapid.SliceOfN(rapid.SliceOfN(cell, columns, columns), 1, 6).Draw(t, "lines")
		table := document.NewTextTable(lines[0]...)
		for _, row := range lines[1:] {
			table.Row(row...)
		}
		widths := make([]int, columns)
		for _, row := range lines {
			for i, c := range row {
				widths[i] = max(widths[i], lipgloss.Width(c))
			}
		}
		got := strings.Split(table.String(), "\n")
		rule := strings.Trim(got[1], "─")
		got = append(got[:1], got[2:]...)
		for n, row := range lines {
			var want strings.Builder
			for i, c := range row {
				pad := strings.Repeat(" ", widths[i]-lipgloss.Width(c))
				if i < 2 {
					want.WriteString(c + pad + "  ")
				} else {
					want.WriteString(pad + c + "  ")
				}
			}
			if w := strings.TrimRight(want.String(), " "); got[n] != w {
				t.Fatalf("line %d is %q, want %q", n, got[n], w)
			}
		}
		if rule != "" || len(got) != len(lines) {
			t.Fatalf("%d lines and a rule %q", len(got), rule)
		}
	})
}

// Columns that do not fit continue below. Each occurs once, after the first ones, and no line is
// wider than the screen unless a single column is.
func TestWideTablesContinueBelow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		columns, rows, left := rapid.IntRange(1, 40).
			Draw(t, "columns"),
			rapid.IntRange(0, 3).
				Draw(t, "rows"),
			rapid.IntRange(0, 2).
				Draw(t, "left")
		// Names are unique words, so that they can be found again.
		name := func(row, column int) string {
			return fmt.Sprintf(
				"r%dc%dx%s", row, column,
				strings.Repeat("y", rapid.IntRange(0, 30).Draw(t, "width")),
			)
		}
		var heads []string
		for c := range columns {
			heads = append(heads, name(0, c)+"\nsecond")
		}
		table := document.NewScreenTable(document.Terminal{}, left, heads...)
		cells := slices.Clone(heads)
		for r := range rows {
			var row []string
			for c := range columns {
				row = append(row, name(r+1, c))
			}
			table.Row(row...)
			cells = append(cells, row...)
		}
		text := table.String()
		blocks := strings.Split(text, "\n\n")
		for i, c := range cells {
			c, _, _ = strings.Cut(c, "\n")
			want := 1
			if i%columns < left {
				want = len(blocks)
			}
			if got := strings.Count(text, c[:strings.Index(c, "x")+1]); got != want {
				t.Fatalf("%s is there %d times, want %d:\n%s", c, got, want, text)
			}
		}
		for _, b := range blocks {
			lines := strings.Split(b, "\n")
			own := len(strings.Fields(lines[0])) - left
			for _, l := range lines {
				if lipgloss.Width(l) > document.Screen && own > 1 {
					t.Fatalf("a line is %d wide:\n%s", lipgloss.Width(l), b)
				}
			}
			if len(lines) != rows+3 {
				t.Fatalf("a block has %d lines for %d rows:\n%s", len(lines), rows, b)
			}
		}
	})
}

// The second line of a cell adds a line to its own block only.
func TestBlocksHaveNoEmptyLines(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("w", document.Screen)
	table := document.NewScreenTable(document.Terminal{}, 1, "name", "a", wide)
	table.Row("x", "1\n2", "3")
	table.Row("y", "4", "5")
	if got := strings.Count(table.String(), "\n"); got != 9 {
		t.Errorf("%d line feeds in\n%s", got, table)
	}
}

func TestHeadsAlignToBottom(t *testing.T) {
	t.Parallel()
	table := document.NewTextTable("name", "kind", "full\nsuccess")
	table.Row("a", "b", "7")
	want := "               full\nname  kind  success\n─────────────────────\na     b           7"
	if diff := cmp.Diff(want, table.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// TestTerminalShowsTheFirstRows checks that a terminal shows 40 rows of a table, and a pipe all, in
// text tables and in tables of documents. One more row is shown, because a note would be as long.
func TestTerminalShowsTheFirstRows(t *testing.T) {
	t.Parallel()
	for rows, more := range map[int]string{
		40: "", 41: "", 42: "and 2 more rows: a pipe or a file gets all, for example `| less`",
	} {
		for _, width := range []int{0, 80} {
			on := document.Terminal{Width: width}
			table := document.NewScreenTable(on, 1, "name", "value")
			section := document.Table{Columns: []document.Column{{Head: "name", Names: true}}}
			for i := range rows {
				table.Row(fmt.Sprint("row ", i), "1")
				section.Rows = append(section.Rows, []document.Cell{{Text: fmt.Sprint("row ", i)}})
			}
			d := document.Document{Sections: []document.Section{{ID: "s", Table: &section}}}
			var text strings.Builder
			if err := d.WriteText(&text, on); err != nil {
				t.Fatal(err)
			}
			for _, got := range []string{table.String(), text.String()} {
				want := rows
				if width > 0 && more != "" {
					want = document.MaxRows
				}
				if n := strings.Count(got, "row "); n != want {
					t.Errorf("width %d shows %d of %d rows, want %d", width, n, rows, want)
				}
				if noted := strings.Contains(got, "more rows"); noted != (want < rows) {
					t.Errorf("width %d, %d rows: noted %v", width, rows, noted)
				}
				if want < rows && !strings.Contains(got, more) {
					t.Errorf("the table ends without %q:\n%s", more, got)
				}
			}
		}
	}
}

// TestCommandsAreNotBroken checks that lines do not end within a command, because it is copied.
func TestCommandsAreNotBroken(t *testing.T) {
	t.Parallel()
	d := document.Document{Headline: []document.Point{{
		Label: "Run", Text: strings.Repeat("word ", 20) + "`assay report --store results.db`; done",
	}}}
	var text strings.Builder
	if err := d.WriteText(&text, document.Terminal{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "`assay report --store results.db`;") {
		t.Errorf("the command is broken:\n%s", text.String())
	}
}

// TestLongNamesAreBroken holds that nothing of a name is lost in a table, and that only its middle is in a plot.
func TestLongNamesAreBroken(t *testing.T) {
	t.Parallel()
	const name = "sim/made:right_arguments=0.93+retries=0.7+follows_flaw=0.6+claims_falsely=0.5+random=1+hurt_by_phrasing=0.25"
	d := document.Document{Sections: []document.Section{{
		ID: "a", Title: "A", Chart: &document.Chart{Dots: []document.Dot{{Group: name, Label: "right plan", Value: .5, High: 1}}},
		Table: &document.Table{
			Columns: []document.Column{{Head: "model", Names: true}, {Head: "success"}, {Head: "failing tools"}},
			Rows:    [][]document.Cell{{{Text: name}, {Text: "85.2 %"}, {Text: "12.0 %"}}, {{Text: "m"}, {Text: "1.0 %"}, {Text: "2.0 %"}}},
		},
	}}}
	var b strings.Builder
	if err := d.WriteText(&b, document.Terminal{Width: 100}); err != nil {
		t.Fatal(err)
	}
	text, together := b.String(), ""
	for l := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(l, "\n")); n > 120 {
			t.Errorf("a line of %d: %s", n, l)
		}
		if at := strings.Fields(l); len(at) > 0 && strings.Contains(name, at[0]) && len(at[0]) > 1 {
			together += at[0]
		}
	}
	if together != name || !strings.Contains(text, "sim/made:right_arguments…") || strings.Count(text, "success") != 1 {
		t.Errorf("%q is left of the name in\n%s", together, text)
	}
}

// TestScreenTablesBreakNames holds that a table with a long name still has its figures side by side, and commands
// in one piece.
func TestScreenTablesBreakNames(t *testing.T) {
	t.Parallel()
	const command = "`assay show --store /a/very/long/path/of/a/store.db 0123456789`"
	tab := document.NewScreenTable(document.Terminal{Width: 80}, 1, "model", "planned", "done")
	tab.Row("sim/made:right_arguments=0.93+retries=0.7+follows_flaw=0.6+claims_falsely=0.5", "440", "377")
	if text := tab.String(); strings.Count(text, "model") != 1 || !strings.Contains(text, "retries=0.7+\n") {
		t.Errorf("the table is\n%s", text)
	}
	tab.Row(command, "1", "1")
	if text := tab.String(); !strings.Contains(text, command) {
		t.Errorf("the command is broken in\n%s", text)
	}
}
