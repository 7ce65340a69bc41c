package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

// A Control is a command that a run received while it worked.
type Control struct {
	Run     assay.RunID     `json:"run"`
	At      time.Time       `json:"at"`
	Command json.RawMessage `json:"command"`
}

// Log stores a command. It returns the same errors as [DB.Save].
func (db *DB) Log(ctx context.Context, c Control) error {
	what := fmt.Sprintf("save command to run %s", c.Run)
	return db.write(ctx, what, len(c.Command), func(w *writer) error {
		k, err := w.run(c.Run)
		if err != nil {
			return err
		}
		_, err = w.add("controls", k.seq, c.At, string(c.Command))
		return err
	})
}

// Controls returns the commands to the runs of an experiment in the order in which they were
// stored. If the experiment is empty, it returns the commands to all runs.
func (db *DB) Controls(ctx context.Context, experiment string) ([]Control, error) {
	all, err := collect(ctx, db.reader, `SELECT r.id, c.at, c.command
		FROM controls c CROSS JOIN runs r ON r.seq = c.run
		WHERE ?1 IN ('', r.experiment) ORDER BY c.id`, []any{experiment}, func(c *Control) []any {
		return []any{&c.Run, timeScanner{&c.At}, (*[]byte)(&c.Command)}
	})
	return all, db.wrap(err)
}
