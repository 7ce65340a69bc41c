package store

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
)

// ProfileOf is [DB.Profile] over another number of attempts.
func (db *DB) ProfileOf(ctx context.Context, latest int) ([]Profile, error) {
	return db.profile(ctx, latest)
}

// Inserter returns a function that adds attempts in one transaction, as [DB.Save] does after it has
// encoded them. Each has the body in place of a compressed transcript.
func (db *DB) Inserter(
	ctx context.Context, attempts []*assay.Attempt, body []byte,
) (insert func() error, err error) {
	records := make([]*record, len(attempts))
	for i, a := range attempts {
		if records[i], err = db.layout.encode(a, body); err != nil {
			return nil, err
		}
		records[i].transcript = body
	}
	return func() error {
		return db.do(ctx, 0, func(w *writer) error {
			for _, r := range records {
				if _, err := w.insert(r); err != nil {
					return err
				}
			}
			return nil
		})
	}, nil
}

// LimitSize makes the disk look full once the main file has a number of bytes.
func (db *DB) LimitSize(t *testing.T, bytes int64) {
	t.Helper()
	err := db.do(t.Context(), 0, func(w *writer) error {
		return w.get(fmt.Sprintf("PRAGMA max_page_count = %d", bytes/4096), nil, new(int))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Pragma changes a setting of the connection that writes.
func (db *DB) Pragma(t *testing.T, setting string) {
	t.Helper()
	err := db.do(t.Context(), 0, func(w *writer) error {
		for _, query := range []string{"COMMIT", "PRAGMA " + setting, "BEGIN IMMEDIATE"} {
			if err := w.exec(query); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// OpenLater is [Open] for a later program, in which the field superseded of attempts is stored.
func OpenLater(ctx context.Context, path string) (*DB, error) {
	later := slices.DeleteFunc(slices.Clone(placed), func(name string) bool { return name == "superseded" })
	return openKnowing(ctx, path, layoutWithout(later))
}
