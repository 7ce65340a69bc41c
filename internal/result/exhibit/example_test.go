package exhibit_test

import (
	"os"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

func ExampleWriteTable() {
	table := &report.Table{
		Rows: []report.Row{{
			Model: "my-model", Variant: "baseline", Difficulty: "easy", Reliability: 0.9,
			Planned: 40, Done: 40, FullRate: 0.75, FullInterval: stat.Wilson(30, 40, stat.Z95),
			PartialRate: 0.1, MeanTurns: 5.2,
		}},
		Planned: 40, Done: 40,
	}
	if err := exhibit.WriteTable(os.Stdout, table, document.Terminal{}); err != nil {
		panic(err)
	}
	// Output:
	// Full success
	// ────────────
	//
	//                                      full
	// model     variant   tools   done  success  95 % interval  partial  turns
	// ──────────────────────────────────────────────────────────────────────────
	// my-model  baseline  0.9    40/40   75.0 %  59.8 – 85.8 %   10.0 %    5.2
	//
	// Intervals are Wilson's, wider where trials repeat within tasks. A fault is never a failure.
}
