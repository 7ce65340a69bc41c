package job

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
)

// OpenLibrary opens the library that a run used, with at least the tasks that the run planned. It
// reads the stored tasks, so it needs no file. The built-in library, if this program has the same,
// and an unchanged library file are only faster ways to the same tasks.
func OpenLibrary(
	ctx context.Context, db *store.DB, used store.Library,
) (*library.Library, error) {
	if !library.IsTaskFile(used.Path) {
		l, err := library.OpenNamed(ctx, used.Path)
		if err == nil && l.Meta().Digest == used.Digest {
			return l, nil
		}
		if err == nil {
			err = l.Close()
		}
		if ctx.Err() != nil {
			return nil, err
		}
	}
	parts, err := db.LibraryParts(ctx, used.Digest)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 {
		err := fmt.Errorf("the store has lost the tasks of library %s", used.Name)
		return nil, assay.WithHint(err, assay.HintLostLibrary)
	}
	return library.Unpack(ctx, parts, used.Digest, used.Path)
}

// keepLibrary stores the tasks of a library that the store does not have yet.
func keepLibrary(
	ctx context.Context, db *store.DB, l *library.Library, tasks []library.TaskKey,
) error {
	digest := l.Meta().Digest
	parts, err := db.LibraryParts(ctx, digest)
	if err != nil {
		return err
	}
	known, err := library.Packed(parts)
	if err != nil {
		return err
	}
	tasks = slices.DeleteFunc(tasks, func(k library.TaskKey) bool { return known[k] })
	if len(tasks) == 0 {
		return nil
	}
	part, err := l.Pack(ctx, slices.Values(tasks))
	if err != nil {
		return err
	}
	return db.KeepLibrary(ctx, digest, part)
}
