package main

import (
	"errors"

	"github.com/assay-eval/assay/internal/result/export"
)

// withHint returns the message of an error, with the command that helps.
func withHint(err error) string {
	message := err.Error()
	if _, ok := errors.AsType[*export.UnreadableError](err); ok {
		message += "\nhint: name a store, or JSON lines: `assay export --output FILE.jsonl`"
	}
	return message
}
