package store

import (
	"context"
	"time"

	"github.com/assay-eval/assay"
)

// A LaneLimit is a limit of a lane as a run learned it.
type LaneLimit struct {
	Lane   string
	Bucket assay.Bucket
	// Value is the limit. 0 means that an earlier value is no longer valid.
	Value int
	At    time.Time
}

// Learn stores limits that a run learned about its lanes. If one is refused, it stores no other
// either. It returns the same errors as [DB.Save].
func (db *DB) Learn(ctx context.Context, run assay.RunID, limits []LaneLimit) error {
	if len(limits) == 0 {
		return nil
	}
	insert := insertSQL("lane_limits", "run, lane, bucket, value, learned_at")
	return db.write(ctx, "save limits of lanes", 100*len(limits), func(w *writer) error {
		k, err := w.run(run)
		if err != nil {
			return err
		}
		for _, l := range limits {
			err := w.exec(insert, k.seq, l.Lane, string(l.Bucket), l.Value, l.At)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Learned returns the limits by lane and bucket. For each it takes the value stored last by
// any run, and leaves it out if that is 0.
func (db *DB) Learned(ctx context.Context) ([]LaneLimit, error) {
	all, err := collect(ctx, db.reader, `SELECT lane, bucket, value, learned_at FROM lane_limits
		WHERE id IN (SELECT max(id) FROM lane_limits GROUP BY lane, bucket) AND value > 0
		ORDER BY lane, bucket`, nil, func(l *LaneLimit) []any {
		return []any{&l.Lane, &l.Bucket, &l.Value, moment{&l.At}}
	})
	return all, db.wrap(err)
}
