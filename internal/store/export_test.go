package store

import "context"

// ProfileOf is [DB.Profile] with another number of attempts to look back on.
func (db *DB) ProfileOf(ctx context.Context, latest int) ([]Profile, error) {
	return db.profile(ctx, latest)
}
