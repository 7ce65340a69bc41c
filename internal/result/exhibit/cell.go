package exhibit

import (
	"fmt"

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
