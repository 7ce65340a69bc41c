package store

import (
	"context"
	"database/sql"
	"time"
)

// finishSlack is how much later an attempt may seem to have finished than one that was saved
// after it. No attempt waits for a writer that long, and a clock that is corrected rarely jumps
// further.
const finishSlack = 24 * time.Hour

// Spent returns, by lane, the use by attempts that finished at since or later, in steps of one
// minute, oldest first. All use by an attempt counts for the lane of its last turn and for the time
// when it finished, and all of a minute for the last of these times. Attempts without a lane do not
// count. It is for lanes that the [SentLog] does not know.
//
// There is no index for this query, because it would slow down every save. Attempts are saved
// as they finish, so Spent walks backwards from the latest until one finished long before since.
func (db *DB) Spent(ctx context.Context, since time.Time) (map[string][]Sent, error) {
	from, err := formatTime(since)
	if err != nil {
		return nil, err
	}
	end, err := formatTime(since.Add(-finishSlack))
	if err != nil {
		return nil, err
	}
	// Without the Z, texts sort like times.
	const query = `SELECT lane, at || 'Z', requests, input, output FROM (
		SELECT lane, max(rtrim(finished_at, 'Z')) AS at, sum(requests) AS requests,
			sum(input_tokens) AS input, sum(output_tokens) AS output
		FROM attempts
		WHERE id > ifnull((SELECT id FROM attempts WHERE rtrim(finished_at, 'Z') < rtrim(?1, 'Z')
				ORDER BY id DESC LIMIT 1), 0)
			AND rtrim(finished_at, 'Z') >= rtrim(?2, 'Z') AND lane <> '' AND requests > 0
		GROUP BY lane, substr(finished_at, 1, 16)
	) ORDER BY at`
	spent := make(map[string][]Sent)
	err = each(ctx, db.reader, query, []any{end, from}, func(rows *sql.Rows) (bool, error) {
		var lane string
		var s Sent
		err := rows.Scan(&lane, timeScanner{&s.At}, &s.Requests, &s.Input, &s.Output)
		spent[lane] = append(spent[lane], s)
		return true, err
	})
	return spent, db.wrap(err)
}
