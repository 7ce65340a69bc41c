package store

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/assay-eval/assay"
)

// An Outcome is the verdict on a trial without its details.
type Outcome struct {
	Trial         assay.TrialID
	Level         assay.Level
	ErrorCategory string
}

// Outcomes streams the latest verdict on each settled trial in the order in which the trials
// were settled, as of the moment the loop begins. A million trials take about as long as those of
// [DB.Verdicts], because each is proved. An error comes with a zero outcome and ends the sequence.
func (db *DB) Outcomes(ctx context.Context) iter.Seq2[Outcome, error] {
	return stream(func(yield func(Outcome, error) bool) error {
		return db.streamOutcomes(ctx, yield)
	})
}

// Verdicts streams the same attempts as [DB.Attempts], in the same order, with only the fields
// that tables of results need. It leaves out the trial except for its ID, and every column
// marked as detail, such as times, which it reads only for the proof. It ignores Experiment, Model,
// Run, Trial and Since in the filter.
func (db *DB) Verdicts(ctx context.Context, f Filter) iter.Seq2[assay.Attempt, error] {
	return stream(func(yield func(assay.Attempt, error) bool) error {
		return db.streamVerdicts(ctx, f, yield)
	})
}

func (db *DB) streamVerdicts(
	ctx context.Context, f Filter, yield func(assay.Attempt, error) bool,
) error {
	at, end, err := db.begin(ctx, f.Snapshot, false)
	if err != nil {
		return err
	}

	current, more, err := db.current(ctx, at)
	if err != nil {
		return err
	}
	p, err := db.prove(ctx, at, f.AsSaved, "", "")
	if err != nil {
		return err
	}
	where := "a.id BETWEEN ? AND ?" + current
	read := func(ctx context.Context, first, last int64) ([]assay.Attempt, error) {
		return db.readVerdicts(ctx, p, where, slices.Concat([]any{first, last}, more))
	}
	visit := func(a assay.Attempt) (bool, error) { return yield(a, nil), nil }
	return eachRow(ctx, db, math.MinInt64, at.attempts, page, read, visit, end)
}

func (db *DB) readVerdicts(
	ctx context.Context, p proof, where string, args []any,
) (all []assay.Attempt, err error) {
	in := newInterned()
	all = make([]assay.Attempt, 0, page)
	err = p.each(ctx, db, where, args, func(r *provedRow) error {
		all = append(all, assay.Attempt{})
		err := r.loadVerdict(&all[len(all)-1], in)
		if err != nil {
			all = all[:len(all)-1]
		}
		return err
	})
	return all, err
}

// loadVerdict sets the fields of a verdict.
func (r *provedRow) loadVerdict(a *assay.Attempt, in *interned) error {
	a.ID, a.Run = r.key.id(), assay.RunID(in.text(r.run))
	for i, c := range attemptFields {
		if c.detail {
			continue
		}
		if err := c.load(a, r.attempt[i], in); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return r.outcome(a)
}

func (db *DB) streamOutcomes(ctx context.Context, yield func(Outcome, error) bool) error {
	now, end, err := db.begin(ctx, "", false)
	if err != nil {
		return err
	}

	current, more, err := db.current(ctx, now)
	if err != nil {
		return err
	}
	p, err := db.prove(ctx, now, false, "", "")
	if err != nil {
		return err
	}
	where := "a.level <> '' AND a.id BETWEEN ? AND ?" + current
	read := func(ctx context.Context, first, last int64) ([]Outcome, error) {
		return db.readOutcomes(ctx, p, where, slices.Concat([]any{first, last}, more))
	}
	visit := func(o Outcome) (bool, error) { return yield(o, nil), nil }
	return eachRow(ctx, db, math.MinInt64, now.attempts, page, read, visit, end)
}

func (db *DB) readOutcomes(
	ctx context.Context, p proof, where string, args []any,
) (all []Outcome, err error) {
	in := newInterned()
	all = make([]Outcome, 0, page)
	err = p.each(ctx, db, where, args, func(r *provedRow) error {
		var a assay.Attempt
		for _, i := range outcomeFields {
			if err := attemptFields[i].load(&a, r.attempt[i], in); err != nil {
				return err
			}
		}
		err := r.outcome(&a)
		if err == nil {
			all = append(all, Outcome{r.key.id(), a.Level, a.ErrorCategory})
		}
		return err
	})
	return all, err
}

// outcomeFields are the places of the fields of an [Outcome] in attemptFields.
var outcomeFields = []int{fieldNamed("level"), fieldNamed("error_category")}

func fieldNamed(name string) int {
	return slices.IndexFunc(attemptFields, func(c column) bool { return c.name == name })
}
