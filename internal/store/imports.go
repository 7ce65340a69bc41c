package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

const importColumns = "kind, name, sha256, imported_at, program, body"

// ErrImported says that a file was imported before.
var ErrImported = errors.New("imported before")

// An Import holds aggregates of another system. They are no trials: nothing that
// reads attempts sees them.
type Import struct {
	// Kind names the other system and its format.
	Kind string `json:"kind"`
	// Name and SHA256 are of the file that they came from.
	Name    string    `json:"name"`
	SHA256  string    `json:"sha256"`
	At      time.Time `json:"imported_at"`
	Program string    `json:"program"`
	// Body is what was read, as JSON.
	Body json.RawMessage `json:"body"`
}

// Import stores aggregates of another system. The same file again is
// [ErrImported]; its other errors are those of [DB.Save].
func (db *DB) Import(ctx context.Context, i Import) error {
	at, err := formatTime(i.At)
	if err != nil {
		return fmt.Errorf("import %s: %w: %w", i.Name, ErrInvalid, err)
	}
	err = db.do(ctx, len(i.Body), func(w *writer) error {
		var known bool
		if err := w.conn.QueryRowContext(w.ctx, "SELECT EXISTS (SELECT 1 FROM imports WHERE sha256 = ?)", i.SHA256).Scan(&known); err != nil {
			return err
		}
		if known {
			return ErrImported
		}
		res, err := w.conn.ExecContext(w.ctx, insertSQL("imports", importColumns), i.Kind, i.Name, i.SHA256, at, i.Program, string(i.Body))
		return w.sealNew("import", res, err)
	})
	if err != nil {
		return fmt.Errorf("import %s: %w", i.Name, err)
	}
	return nil
}

// Imports returns what was imported, in the order in which it was.
func (db *DB) Imports(ctx context.Context) ([]Import, error) {
	rows, err := db.reader.QueryContext(ctx, "SELECT "+importColumns+" FROM imports ORDER BY id")
	return collect(db, rows, err, func(i *Import) error {
		var at, body string
		if err := rows.Scan(&i.Kind, &i.Name, &i.SHA256, &at, &i.Program, &body); err != nil {
			return err
		}
		i.Body = json.RawMessage(body)
		return i.At.UnmarshalText([]byte(at))
	})
}
