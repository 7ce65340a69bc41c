package plan

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// An Error is a mistake in a file that the user wrote.
type Error = yamldoc.Error

var help = yamldoc.Help{
	Missing: assay.HintQuickstart,
	Empty:   assay.HintExample,
	Gone: map[string]string{
		"hedge": "remove this line: no request gets a second one any more; limits: {request: 30s} in the " +
			"experiment file ends one that hangs, and it is tried again",
	},
}

// readDocument reads an experiment, providers or prices file.
// Keys do not belong into any of them.
func readDocument(path string) (*yamldoc.Document, error) {
	doc, err := yamldoc.Read(path, help)
	if err != nil {
		return nil, err
	}
	if err := doc.Key(); err != nil {
		return nil, err
	}
	return doc, nil
}

// parseDocument parses a file that is part of the program.
func parseDocument(name string, source []byte) (*yamldoc.Document, error) {
	return yamldoc.Parse(name, source, help)
}
