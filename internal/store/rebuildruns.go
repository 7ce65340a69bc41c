package store

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A foundRun is a run of a source, with the parts of it that are intact.
type foundRun struct {
	id, started string
	ended       bool
	sum         sum
	row         []any // the values of runColumns
}

// copyRuns copies runs, oldest first. If stores have a run in different states, the state in
// which it has ended wins. If the text of its experiment is damaged, the copy has null.
func (b *rebuilder) copyRuns() error {
	all := make(map[string]*foundRun)
	var plans []planOf
	for _, s := range b.sources {
		runs, err := b.runsOf(s)
		if err := b.tolerate(s, "table runs", err); err != nil {
			return err
		}
		plans = append(plans, plansOf(s, runs)...)
		for _, r := range runs {
			if old := all[r.id]; old == nil || r.replaces(old) {
				all[r.id] = r
			}
		}
	}
	b.comparePlans(plans)

	sorted := slices.SortedFunc(maps.Values(all), func(x, y *foundRun) int {
		return cmp.Or(strings.Compare(x.started, y.started), strings.Compare(x.id, y.id))
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

// replaces reports whether r is copied instead of old, which is the same run in another store.
func (r *foundRun) replaces(old *foundRun) bool {
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

// runsOf returns the runs of a source by their rows. The parts of a run have seals of their own:
// see [sealed].
func (b *rebuilder) runsOf(s *DB) (map[int64]*foundRun, error) {
	runs := make(map[int64]*foundRun)
	for _, part := range []struct {
		of, left string
		take     func(f *foundRun, row []any)
	}{
		{"run", "its attempts are not copied", func(f *foundRun, row []any) {
			f.sum = sealOf("run", row)
			f.row = append(slices.Clone(row), "null", "{}", "{}", nil, nil)
		}},
		{"run_spec", "the text of its experiment is not copied", func(f *foundRun, row []any) {
			copy(f.row[10:], row[1:])
		}},
		{"run_end", "its end is not copied", func(f *foundRun, row []any) {
			f.ended = row[1] != nil
			copy(f.row[13:], row[1:])
		}},
	} {
		err := s.eachSealed(b.ctx, part.of, func(r sealedRow) (bool, error) {
			f := runs[r.id]
			if part.of == "run" {
				f = new(foundRun)
				f.id, _ = r.row[0].(string)
				f.started, _ = r.row[9].(string)
				if r.broken == "" && (f.id == "" || f.started == "") {
					r.broken = "has no name or no start"
				}
			}
			switch {
			case f == nil:
			case r.broken != "":
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
