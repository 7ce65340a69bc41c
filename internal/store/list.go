package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/assay-eval/assay"
)

// A Listed is an attempt with the fields that a list of trials shows. Those of its trial are the
// cell, the task, the repeat and the agent's model. Row orders attempts as they were saved.
type Listed struct {
	Row int64
	assay.Attempt
}

var (
	listedTrial = columnsOf(trialFields, "model", "variant", "severity", "difficulty", "task_type",
		"reliability", "task", "task_digest", "repeat", "fault_mix")
	listedAttempt = columnsOf(attemptFields, "round", "lane", "level", "ended", "error_category", "turns",
		"tool_calls", "fault", "parked", "requests", "retried",
		"input_tokens", "cached_tokens", "output_tokens", "unpriced_tokens", "cost_usd", "queued_ms", "working_ms",
		"finished_at")
	listedFields  = slices.Concat(listedTrial, listedAttempt)
	listedColumns = "a.id, a.trial, a.number, t.id IS NOT NULL, r.experiment, r.id, " +
		columnList("t.", listedTrial) + ", " + columnList("a.", listedAttempt)
)

// columnsOf returns the columns with these names. All of them exist.
func columnsOf(all []column, names ...string) []column {
	return slices.DeleteFunc(slices.Clone(all), func(c column) bool {
		return !slices.Contains(names, c.name)
	})
}

// A Listing is what is new since a snapshot.
type Listing struct {
	// All streams attempts in the order in which they were saved: those that were saved later, or
	// all attempts if any was rescored or superseded later. An error comes with a zero value and ends it.
	All iter.Seq2[Listed, error]
	// Snapshot is the state that All leads to, and Last the row of its last attempt.
	Snapshot string
	Last     int64
}

// List lists what is new since a snapshot, or everything without one. A million attempts take 5 s.
// [ErrUnknownSnapshot] means that attempts were deleted, so that everything has to be listed again.
func (db *DB) List(ctx context.Context, since string) (l Listing, err error) {
	at, end, err := db.begin(ctx, "", false)
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
		query := "SELECT EXISTS (SELECT 1 FROM attempts WHERE round > 0 AND id > ?)"
		err = db.reader.QueryRowContext(ctx, query, old.attempts).Scan(&superseding)
		if err != nil {
			return l, db.wrap(err)
		}
		if old.scores == at.scores && !superseding {
			from = old.attempts + 1
		}
	}
	current, more, err := db.current(ctx, at)
	if err != nil {
		return l, err
	}
	latest, args := at.latestScore(false)
	query := "SELECT " + latest + ", " + listedColumns + " FROM " + resultTables +
		" WHERE a.id BETWEEN ? AND ?" + current + " ORDER BY a.id"
	read := func(ctx context.Context, first, last int64) ([]Listed, error) {
		return db.readListed(ctx, query, slices.Concat(args, []any{first, last}, more))
	}
	l.All = stream(func(yield func(Listed, error) bool) error {
		visit := func(l Listed) (bool, error) { return yield(l, nil), nil }
		return eachRow(ctx, db, from, at.attempts, page, read, visit, end)
	})
	l.Last = at.attempts
	l.Snapshot, err = db.nameOf(ctx, at)
	return l, err
}

func (db *DB) readListed(ctx context.Context, query string, args []any) (all []Listed, err error) {
	in := newInterned()
	err = eachRaw(ctx, db.reader, query, args, func(values []any) (bool, error) {
		var l Listed
		row, err := loadResult(listedFields, values[1:], &l.Attempt, in)
		l.Row = row
		if score, ok := values[0].(string); ok && err == nil {
			l.Attempt.Outcome, err = parseOutcome([]byte(score))
		}
		if err != nil {
			return true, db.skip(l.Row, fmt.Errorf("%s: %w", nameAttempt(l.ID, l.Number), err))
		}
		all = append(all, l)
		return true, nil
	})
	return all, db.wrap(err)
}
