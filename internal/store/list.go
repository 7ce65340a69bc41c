package store

import (
	"context"
	"iter"
	"math"

	"github.com/assay-eval/assay"
)

// A Listed is an attempt. Row orders attempts as they were saved.
type Listed struct {
	Row int64
	assay.Attempt
}

// A Listing holds the attempts that are new since a snapshot.
type Listing struct {
	// All streams attempts in the order in which they were saved: the attempts that were saved
	// later, or all if any was rescored, priced or superseded later. An error comes with a zero value and
	// ends it.
	All iter.Seq2[Listed, error]
	// Snapshot is the state that All leads to, and Last the row of its last attempt. A damaged
	// state has no name, so everything has to be listed again.
	Snapshot string
	Last     int64
}

// List lists the attempts that are new since a snapshot, or all without one, also those that count
// for nothing but their cost. A million attempts
// take as long as in [DB.Attempts]. [ErrUnknownSnapshot] means that attempts were deleted, so that
// everything has to be listed again.
func (db *DB) List(ctx context.Context, since string) (l Listing, err error) {
	at, end, err := db.begin(ctx, "")
	if err != nil {
		return l, err
	}
	from := int64(math.MinInt64)
	if since != "" {
		old, err := db.state(ctx, since)
		if err != nil {
			return l, err
		}
		var superseding bool
		query := "SELECT EXISTS (SELECT 1 FROM attempts NOT INDEXED WHERE round > 0 AND id > ?)"
		err = db.reader.QueryRowContext(ctx, query, old.attempts).Scan(&superseding)
		if err != nil {
			return l, db.wrap(err)
		}
		if old.revised() == at.revised() && !superseding {
			from = old.attempts + 1
		}
	}
	l.All = stream(func(yield func(Listed, error) bool) error {
		q := walk{Filter: Filter{All: true}, from: from}
		return db.walkState(ctx, q, at, end, func(r row) (bool, error) {
			return yield(Listed{r.id, r.attempt}, nil), nil
		})
	})
	l.Last = at.attempts
	l.Snapshot, err = db.nameOf(ctx, at)
	return l, db.forgive("the name of the snapshot", err)
}
