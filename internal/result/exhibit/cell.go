package exhibit

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// missing stands in a cell for an unknown figure.
const missing = "–"

var unknown = document.Cell{Text: missing}

func text(s string) document.Cell { return document.Cell{Text: s} }

func decimal(v float64, format string) document.Cell {
	return document.Cell{Text: fmt.Sprintf(format, v), Value: &v}
}

func whole(n int) document.Cell { return decimal(float64(n), "%.0f") }

// points shows a share that has no interval.
func points(v float64) document.Cell { return document.Cell{Text: report.Percent(v), Value: &v} }

// rate shows a rate above its 95 % interval in whole percent.
func rate(r float64, n int, i stat.Interval) document.Cell {
	if n == 0 {
		return unknown
	}
	return document.Cell{
		Text: report.Percent(r), Value: &r, Note: fmt.Sprintf("%.0f–%.0f", 100*i.Low, 100*i.High),
		Hint: fmt.Sprintf("95 %% interval %s, n = %d", intervalText(i), n),
	}
}

// rateOf shows a share of n.
func rateOf(s report.Share, n int) document.Cell { return rate(s.Rate, n, s.Interval) }

func withoutNote(c document.Cell) document.Cell {
	c.Note = ""
	return c
}

func optional(v *float64, show func(float64) string) document.Cell {
	if v == nil {
		return unknown
	}
	return document.Cell{Text: show(*v), Value: v}
}

func formatted(format string) func(float64) string {
	return func(v float64) string { return fmt.Sprintf(format, v) }
}

// ifDone shows a figure that needs an outcome.
func ifDone(n int, show func() document.Cell) document.Cell {
	if n == 0 {
		return unknown
	}
	return show()
}

func intervalText(i stat.Interval) string {
	return fmt.Sprintf("%.1f – %s", 100*i.Low, report.Percent(i.High))
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

// A column shows one figure of each row. It is left out if no row needs it.
type column[T any] struct {
	head   string
	wanted bool
	cell   func(T) document.Cell
}

// tableBy returns a table with the wanted columns. The heads in labels are those of names.
func tableBy[T any](all []T, columns []column[T], labels ...string) *document.Table {
	t := &document.Table{Rows: make([][]document.Cell, len(all))}
	for _, c := range columns {
		if !c.wanted {
			continue
		}
		names := slices.Contains(labels, c.head)
		t.Columns = append(t.Columns, document.Column{Head: c.head, Names: names})
		for i, v := range all {
			t.Rows[i] = append(t.Rows[i], c.cell(v))
		}
	}
	return t
}

func names(heads ...string) (columns []document.Column) {
	for _, h := range heads {
		columns = append(columns, document.Column{Head: h, Names: true})
	}
	return columns
}

func figures(heads ...string) (columns []document.Column) {
	for _, h := range heads {
		columns = append(columns, document.Column{Head: h})
	}
	return columns
}
