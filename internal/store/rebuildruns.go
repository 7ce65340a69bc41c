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
	lose := func(r sealedRow, left string) error {
		where := fmt.Sprintf("run %v", r.row[0])
		return b.lose(s, Problem{"seal", where, r.broken + "; " + left, doRestore, true})
	}
	err := s.eachSealed(b.ctx, "run", func(r sealedRow) (bool, error) {
		f := &foundRun{sum: sealOf("run", r.row)}
		f.row = append(slices.Clone(r.row), "null", "{}", nil, nil)
		f.id, _ = r.row[0].(string)
		f.started, _ = r.row[9].(string)
		if r.broken == "" && (f.id == "" || f.started == "") {
			r.broken = "has no name or no start"
		}
		if r.broken != "" {
			return true, lose(r, "its attempts are not copied")
		}
		runs[r.id] = f
		return true, nil
	})
	if err != nil {
		return runs, err
	}

	err = s.eachSealed(b.ctx, "run_spec", func(r sealedRow) (bool, error) {
		f := runs[r.id]
		switch {
		case f == nil:
		case r.broken != "":
			return true, lose(r, "the text of its experiment is not copied")
		default:
			f.row[10], f.row[11] = r.row[1], r.row[2]
		}
		return true, nil
	})
	if err != nil {
		return runs, err
	}

	return runs, s.eachSealed(b.ctx, "run_end", func(r sealedRow) (bool, error) {
		f := runs[r.id]
		switch {
		case f == nil:
		case r.broken != "":
			return true, lose(r, "its end is not copied")
		case r.row[1] != nil:
			f.ended, f.row[12], f.row[13] = true, r.row[1], r.row[2]
		}
		return true, nil
	})
}
