package store

import (
	"context"
	"time"

	"github.com/assay-eval/assay"
)

// A LaneLimit is a limit of a lane as a run learned it.
type LaneLimit struct {
	Lane   string       `json:"lane"`
	Bucket assay.Bucket `json:"limit"`
	// Value is the limit. 0 means that an earlier value is no longer valid.
	Value int       `json:"value"`
	At    time.Time `json:"learned_at"`
	// Run is the run that learned the limit. [DB.Learn] takes it from its argument.
	Run assay.RunID `json:"run"`
	Evidence
}

// Evidence is why a run believes in a limit.
type Evidence struct {
	// Accepted and Refused count the lane's requests since the run last stored the limit, or
	// since it began.
	Accepted int `json:"accepted"`
	Refused  int `json:"refused"`
	// Words are the endpoint's own words of the latest refusal.
	Words string `json:"words"`
}

const limitColumns = "run, lane, bucket, value, learned_at, accepted, refused, words"

// Learn stores limits that a run learned about its lanes. If one is refused, it stores no other
// either. It returns the same errors as [DB.Save].
func (db *DB) Learn(ctx context.Context, run assay.RunID, limits []LaneLimit) error {
	if len(limits) == 0 {
		return nil
	}
	insert := insertSQL("lane_limits", limitColumns)
	return db.write(ctx, "save limits of lanes", 100*len(limits), func(w *writer) error {
		k, err := w.run(run)
		if err != nil {
			return err
		}
		for _, l := range limits {
			err := w.exec(insert, k.seq, l.Lane, string(l.Bucket), l.Value, l.At,
				l.Accepted, l.Refused, l.Words)
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
	query := `SELECT r.id, lane, bucket, value, learned_at, accepted, refused, words
		FROM lane_limits l JOIN runs r ON r.seq = l.run
		WHERE l.id IN (SELECT max(id) FROM lane_limits GROUP BY lane, bucket) AND value > 0
		ORDER BY lane, bucket`
	all, err := collect(ctx, db.reader, query, nil, func(l *LaneLimit) []any {
		return []any{
			&l.Run, &l.Lane, &l.Bucket, &l.Value,
			moment{&l.At},
			&l.Accepted, &l.Refused, &l.Words,
		}
	})
	return all, db.wrap(err)
}
