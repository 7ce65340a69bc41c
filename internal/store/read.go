package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
)

// A Filter chooses attempts. Its zero value chooses all.
type Filter struct {
	// Experiment chooses the attempts made for it. Trials that it shares with another
	// experiment may have been settled there.
	Experiment string
	Model      string
	Run        assay.RunID
	Trial      assay.TrialID
	// OnlySettled leaves out faults, OnlyFaults leaves out outcomes.
	OnlySettled bool
	OnlyFaults  bool
	// All adds the attempts that count for nothing but their cost; see [assay.Attempt.OnlyCosts].
	All bool
	// Snapshot leaves out everything added after that state; see [DB.Snapshot].
	Snapshot string
	// AsSaved returns attempts as they were saved and ignores [DB.Rescore] and [DB.Price].
	AsSaved bool
	// Since leaves out the attempts in that snapshot. It keeps attempts that were saved later
	// and, unless AsSaved is set, attempts that were rescored or priced later.
	Since string
}

// page is how many attempts one transaction reads. SQLite cannot fold the log into the main
// file while a reader is in a transaction, so a transaction must not last as long as a slow
// consumer of the rows.
const page = 1000

// Attempts streams attempts in the order in which they were saved, as of the moment the loop
// begins. If [DB.Rescore] stored outcomes for an attempt, or [DB.Price] costs, it has the latest. Empty lists
// and maps are nil, and times are UTC. An error comes with a zero attempt and ends the
// sequence. Several goroutines read ahead by a few thousand attempts at most.
func (db *DB) Attempts(ctx context.Context, f Filter) iter.Seq2[assay.Attempt, error] {
	return stream(func(yield func(assay.Attempt, error) bool) error {
		return db.walk(ctx, walk{Filter: f}, func(r row) (bool, error) {
			return yield(r.attempt, nil), nil
		})
	})
}

// Verdicts streams the same attempts as [DB.Attempts], in the same order, without their trials
// except for the IDs. It takes half of the time.
func (db *DB) Verdicts(ctx context.Context, f Filter) iter.Seq2[assay.Attempt, error] {
	return stream(func(yield func(assay.Attempt, error) bool) error {
		return db.walk(ctx, walk{Filter: f, bare: true}, func(r row) (bool, error) {
			return yield(r.attempt, nil), nil
		})
	})
}

// A walk visits attempts in the order of their row IDs.
type walk struct {
	Filter
	from   int64 // the first row ID, unless it is 0
	bare   bool  // without trials
	bodies bool  // with transcripts
}

// room is how many attempts a block has at most. Those with transcripts need more memory.
func (q walk) room() int64 {
	if q.bodies {
		return page / 10
	}
	return page
}

// walk visits attempts until visit returns false or an error.
func (db *DB) walk(ctx context.Context, q walk, visit func(row) (bool, error)) error {
	at, end, err := db.begin(ctx, q.Snapshot)
	if err != nil {
		return err
	}
	return db.walkState(ctx, q, at, end, visit)
}

// walkState is walk for a state. After the last attempt, it returns the result of end.
func (db *DB) walkState(
	ctx context.Context, q walk, at storedState, end func() error, visit func(row) (bool, error),
) error {
	p, err := db.prove(ctx, q, at)
	if err != nil {
		return err
	}
	where, from := "a.id BETWEEN ? AND ?", cmp.Or(q.from, math.MinInt64)
	if q.Since != "" && (q.AsSaved || at.revised() == p.since.revised()) {
		from = max(from, p.since.attempts+1)
	}
	if q.Trial != "" { // an index finds its attempts, so blocks would only cost time
		key, err := parseTrialID(q.Trial)
		if err != nil {
			return err
		}
		args := []any{from, at.attempts, key[:]}
		all, err := p.rows(ctx, db, nil, where+" AND a.trial = ?", args)
		for _, r := range all {
			if more, err := visit(r); err != nil || !more {
				return err
			}
		}
		return err
	}
	if q.OnlyFaults && db.proved.Load() >= at.attempts {
		where += " AND a.fault <> ''"
	}
	read := func(ctx context.Context, first, last int64) ([]row, error) {
		var bodies map[int64][]byte
		if q.bodies {
			// After an error, each is read alone.
			bodies, _ = db.bodies(ctx, "attempt BETWEEN ? AND ?", first, last)
		}
		return p.rows(ctx, db, bodies, where, []any{first, last})
	}
	complete := true
	err = inBlocks(ctx, db, from, at.attempts, q.room(), read, func(b rowBlock[row]) (bool, error) {
		for _, r := range b.rows {
			if more, err := visit(r); err != nil || !more {
				complete = false
				return false, err
			}
		}
		if b.err != nil && ctx.Err() == nil {
			b.err = db.skipRest(ctx, b.first, b.last, b.err)
		}
		return b.err == nil, b.err
	})
	if err != nil || !complete {
		return err
	}
	if q.from == 0 && q.Since == "" && db.proved.Load() < at.attempts {
		db.proved.Store(at.attempts)
	}
	return end()
}

// has reports whether the filter chooses an attempt of its state and its trial.
func (f Filter) has(a *assay.Attempt) bool {
	return (f.Experiment == "" || a.Experiment == f.Experiment) &&
		(f.Model == "" || a.Model == f.Model) && (f.Run == "" || a.Run == f.Run) &&
		(!f.OnlySettled || a.Settles()) && (!f.OnlyFaults || !a.Settles()) &&
		(f.All || !a.OnlyCosts())
}

func nameAttempt(trial assay.TrialID, number int) string {
	return fmt.Sprintf("attempt %d at trial %s", number, trial)
}

// wrap explains an error of reading to the user. It returns nil for nil.
func (db *DB) wrap(err error) error {
	switch {
	case err == nil:
		return nil
	case primary(err) == sqlite3.SQLITE_ERROR: // a table or a column is missing
		return coded(fmt.Errorf("store %s: %w: %w", db.path, ErrDamaged, err), assay.HintRescue, db.path)
	case primary(err) != 0:
		return explain(db.path, err)
	}
	return fmt.Errorf("read store %s: %w", db.path, err)
}
