package report_test

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

func ExampleDesign_Analyze() {
	var trials []assay.Trial
	var attempts []assay.Attempt
	for i := range 4 {
		t := trial("my-model", assay.Optimal, 0.9, fmt.Sprint("task-", i))
		level := assay.FullSuccess
		if i == 0 {
			level = assay.Failure
		}
		trials, attempts = append(trials, t), append(attempts, outcome(t, level, 3))
	}
	a, err := report.Design{}.Analyze("demo", slices.Values(trials), all(attempts...), report.Beside{})
	if err != nil {
		panic(err)
	}
	row := a.Rows.Rows[0]
	full := row.Get(report.Full)
	fmt.Printf("%s fully succeeds in %.0f %% of %d trials\n", row.Model, 100*full.Number, full.N)
	// Output: my-model fully succeeds in 75 % of 4 trials
}
