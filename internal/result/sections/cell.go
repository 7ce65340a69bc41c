package sections

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// missing stands in a cell for an unknown figure.
const missing = "–"

var unknown = document.Cell{Text: missing}

func text(s string) document.Cell { return document.Cell{Text: s} }

// sorted shows a text that is sorted by a value.
func sorted(text string, value float64) document.Cell {
	return document.Cell{Text: text, Value: &value}
}

func decimal(v float64, format string) document.Cell { return sorted(signed(format, v), v) }

// signed formats figures with the signs that are set in print. What it formats has no hyphen.
func signed(format string, figures ...any) string {
	return strings.ReplaceAll(fmt.Sprintf(format, figures...), "-", "−")
}

func whole(n int) document.Cell { return decimal(float64(n), "%.0f") }

// points shows a share that has no interval.
func points(v float64) document.Cell { return sorted(report.Percent(v), v) }

// rate shows a rate above its 95 % interval in whole percent.
func rate(r float64, n int, i stat.Interval) document.Cell {
	if n == 0 {
		return unknown
	}
	return document.Cell{
		Text: report.Percent(r), Value: &r, Note: wholes(i),
		Hint: fmt.Sprintf("95 %% interval %s, n = %d", intervalText(i), n),
	}
}

// wholes shows an interval in whole percent.
func wholes(i stat.Interval) string {
	if i.Low >= 0 {
		return fmt.Sprintf("%.0f–%.0f", 100*i.Low, 100*i.High)
	}
	return strings.ReplaceAll(fmt.Sprintf("%.0f to %.0f", 100*i.Low, 100*i.High), "-", "−")
}

// rateOf shows a share of n.
func rateOf(s report.Share, n int) document.Cell { return rate(s.Rate, n, s.Interval) }

func optional(v *float64, show func(float64) string) document.Cell {
	if v == nil {
		return unknown
	}
	return document.Cell{Text: show(*v), Value: v}
}

func intervalText(i stat.Interval) string {
	low := strings.TrimSuffix(report.Percent(i.Low), " %")
	if i.Low < 0 {
		return low + " to " + report.Percent(i.High)
	}
	return low + " – " + report.Percent(i.High)
}

// tableOf returns a table with a row for each value.
func tableOf[T any](
	columns []document.Column, all []T, row func(T) []document.Cell,
) *document.Table {
	t := &document.Table{Columns: columns}
	for _, v := range all {
		t.Rows = append(t.Rows, row(v))
	}
	return t
}

// A column shows one figure of each row. It is left out if no row has the figure, unless it is fixed.
type column[T any] struct {
	document.Column
	cell  func(T) document.Cell
	of    *report.Measure // what the caption explains, or nil
	fixed bool
}

func columnOf[T any](head document.Column, cell func(T) document.Cell) column[T] {
	return column[T]{Column: head, cell: cell}
}

// fixed returns a column that is never left out.
func fixed[T any](head document.Column, cell func(T) document.Cell) column[T] {
	return column[T]{Column: head, cell: cell, fixed: true}
}

// shows returns a column with the head of a measure.
func shows[T any](m *report.Measure, cell func(T) document.Cell) column[T] {
	return column[T]{Column: headOf(m), cell: cell, of: m}
}

func headOf(m *report.Measure) document.Column {
	return document.Column{Head: m.Heads[0], Hint: m.Means, Names: m.Format == report.AsWords}
}

// tableBy returns a table, and the caption that explains its measures.
func tableBy[T any](all []T, columns []column[T]) (*document.Table, string) {
	t := &document.Table{Columns: []document.Column{}, Rows: make([][]document.Cell, len(all))}
	var shown []*report.Measure
	for _, c := range columns {
		known := func(v T) bool { return c.cell(v).Text != missing }
		if !c.fixed && !slices.ContainsFunc(all, known) {
			continue
		}
		if c.of != nil {
			shown = append(shown, c.of)
		}
		t.Columns = append(t.Columns, c.Column)
		for i, v := range all {
			t.Rows[i] = append(t.Rows[i], c.cell(v))
		}
	}
	return t, report.Caption(shown...)
}

func label(head string) document.Column { return document.Column{Head: head, Names: true} }

func figure(head string) document.Column { return document.Column{Head: head} }

func names(heads ...string) (columns []document.Column) {
	for _, h := range heads {
		columns = append(columns, label(h))
	}
	return columns
}

func figures(heads ...string) (columns []document.Column) {
	for _, h := range heads {
		columns = append(columns, figure(h))
	}
	return columns
}
