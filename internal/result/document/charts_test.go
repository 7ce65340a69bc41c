package document_test

import (
	"fmt"
	"math"

	"github.com/assay-eval/assay/internal/result/document"
)

func barSpec(n int) any {
	var values []m
	for i := range n {
		values = append(
			values,
			m{
				"model": models[i], "rate": rate(i), "low": rate(i) - 3.2,
				"high": rate(i) + 3.1, "n": 900,
			},
		)
	}
	y := m{"field": "model", "type": "nominal", "sort": nil, "title": nil}
	tooltip := []m{
		{"field": "model", "title": "Model"},
		{"field": "rate", "title": "Full success, %"},
		{"field": "n", "title": "Trials"},
	}
	return m{
		"data": m{"values": values}, "height": m{"step": 30},
		"layer": []m{
			{
				"mark": m{"type": "bar", "height": m{"band": 0.62}},
				"encoding": m{
					"y": y,
					"x": m{
						"field": "rate", "type": "quantitative", "title": "full success, %",
						"scale": m{"domain": []int{0, 100}},
					},
					"tooltip": tooltip,
				},
			},
			{
				"mark": m{"type": "errorbar", "ticks": true},
				"encoding": m{
					"y":  y,
					"x":  m{"field": "low", "type": "quantitative", "title": "full success, %"},
					"x2": m{"field": "high"},
				},
			},
		},
	}
}

func lineSpec() any {
	var values []m
	for i := range 5 {
		for _, r := range []float64{.6, .7, .8, .9, 1} {
			values = append(
				values,
				m{"model": models[i], "reliability": r, "rate": rate(i) * (.35 + .65*r) * 1.1},
			)
		}
	}
	x := m{
		"field": "reliability", "type": "quantitative", "title": "reliability of a tool",
		"scale": m{"zero": false},
	}
	tooltip := []m{{"field": "model"}, {"field": "reliability"}, {"field": "rate", "format": ".1f"}}
	return m{
		"height": 320,
		"layer": []m{
			{
				"data": m{"values": values},
				"mark": m{"type": "line", "point": true},
				"encoding": m{
					"x":       x,
					"y":       m{"field": "rate", "type": "quantitative", "title": "full success, %"},
					"color":   m{"field": "model", "type": "nominal", "title": nil, "sort": nil},
					"tooltip": tooltip,
				},
			},
			{
				"data": m{
					"values": []m{{"reliability": .6, "rate": 54}, {"reliability": 1, "rate": 100}},
				},
				"mark": m{"type": "line", "strokeDash": []int{5, 4}},
				"encoding": m{
					"x": x, "y": m{"field": "rate", "type": "quantitative"},
					"color": m{"value": "#888"},
				},
			},
			{
				"data": m{"values": []m{{"limit": 90}}}, "mark": "rule",
				"encoding": m{"y": m{"field": "limit", "type": "quantitative"}},
			},
		},
	}
}

func heatSpec() any {
	var values []m
	for i := range models {
		for f := range flaws {
			values = append(
				values,
				m{"model": models[i], "flaw": flaws[f], "points": flawCost(i, f)},
			)
		}
	}
	return m{
		"data": m{"values": values}, "height": m{"step": 34},
		"encoding": m{
			"y":       m{"field": "model", "type": "nominal", "title": nil, "sort": nil},
			"x":       m{"field": "flaw", "type": "nominal", "title": nil, "sort": nil},
			"tooltip": []m{{"field": "model"}, {"field": "flaw"}, {"field": "points"}},
		},
		"layer": []m{
			{
				"mark": "rect",
				"encoding": m{
					"color": m{
						"field": "points", "type": "quantitative", "title": "points",
						"scale": m{"domainMid": 0},
					},
				},
			},
			{"mark": "text", "encoding": m{"text": m{"field": "points", "format": "+.0f"}}},
		},
	}
}

func histogramSpec() any {
	var values []m
	for turn, n := range []int{12, 160, 620, 1480, 1910, 1240, 560, 230, 110, 878} {
		values = append(values, m{"turns": turn + 1, "n": n})
	}
	return m{
		"data":   m{"values": values},
		"height": 220,
		"mark":   m{"type": "bar", "binSpacing": 1},
		"encoding": m{
			"x": m{
				"field": "turns", "type": "quantitative", "bin": m{"step": 1}, "title": "turns",
			}, "y": m{"field": "n", "aggregate": "sum", "type": "quantitative", "title": "episodes"}, "tooltip": []m{{"field": "turns"}, {"field": "n"}},
		},
	}
}

func scatterSpec() any {
	var values []m
	for i := range models {
		values = append(values, m{"model": models[i], "usd": cost(i), "rate": rate(i)})
	}
	x := m{
		"field": "usd", "type": "quantitative", "title": "US dollars a trial (log scale)",
		"scale": m{"type": "log", "domain": []float64{.0002, .5}},
	}
	y := m{"field": "rate", "type": "quantitative", "title": "full success, %"}
	return m{
		"data":   m{"values": values},
		"height": 320,
		"encoding": m{
			"x": x, "y": y,
			"tooltip": []m{{"field": "model"}, {"field": "usd"}, {"field": "rate"}},
		},
		"layer": []m{
			{"mark": m{"type": "point", "size": 90}},
			{
				"mark":     m{"type": "text", "align": "left", "dx": 9, "baseline": "middle"},
				"encoding": m{"text": m{"field": "model"}},
			},
		},
	}
}

func manySpec(n int) any {
	var values []m
	for i := range n {
		for x := range 6 {
			values = append(
				values,
				m{
					"series": fmt.Sprintf("a model whose name is long, number %d", i+1),
					"x":      x, "y": float64(i*7) + 5*math.Sin(float64(x+i)),
				},
			)
		}
	}
	return m{
		"data":   m{"values": values},
		"height": 320,
		"mark":   m{"type": "line", "point": true},
		"encoding": m{
			"x": m{
				"field": "x",
				"type":  "ordinal",
			}, "y": m{"field": "y", "type": "quantitative"}, "color": m{"field": "series", "type": "nominal", "sort": nil, "title": nil}, "tooltip": []m{{"field": "series"}},
		},
	}
}

func facetSpec(n int) any {
	var values []m
	for i := range n {
		for x := range 4 {
			values = append(
				values,
				m{"model": fmt.Sprintf("model %d", i+1), "x": x, "y": float64(i + x)},
			)
		}
	}
	return m{
		"data": m{
			"values": values,
		}, "facet": m{"field": "model", "type": "nominal", "title": nil}, "columns": 4,
		"spec": m{
			"width":  230,
			"height": 100,
			"mark":   "bar",
			"encoding": m{
				"x": m{"field": "x", "type": "ordinal"},
				"y": m{"field": "y", "type": "quantitative"},
			},
		},
	}
}

// wideTable returns a table with two columns of names and many columns of figures with signs and
// notes.
func wideTable(columns int, figure string) *document.Table {
	t := &document.Table{
		Columns: []document.Column{{Head: "model", Names: true}, {Head: "variant", Names: true}},
	}
	for c := range columns - 2 {
		t.Columns = append(
			t.Columns,
			document.Column{Head: fmt.Sprintf("head of %d", c+3), Hint: "a hint"},
		)
	}
	tones := []document.Tone{document.Plain, document.Good, document.Muted}
	for r := range 3 {
		row := []document.Cell{
			{Text: "gemini-2.5-flash-lite"},
			{Text: fmt.Sprintf("row %d of a table", r+1)},
		}
		for c := range columns - 2 {
			row = append(
				row,
				document.Cell{
					Text: figure, Note: "90–100, n 80", Hint: "a longer hint", Tone: tones[(r+c)%3],
				},
			)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
