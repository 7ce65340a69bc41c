package store

import "context"

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
		_, err := w.add("libraries", digest, part)
		return err
	})
}

// LibraryParts returns the stored parts of the library with a digest, oldest first.
func (db *DB) LibraryParts(ctx context.Context, digest string) (parts [][]byte, err error) {
	_, err = db.eachProved(ctx, "libraries", func(_ int64, row []any) error {
		if row[0] == digest {
			parts = append(parts, row[1].([]byte))
		}
		return nil
	})
	return parts, err
}
