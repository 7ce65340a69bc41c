package store

import (
	"bytes"
	"context"
)

const libraryColumns = "digest, body"

// KeepLibrary stores a part of the library with a digest, as package library packs it, so that the
// results of its tasks can be read without the library's file. It does nothing if the store has
// the same part.
func (db *DB) KeepLibrary(ctx context.Context, digest string, part []byte) error {
	return db.write(ctx, "keep library "+digest, len(part), func(w *writer) error {
		known, err := values[[]byte](w.ctx, w.conn, libraryQuery, digest)
		if err != nil {
			return err
		}
		for _, k := range known {
			if bytes.Equal(k, part) {
				return nil
			}
		}
		_, err = w.add("library", digest, part)
		return err
	})
}

const libraryQuery = "SELECT body FROM libraries WHERE digest = ? ORDER BY id"

// LibraryParts returns the stored parts of the library with a digest, oldest first.
func (db *DB) LibraryParts(ctx context.Context, digest string) ([][]byte, error) {
	parts, err := values[[]byte](ctx, db.reader, libraryQuery, digest)
	return parts, db.wrap(err)
}
