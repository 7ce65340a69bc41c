package store

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

// A LaneLimit is what a run learned of one limit of a lane.
type LaneLimit struct {
	Lane   string
	Bucket assay.Bucket
	// Value is the limit. 0 says that what was learned before no longer holds.
	Value int
	At    time.Time
}

// Learn stores what a run learned of its lanes, all or nothing. Its errors are
// those of [DB.Save].
func (db *DB) Learn(ctx context.Context, run assay.RunID, limits []LaneLimit) error {
	rows := make([][]any, len(limits))
	for i, l := range limits {
		at, err := formatTime(l.At)
		if err != nil {
			return fmt.Errorf("save limits of lanes: %w: %w", ErrInvalid, err)
		}
		rows[i] = []any{l.Lane, string(l.Bucket), l.Value, at}
	}
	if len(rows) == 0 {
		return nil
	}
	err := db.do(ctx, 100*len(rows), func(w *writer) error {
		k, err := w.run(run)
		if err != nil {
			return err
		}
		for _, row := range rows {
			_, err := w.conn.ExecContext(w.ctx, "INSERT INTO lane_limits (run, lane, bucket, value, learned_at) VALUES (?, ?, ?, ?, ?)",
				append([]any{k.seq}, row...)...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("save limits of lanes: %w", err)
	}
	return nil
}

// Learned returns the limits that hold, by lane and bucket: of each the one
// stored last, whichever run learned it. What was forgotten is left out.
func (db *DB) Learned(ctx context.Context) ([]LaneLimit, error) {
	rows, err := db.reader.QueryContext(ctx, `SELECT lane, bucket, value, learned_at FROM lane_limits
		WHERE id IN (SELECT max(id) FROM lane_limits GROUP BY lane, bucket) AND value > 0 ORDER BY lane, bucket`)
	return collect(db, rows, err, func(l *LaneLimit) error {
		var at string
		if err := rows.Scan(&l.Lane, &l.Bucket, &l.Value, &at); err != nil {
			return err
		}
		return l.At.UnmarshalText([]byte(at))
	})
}
