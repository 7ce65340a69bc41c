package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/assay-eval/assay/internal/durable"
)

// markPath returns the file that marks a store as damaged.
func markPath(path string) string { return path + ".damaged" }

// MarkDamaged writes the damage that [DB.Verify] found to a file beside the store. If there is
// no damage, it removes the file. While the file exists, the store cannot be opened for
// writing, so new rows cannot depend on damaged ones.
func (db *DB) MarkDamaged(problems []Problem) error {
	isUndamaged := func(p Problem) bool { return !p.Damage }
	problems = slices.DeleteFunc(slices.Clone(problems), isUndamaged)
	if len(problems) == 0 {
		if !db.MarkedDamaged() { // the directory may not be writable, and need not be
			return nil
		}
		if err := os.Remove(markPath(db.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("store %s is intact, but cannot remove its mark: %w", db.path, err)
		}
		return nil
	}

	text, err := json.MarshalIndent(problems, "", "  ")
	if err == nil {
		err = os.WriteFile(markPath(db.path), append(text, '\n'), 0o644)
	}
	if err == nil {
		err = errors.Join(flush(markPath(db.path)), durable.SyncDir(filepath.Dir(db.path)))
	}
	if err != nil {
		return fmt.Errorf("mark store %s as damaged: %w", db.path, err)
	}
	return nil
}

// MarkPath returns the file that [DB.MarkDamaged] writes. If the store was opened through a
// link, the file is beside the link's target.
func (db *DB) MarkPath() string { return markPath(db.path) }

// MarkedDamaged reports whether the file of [DB.MarkDamaged] exists.
func (db *DB) MarkedDamaged() bool {
	_, err := os.Stat(markPath(db.path))
	return err == nil
}
