package query

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// A Baseline is the other side of a gate. It is empty if the gate has no other side.
type Baseline struct {
	Name string // in the user's words
	*side
	in   string    // the name in its store
	path string    // of its store
	db   *store.DB // nil if it is an exported file
}

// Attempts yields the attempts that satisfy conditions.
func (b *Baseline) Attempts(where export.Where) iter.Seq2[assay.Attempt, error] {
	return Filter(b.attempts, where.Has)
}

// All yields all attempts of the baseline.
func (b *Baseline) All() iter.Seq2[assay.Attempt, error] {
	if b.side == nil {
		return func(func(assay.Attempt, error) bool) {}
	}
	return b.attempts
}

// In returns the open store of the baseline if it has that path. Its attempts are proved once.
func (b *Baseline) In(path string) *store.DB {
	if b.path != path {
		return nil
	}
	return b.db
}

// Close closes the store of the baseline.
func (b *Baseline) Close() error {
	if b.db == nil {
		return nil
	}
	return b.db.Close()
}

// Suite describes the library of the baseline; see [SuiteOf].
func (b *Baseline) Suite(ctx context.Context) report.Suite { return SuiteOf(ctx, b.db, b.in) }

// A BaselineRequest names a baseline: a store, an exported file, or a name in the candidate's
// store.
type BaselineRequest struct {
	Name, Side       string // Side is the name in a store, or ""
	Candidate, Store string
	Open             func(context.Context, string) (*store.DB, error) // opens a store to read
	Plan             Planner
}

// Find finds the baseline.
func (r BaselineRequest) Find(ctx context.Context) (*Baseline, error) {
	if side, path, ok := strings.Cut(r.Name, " in "); ok && r.Side == "" {
		if _, err := os.Stat(path); err == nil { // as a verdict names it
			r.Side, r.Name = side, path
		}
	}
	if _, err := os.Stat(r.Name); errors.Is(err, os.ErrNotExist) {
		b, err := r.sideOf(ctx, r.Store, r.Name, r.Name)
		if err != nil {
			err = fmt.Errorf("--baseline: there is no file %s, and %w", r.Name, err)
		}
		return b, err
	}
	switch isStore, err := store.IsDatabase(r.Name); {
	case err != nil:
		return nil, err
	case !isStore:
		if err := intact(ctx, r.Name); err != nil {
			return nil, fmt.Errorf("--baseline %s: %w", r.Name, err)
		}
		if r.Side != "" {
			return nil, assay.WithHint(fmt.Errorf("--side %s: %s has JSON lines, and a side is one of a store",
				r.Side, r.Name), assay.HintExportSide, r.Side)
		}
		return &Baseline{Name: r.Name, side: triedSide(attemptsIn(r.Name), export.Where{})}, nil
	case r.Side != "":
		return r.sideOf(ctx, r.Name, r.Side, r.Side+" in "+r.Name)
	}
	return r.likeIn(ctx, r.Name)
}

// attemptsIn reads an exported file each time.
func attemptsIn(path string) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(assay.Attempt{}, err)
			return
		}
		defer file.Close()
		for a, err := range export.Read(file) {
			if err != nil {
				err = fmt.Errorf("%s: %w", path, err)
			}
			if errors.As(err, new(*export.UnreadableError)) {
				err = assay.WithHint(err, assay.HintBaseline)
			}
			if !yield(a, err) {
				return
			}
		}
	}
}

// sideOf returns the side that a name stands for in a store.
func (r BaselineRequest) sideOf(ctx context.Context, path, name, shown string) (*Baseline, error) {
	db, err := r.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	s, err := sideOf(ctx, db, name, export.Where{}, r.Plan)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Baseline{shown, s, name, path, db}, nil
}

// likeIn returns the side that the candidate's name stands for in another store. If the name is
// unknown there and the store has a single experiment, it returns that experiment.
func (r BaselineRequest) likeIn(ctx context.Context, path string) (*Baseline, error) {
	db, err := r.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	name := r.Candidate
	s, err := sideOf(ctx, db, name, export.Where{}, r.Plan)
	if err != nil && !errors.As(err, new(*AmbiguousNameError)) {
		switch all, errAll := db.Experiments(ctx); {
		case errAll != nil:
			err = errAll
		case len(all) == 1:
			name = "experiment:" + all[0].Name
			s, err = sideOf(ctx, db, name, export.Where{}, r.Plan)
		default:
			err = fmt.Errorf("%s: %w\nhint: --side names the baseline in that store", path, err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Baseline{path, s, name, path, db}, nil
}

// SuiteOf describes the library of an experiment of a store. If no experiment has the name, it
// describes the largest library of the store. A library that cannot be read is not the user's.
func SuiteOf(ctx context.Context, db *store.DB, name string) (suite report.Suite) {
	if db == nil {
		return suite
	}
	all, err := db.Experiments(ctx)
	if err != nil {
		return suite
	}
	name = strings.TrimPrefix(name, "experiment:")
	named := func(e store.Experiment) bool { return e.Name == name }
	if i := slices.IndexFunc(all, named); i >= 0 {
		all = all[i : i+1]
	}
	suite.Own = len(all) > 0
	for _, e := range all {
		s, err := Suite(ctx, db, e)
		if err != nil {
			return report.Suite{}
		}
		suite.Own, suite.Tasks = suite.Own && s.Own, max(suite.Tasks, s.Tasks)
	}
	return suite
}
