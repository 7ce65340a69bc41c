package document_test

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/assay-eval/assay/internal/result/document"
)

//go:embed testdata/sample.json
var sampleJSON []byte

// sample returns a document with every feature: a chart of each kind, tables with and without
// signs, warnings, facts and episodes.
func sample() *document.Document {
	d := new(document.Document)
	if err := json.Unmarshal(sampleJSON, d); err != nil {
		panic(err)
	}
	return d
}

func spec(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

type m = map[string]any

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
