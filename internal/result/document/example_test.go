package document_test

import (
	"os"

	"github.com/assay-eval/assay/internal/result/document"
)

func ExampleDocument_WriteText() {
	value := 0.75
	d := document.Document{
		Title:   "Experiment demo",
		Summary: []document.Point{{Label: "Best", Text: "my-model fully succeeds in 75 % of trials."}},
		Sections: []document.Section{{ID: "success", Title: "Full success", Table: &document.Table{
			Columns: []document.Column{{Head: "model", Names: true}, {Head: "rate"}},
			Rows:    [][]document.Cell{{{Text: "my-model"}, {Text: "75.0 %", Value: &value}}},
		}}},
	}
	if err := d.WriteText(os.Stdout, document.Terminal{}); err != nil {
		panic(err)
	}
	// Output:
	// Experiment demo
	// ═══════════════
	//
	// Best  my-model fully succeeds in 75 % of trials.
	//
	// Full success
	// ────────────
	//
	// model       rate
	// ──────────────────
	// my-model  75.0 %
}
