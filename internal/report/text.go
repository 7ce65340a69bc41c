package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"

	"github.com/assay-eval/assay"
)

// WriteText writes the table for a reader, with the notes that it needs. The
// column of faults is there when there are any.
func (t *Table) WriteText(w io.Writer) error {
	heads := []string{"model", "variant", "reliability", "done", "full success", "95 % interval", "partial", "failure", "turns"}
	faults := slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Faults > 0 })
	if faults {
		heads = append(heads, "faults")
	}
	tab := NewTable(heads...)
	for _, r := range t.Rows {
		row := append([]string{r.Model, r.Variant, assay.FormatReliability(r.Reliability), fmt.Sprintf("%d/%d", r.Done, r.Planned)}, r.rates()...)
		if faults {
			row = append(row, fmt.Sprint(r.Faults))
		}
		tab.Row(row...)
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s\n", tab, t.notes())
	return err
}

// rates are the cells that mean something once a trial is done.
func (r *Row) rates() []string {
	if r.Done == 0 {
		return []string{"–", "–", "–", "–", "–"}
	}
	return []string{
		fmt.Sprintf("%d (%s)", r.Full, percent(r.FullRate)),
		fmt.Sprintf("%.1f – %s", 100*r.FullInterval.Low, percent(r.FullInterval.High)),
		percent(r.PartialRate), percent(r.FailureRate), fmt.Sprintf("%.1f", r.MeanTurns),
	}
}

func (t *Table) notes() string {
	var notes []string
	if len(t.Averaged) > 0 {
		notes = append(notes, "Rates average over "+strings.Join(t.Averaged, ", ")+".")
	}
	if t.Done < t.Planned {
		notes = append(notes, fmt.Sprintf("Coverage is %d of %d trials; the rest is owed and counts nowhere.", t.Done, t.Planned))
	}
	notes = append(notes, "Intervals are Wilson's and take trials as independent. A fault is never a failure.")
	return strings.Join(notes, "\n")
}

func percent(p float64) string { return fmt.Sprintf("%.1f %%", 100*p) }

// A TextTable lays text out in columns, the first two to the left, all others
// to the right, with one line below the head.
type TextTable struct{ table *table.Table }

// NewTable returns a table with the given column heads.
func NewTable(heads ...string) TextTable {
	t := table.New().Border(lipgloss.NormalBorder()).Headers(heads...).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).
		StyleFunc(func(_, col int) lipgloss.Style {
			style := lipgloss.NewStyle().PaddingRight(2)
			if col >= 2 {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	return TextTable{t}
}

// Row adds a row.
func (t TextTable) Row(cells ...string) { t.table.Row(cells...) }

// String returns the table without spaces at the ends of lines.
func (t TextTable) String() string {
	lines := strings.Split(t.table.String(), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}
