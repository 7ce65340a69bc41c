package report

import (
	"fmt"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/stat"
)

// Cells and columns of document tables.

func text(s string) document.Cell { return document.Cell{Text: s} }

func figure(v float64, format string) document.Cell {
	return document.Cell{Text: fmt.Sprintf(format, v), Value: &v}
}

func whole(n int) document.Cell { return figure(float64(n), "%.0f") }

// unknown stands for a figure that is not there.
var unknown = document.Cell{Text: nothing}

// rate shows a rate above its 95 % interval, in whole percent.
func rate(r float64, n int, i stat.Interval) document.Cell {
	if n == 0 {
		return unknown
	}
	return document.Cell{
		Text: percent(r), Value: &r, Note: fmt.Sprintf("%.0f–%.0f", 100*i.Low, 100*i.High),
		Hint: fmt.Sprintf("95 %% interval %s, n = %d", intervalText(i), n),
	}
}

func optional(v *float64, show func(float64) string) document.Cell {
	if v == nil {
		return unknown
	}
	return document.Cell{Text: show(*v), Value: v}
}

func intervalText(i stat.Interval) string {
	return fmt.Sprintf("%.1f – %s", 100*i.Low, percent(i.High))
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

// points shows a share of which there is no interval.
func points(v float64) document.Cell { return document.Cell{Text: percent(v), Value: &v} }
