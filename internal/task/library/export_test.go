package library

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/yamldoc"
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

// ReadImport reads and checks like [Import], but does not write.
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

// Verify reads the whole file and returns an error if it has changed since it was written.
func (l *Library) Verify(ctx context.Context) error {
	tasks, err := l.all(ctx)
	for key := range tasks {
		if err == nil {
			_, err = l.Task(ctx, key.ID, key.Difficulty)
		}
	}
	digest, digestErr := libraryDigest(ctx, l.db)
	if err = errors.Join(err, digestErr); err == nil && digest != l.meta.Digest {
		err = fmt.Errorf("the digest of its content is %s, not %s", digest, l.meta.Digest)
	}
	if err != nil {
		return l.damaged(err)
	}
	return nil
}

// DecodeEnvironment reads a file about an environment, but does not start the environment.
func DecodeEnvironment(text string) error {
	doc, err := yamldoc.Parse("environment.yaml", []byte(text), tasksHelp)
	if err != nil {
		return err
	}
	var file environmentDocument[environmentEntry]
	return doc.Decode(&file)
}

// Wordings returns the wordings of each step at a difficulty, by its verb.
func Wordings(difficulty string) map[string][]string {
	all := make(map[string][]string)
	goals := func(steps goalSteps) {
		for verb, s := range steps {
			all[verb] = append(append(all[verb], s.Goals...), s.States...)
		}
	}
	switch difficulty {
	case "very_easy":
		return veryEasyWords().Steps
	case "easy":
		return easyWords().Steps
	case "medium":
		return mediumWords().Steps
	case "hard":
		goals(hardWords().Steps)
	default:
		goals(veryHardWords().Steps)
	}
	return all
}
