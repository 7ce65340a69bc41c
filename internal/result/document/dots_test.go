package document_test

import (
	"os"

	"github.com/assay-eval/assay/internal/result/document"
)

// A report of one screen has the overview, most places of warnings are left out, and the last line
// names the command that shows everything.
func ExampleDocument_Brief() {
	rate := document.Column{Head: "rate"}
	d := document.Document{
		Title: "Experiment demo",
		Overview: &document.Section{
			ID: "models", Title: "Models",
			Chart: &document.Chart{Text: "Rates with intervals.", Dots: []document.Dot{
				{Group: "a", Label: "right plan", Value: 1, Low: .9, High: 1},
				{Group: "a", Label: "flawed plans", Value: .25, Low: .1, High: .4},
				{Group: "b", Label: "right plan", Value: 0, Low: 0, High: 0},
			}},
			Table: &document.Table{
				Columns: []document.Column{{Head: "model", Names: true}, rate},
				Rows:    [][]document.Cell{{{Text: "a"}, {Text: "62 %"}}, {{Text: "b"}, {Text: "0 %"}}},
			},
		},
		Warnings: []document.Warning{{
			Title: "0 % full success", Text: "Read transcripts.", Where: []string{"b", "c", "d", "e"},
		}},
		Sections: []document.Section{{ID: "errors", Title: "Errors"}, {ID: "cost", Title: "Cost"}},
		Facts:    []document.Fact{{Name: "seed", Value: "1"}},
	}
	if err := d.Brief("assay report --details").WriteText(os.Stdout, document.Terminal{}); err != nil {
		panic(err)
	}
	// Output:
	// Experiment demo
	// ═══════════════
	//
	// Models
	// ──────
	//
	//                  0          25           50          75          100 %
	// a  right plan    ·            ·           ·            ·      ─────●  100 %
	//    flawed plans  ·    ────────●───────    ·            ·           ·   25 %
	// b  right plan    ●            ·           ·            ·           ·    0 %
	//
	// model  rate
	// ─────────────
	// a      62 %
	// b       0 %
	//
	// ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
	// ┃ 1 warning: some figures may be misleading
	// ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
	// ┃ 1. 0 % full success
	// ┃    Read transcripts.
	// ┃    - b
	// ┃    - c
	// ┃    - and 2 more
	// ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
	//
	// `assay report --details` also shows: Errors; Cost; Reproduce this run.
}
