package store

import (
	"bytes"
	"context"

	"github.com/assay-eval/assay"
)

// ProfileOf is [DB.Profile] over another number of attempts.
func (db *DB) ProfileOf(ctx context.Context, latest int) ([]Profile, error) {
	return db.profile(ctx, latest)
}

// Compress compresses a transcript as [DB.Save] does, and returns the sizes of its JSON and of
// the compressed body.
func (db *DB) Compress(ctx context.Context, t *assay.Transcript) (text, body int, err error) {
	var b bytes.Buffer
	if err := writeJSON(&b, t); err != nil {
		return 0, 0, err
	}
	c, err := db.compress(ctx, b.Bytes())
	return b.Len(), len(c), err
}
