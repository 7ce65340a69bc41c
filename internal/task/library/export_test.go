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

// CheckTools returns all problems of tools.
func CheckTools(tools []assay.Tool) []problem {
	var r registry
	r.check(tools)
	return r.problems
}
