package plan

import "github.com/assay-eval/assay/internal/task/yamldoc"

// An Error is a mistake in a file that the user wrote.
type Error = yamldoc.Error

var help = yamldoc.Help{
	Missing: "`assay run` without a file runs the built-in quickstart",
	Empty:   "`assay run --help` has an example",
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
