package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

const importColumns = "kind, name, sha256, imported_at, program, body"

var importFields = fieldsOf[Import](importColumns)

// ErrImported means that a file was imported before.
var ErrImported = errors.New("already imported")

// An Import holds aggregates of another system. They are not trials, and readers of attempts
// never return them.
type Import struct {
	// Kind names the other system and its format.
	Kind string `json:"kind"`
	// Name and SHA256 identify the imported file.
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256"`
	At      time.Time `json:"imported_at"`
	Program string    `json:"program"`
	// Body is the content that was read, as JSON.
	Body json.RawMessage `json:"body"`
}

// Import stores aggregates of another system. If the same file was imported before, it returns
// [ErrImported]. It also returns the errors of [DB.Save].
func (db *DB) Import(ctx context.Context, i Import) error {
	return db.write(ctx, "import "+i.Name, len(i.Body), func(w *writer) error {
		var known bool
		query := "SELECT EXISTS (SELECT 1 FROM imports WHERE sha256 = ?)"
		if err := w.get(query, []any{i.SHA256}, &known); err != nil {
			return err
		}
		if known {
			return ErrImported
		}
		_, err := w.add("imports", i.Kind, i.Name, i.SHA256, i.At, i.Program, string(i.Body))
		return err
	})
}

// Imports returns all imports in the order in which they were stored.
func (db *DB) Imports(ctx context.Context) (all []Import, err error) {
	_, err = db.eachProved(ctx, "imports", func(_ int64, row []any) error {
		var i Import
		err := loadRow(importFields, &i, row, newInterned())
		all = append(all, i)
		return err
	})
	return all, err
}
