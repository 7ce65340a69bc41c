package report_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"gotest.tools/v3/golden"
)

func TestTableAsText(t *testing.T) {
	t.Parallel()
	trials, attempts := mixed()
	hard := assay.NewTrial(
		assay.Cell{
			Model: "模型", Variant: "cot", TaskType: "data_pipeline", Difficulty: "easy",
			Reliability: 1,
		},
		assay.TaskRef{ID: "t9"},
		assay.Setting{},
		1,
		2,
	)
	done, failed := trials[4:5], outcome(hard, assay.Failure, 10)
	for name, table := range map[string]*report.Table{
		"mixed.txt":    build(t, append(trials, hard), append(attempts, failed)...),
		"complete.txt": build(t, done, outcome(done[0], assay.FullSuccess, 5)),
		"empty.txt":    build(t, nil),
	} {
		golden.Assert(t, text(t, table), name)
	}
}
