package library

import (
	"context"

	"github.com/assay-eval/assay"
)

// Exports for tests.
const (
	BuiltinDigest = builtinDigest
	FormatVersion = formatVersion
)

var (
	CachedBuiltin = cachedBuiltin
	FindBuiltin   = findBuiltin
	CheckTools    = checkTools
)

// ReadImport reads and checks like [Import], but writes nothing.
func ReadImport(opts ImportOptions) (kept []assay.Task, tools []assay.Tool, r Report, err error) {
	im, err := newImporter(opts)
	if err != nil {
		return nil, nil, Report{}, err
	}
	for t, err := range im.tasks(context.Background()) {
		if err != nil {
			return nil, nil, Report{}, err
		}
		kept = append(kept, t)
	}
	return kept, im.catalog.All(), im.finished(), nil
}

// CountEntries returns the number of elements of a task file.
func CountEntries(path string) (n int, err error) {
	for _, err := range taskEntries(path, new([]string)) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Locate returns the line and column of a byte.
func Locate(path string, offset int64) (line, column int, err error) {
	p, err := locate(path, offset)
	return p.line, p.column, err
}
