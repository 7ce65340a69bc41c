package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A foundRun is a run of a source, with the parts of it that are intact.
type foundRun struct {
	id, started string
	ended       bool
	sum         sum
	row         []any // the values of runColumns
	doubtful    bool  // its identity, except for its ID, is not proved
}

// Columns of runColumns.
const (
	runExperiment = 1
	runStarted    = 9
	runSpec       = 10
	runEnd        = 13
)

// doubtfulRun returns a run of which only the ID is known.
func doubtfulRun(id string) *foundRun {
	const unknown = "unknown"
	return &foundRun{id: id, doubtful: true, row: []any{
		id, unknown, "", unknown, unknown, int64(0), unknown, unknown, int64(0), "",
		"null", "{}", "{}", nil, nil,
	}}
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
			if err := b.insertRun(w, r); err != nil {
				return err
			}
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
	if r.ended != old.ended {
		return r.ended
	}
	return bytes.Compare(r.sum[:], old.sum[:]) < 0
}

func (b *rebuilder) insertRun(w *writer, r *foundRun) error {
	seq, err := w.addRun(r.row)
	if err != nil {
		return err
	}
	b.runs[assay.RunID(r.id)] = seq
	b.sum.Runs++
	if !r.ended {
		return nil
	}
	b.ended = append(b.ended, seq)
	return w.sealRow("run_end", seq)
}

// copyRunCounts stores how many attempts the runs that have ended have in the new store.
func (b *rebuilder) copyRunCounts() error {
	return b.to.do(b.ctx, 0, func(w *writer) error {
		for _, seq := range b.ended {
			if err := w.countRun(seq, b.counts[seq]); err != nil {
				return err
			}
		}
		return nil
	})
}

// runsOf returns the runs of a source by their rows. The parts of a run have separate seals: see
// [sealed].
func (b *rebuilder) runsOf(s *DB) (map[int64]*foundRun, error) {
	runs := make(map[int64]*foundRun)
	for _, part := range []struct {
		of, left string
		take     func(f *foundRun, row []any)
	}{
		{
			"run", "its attempts are copied, what else it says is unknown",
			func(f *foundRun, row []any) {
				f.sum = sealOf("run", row)
				f.row = append(slices.Clone(row), "null", "{}", "{}", nil, nil)
			},
		},
		{"run_spec", "the text of its experiment is not copied", func(f *foundRun, row []any) {
			copy(f.row[runSpec:], row[1:])
		}},
		{"run_end", "its end is not copied", func(f *foundRun, row []any) {
			f.ended = row[1] != nil
			copy(f.row[runEnd:], row[1:])
		}},
	} {
		err := s.eachSealed(b.ctx, part.of, func(r sealedRow) (bool, error) {
			f := runs[r.id]
			if part.of == "run" {
				f = new(foundRun)
				f.id, _ = r.row[0].(string)
				f.started, _ = r.row[runStarted].(string)
				if r.broken == "" && (f.id == "" || f.started == "") {
					r.broken = "has no name or no start"
				}
			}
			switch {
			case f == nil:
			case r.broken != "":
				if part.of == "run" && f.id != "" {
					runs[r.id] = doubtfulRun(f.id)
				}
				where, what := fmt.Sprintf("run %v", r.row[0]), r.broken+"; "+part.left
				return true, b.lose(s, Problem{"seal", where, what, doRestore, true})
			default:
				part.take(f, r.row)
				runs[r.id] = f
			}
			return true, nil
		})
		if err != nil {
			return runs, err
		}
	}
	return runs, nil
}
