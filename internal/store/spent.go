package store

import (
	"context"
	"database/sql"
	"slices"
	"time"
)

// Spent counts the requests on a lane by the attempts that finished within one minute.
type Spent struct {
	// At is when the last of these attempts finished.
	At       time.Time
	Requests int
}

// finishSlack is how much later an attempt may seem to have finished than one that was saved
// after it. No attempt waits for a writer that long, and a clock that is corrected rarely jumps
// further.
const finishSlack = 24 * time.Hour

// Spent returns, by lane, the requests of the attempts that finished at since or later, in
// steps of one minute, oldest first. All requests of an attempt count for the lane of its last
// turn and for the time when it finished. Attempts without a lane do not count.
//
// There is no index for this query, because it would slow down every save. Attempts are saved
// as they finish, so Spent walks backwards from the latest until one finished long before since.
func (db *DB) Spent(ctx context.Context, since time.Time) (map[string][]Spent, error) {
	type step struct {
		lane   string
		minute int64
	}
	steps := make(map[step]Spent)
	visit := func(lane string, finished time.Time, requests int) {
		if lane == "" || requests == 0 || finished.Before(since) {
			return
		}
		k := step{lane, finished.Unix() / 60}
		s := steps[k]
		if finished.After(s.At) {
			s.At = finished
		}
		s.Requests += requests
		steps[k] = s
	}
	if err := db.backwards(ctx, since.Add(-finishSlack), visit); err != nil {
		return nil, err
	}
	spent := make(map[string][]Spent)
	for k, s := range steps {
		spent[k.lane] = append(spent[k.lane], s)
	}
	for _, s := range spent {
		slices.SortFunc(s, func(a, b Spent) int { return a.At.Compare(b.At) })
	}
	return spent, nil
}

// backwards visits attempts, starting with the latest, until one finished before end.
func (db *DB) backwards(
	ctx context.Context, end time.Time,
	visit func(lane string, finished time.Time, requests int),
) error {
	query := "SELECT lane, finished_at, requests FROM attempts ORDER BY id DESC"
	return db.wrap(each(ctx, db.reader, query, nil, func(rows *sql.Rows) (bool, error) {
		var lane string
		var finished time.Time
		var requests int
		err := rows.Scan(&lane, moment{&finished}, &requests)
		if err != nil || finished.Before(end) {
			return false, err
		}
		visit(lane, finished, requests)
		return true, nil
	}))
}
