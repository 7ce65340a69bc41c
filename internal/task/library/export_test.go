package library

import (
	"context"

	"github.com/assay-eval/assay"
)

// For tests: what the built-in library has to be, and its making elsewhere.
const (
	BuiltinDigest = builtinDigest
	FormatVersion = formatVersion
)

var (
	CachedBuiltin = cachedBuiltin
	FindBuiltin   = findBuiltin
	CheckTools    = checkTools
)

// ReadImport is the part of [Import] that writes nothing: it reads and checks.
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

// CountEntries reads a task file and counts its elements.
func CountEntries(path string) (n int, err error) {
	for _, err := range taskEntries(path) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// PlaceOf returns line and column of a byte.
func PlaceOf(path string, offset int64) (line, column int, err error) {
	p, err := locate(path, offset)
	return p.line, p.column, err
}
