package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A foundRun is a run of a source, with the parts of it that are intact.
type foundRun struct {
	id, started string
	sum         sum
	row         []any // the values of runColumns and specColumns
	end         []any // the sealed values of the run's end; nil if there is none
	doubtful    bool  // its identity, except for its ID, is not proved
}

// Columns of a foundRun's row.
const (
	runExperiment = 1
	runStarted    = 9
	runSpec       = 10
)

// noSpec are the values of specColumns of a run whose experiment is lost.
var noSpec = []any{"null", "{}", "{}"}

// doubtfulRun returns a run of which only the ID is known.
func doubtfulRun(id string) *foundRun {
	const unknown = "unknown"
	row := []any{id, unknown, "", unknown, unknown, int64(0), unknown, unknown, int64(0), ""}
	return &foundRun{id: id, doubtful: true, row: append(row, noSpec...)}
}

// began notes when an attempt of a doubtful run finished. The first stands for the run's start.
func (r *foundRun) began(finished int64) {
	at := time.Unix(0, finished).UTC().Format(time.RFC3339Nano)
	if r.started == "" || at < r.started {
		r.started = at
	}
}

// findRuns finds the runs of all sources. If stores have a run in different states, the state in
// which it has ended wins.
func (b *rebuilder) findRuns() error {
	for _, s := range b.sources {
		runs, err := b.runsOf(s)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if old := b.known[assay.RunID(r.id)]; old == nil || r.replaces(old) {
				b.known[assay.RunID(r.id)] = r
			}
		}
	}
	return b.comparePlans()
}

// runsOf returns the runs of a source by their rows.
func (b *rebuilder) runsOf(s *DB) (map[int64]*foundRun, error) {
	runs := make(map[int64]*foundRun)
	err := s.eachSealed(b.ctx, "runs", func(r sealedRow) (bool, error) {
		id, _ := r.row[0].(string)
		if r.broken != "" {
			if id != "" {
				runs[r.id] = doubtfulRun(id)
			}
			what := r.broken + "; its attempts are copied, what else it says is unknown"
			return true, b.loseRow(s, "runs", r, what)
		}
		started, _ := r.row[runStarted].(string)
		row := slices.Concat(r.row, noSpec)
		runs[r.id] = &foundRun{id: id, started: started, sum: sealOf("runs", r.row), row: row}
		return true, nil
	})
	return runs, errors.Join(err,
		b.partsOf(s, "specs", "the text of its experiment is not copied", runs,
			func(f *foundRun, row []any) { copy(f.row[runSpec:], row[1:]) }),
		b.partsOf(s, "ends", "its end is not copied", runs,
			func(f *foundRun, row []any) { f.end = slices.Clone(row) }))
}

// partsOf passes the intact rows of a table with parts of runs to take. The others are left out.
func (b *rebuilder) partsOf(
	s *DB, table, left string, runs map[int64]*foundRun, take func(f *foundRun, row []any),
) error {
	err := s.eachSealed(b.ctx, table, func(r sealedRow) (bool, error) {
		f := runs[r.id]
		switch {
		case f == nil:
		case r.broken != "":
			return true, b.loseRow(s, table, r, r.broken+"; "+left)
		default:
			take(f, r.row)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	missing, err := s.missingRows(b.ctx, table)
	for _, id := range missing {
		if f := runs[id]; f != nil {
			lost := sealedRow{id: id, row: f.row}
			err = errors.Join(err, b.loseRow(s, table, lost, "was saved and is missing; "+left))
		}
	}
	return err
}

// copyRuns copies runs, oldest first. If the text of its experiment is damaged, the copy has null.
// Doubtful runs come before all others, so that unknown properties of an experiment do not hide
// known ones, and only if they have attempts.
func (b *rebuilder) copyRuns() error {
	for id, r := range b.known {
		if r.doubtful && r.started == "" {
			delete(b.known, id)
		} else if r.doubtful {
			r.fill()
		}
	}
	sorted := slices.SortedFunc(maps.Values(b.known), func(x, y *foundRun) int {
		return cmp.Or(boolInt(y.doubtful)-boolInt(x.doubtful),
			strings.Compare(x.started, y.started), strings.Compare(x.id, y.id))
	})
	return b.to.do(b.ctx, 0, func(w *writer) error {
		for _, r := range sorted {
			seq, err := w.addRun(r.row)
			if err != nil {
				return err
			}
			b.runs[assay.RunID(r.id)] = seq
			b.sum.Runs++
		}
		return nil
	})
}

// fill sets the columns of a doubtful run that other rows prove.
func (r *foundRun) fill() {
	r.row[runStarted] = r.started
	var spec struct{ Name string }
	text, _ := r.row[runSpec].(string)
	if json.Unmarshal([]byte(text), &spec) == nil && spec.Name != "" {
		r.row[runExperiment] = spec.Name
	}
}

// replaces reports whether r is copied instead of old, which is the same run in another store.
func (r *foundRun) replaces(old *foundRun) bool {
	if r.doubtful != old.doubtful {
		return old.doubtful
	}
	if ended := r.end != nil; ended != (old.end != nil) {
		return ended
	}
	return bytes.Compare(r.sum[:], old.sum[:]) < 0
}

// copyEnds copies the ends of runs, with the number of their attempts in the new store.
func (b *rebuilder) copyEnds() error {
	return b.to.do(b.ctx, 0, func(w *writer) error {
		for id, seq := range b.runs {
			end := b.known[id].end
			if end == nil {
				continue
			}
			row := append(slices.Clone(end[:len(end)-1]), b.counts[seq])
			if _, err := w.addAt(seq, "ends", row...); err != nil {
				return err
			}
		}
		return nil
	})
}
