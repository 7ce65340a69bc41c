package bm25_test

import (
	"fmt"

	"github.com/assay-eval/assay/internal/task/bm25"
)

func Example() {
	tools := []string{
		"Read a file from disk.",
		"Parse raw text into records.",
		"Send a message to a channel.",
	}
	index := bm25.New(tools)
	for _, hit := range index.Search("a parser that reads records", 2) {
		fmt.Printf("%.2f %s\n", hit.Score, tools[hit.Doc])
	}
	// Output:
	// 1.81 Parse raw text into records.
	// 1.02 Read a file from disk.
}
