package store

import (
	"context"
	"database/sql"
)

const libraryColumns = "digest, body"

// KeepLibrary stores a part of the library with a digest, as package library packs it, so that the
// results of its tasks can be read without the library's file. It has no effect if the store has
// the same part.
func (db *DB) KeepLibrary(ctx context.Context, digest string, part []byte) error {
	return db.write(ctx, "keep library "+digest, len(part), func(w *writer) error {
		var known bool
		query := "SELECT EXISTS (SELECT 1 FROM libraries WHERE digest = ? AND body = ?)"
		if err := w.get(query, []any{digest, part}, &known); err != nil || known {
			return err
		}
		_, err := w.add("library", digest, part)
		return err
	})
}

// LibraryParts returns the stored parts of the library with a digest, oldest first.
func (db *DB) LibraryParts(ctx context.Context, digest string) (parts [][]byte, err error) {
	unproved, err := db.unproved(ctx, "library")
	if err != nil {
		return nil, err
	}
	const query = "SELECT id, body FROM libraries WHERE digest = ? ORDER BY id"
	err = each(ctx, db.reader, query, []any{digest}, func(rows *sql.Rows) (bool, error) {
		var id int64
		var body []byte
		err := rows.Scan(&id, &body)
		if err == nil && !unproved[id] {
			parts = append(parts, body)
		}
		return true, err
	})
	return parts, db.wrap(err)
}
