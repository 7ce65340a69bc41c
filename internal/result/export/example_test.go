package export_test

import (
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

func ExampleRead() {
	written := assay.Attempt{Number: 1}
	written.ID, written.Model = "trial-1", "my-model"
	written.Level = assay.FullSuccess

	var file strings.Builder
	if _, err := export.Write(&file, export.JSONL, sequence(written)); err != nil {
		panic(err)
	}
	for attempt, err := range export.Read(strings.NewReader(file.String())) {
		if err != nil {
			panic(err)
		}
		fmt.Println(attempt.ID, attempt.Model, attempt.Level)
	}
	// Output: trial-1 my-model full_success
}
