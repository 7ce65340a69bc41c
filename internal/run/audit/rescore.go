package audit

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
)

// Rescored counts the outcomes that [Rescore] judged.
type Rescored struct {
	// Outcomes counts the outcomes that were judged again.
	Outcomes int `json:"outcomes"`
	// Environments counts the outcomes by the verdict that an environment gave. It is read again,
	// because an environment cannot be asked about an attempt that is over.
	Environments int `json:"environments,omitempty"`
	// Changed counts the outcomes that differ from the stored ones in any field, including the
	// version of the rules. Levels counts changes of the level, by "from → to".
	Changed    int            `json:"changed"`
	Levels     map[string]int `json:"levels"`
	Categories int            `json:"categories"`
	// Skipped counts the outcomes that cannot be judged again, by reason.
	Skipped map[string]int `json:"skipped"`
}

// RescoreBatch is the number of outcomes that are stored in one transaction.
const RescoreBatch = 256

// Rescore judges every outcome in a store again. It stores the outcomes that differ, unless dry is
// true. Program is the version of this program, which is stored with each outcome.
func Rescore(
	ctx context.Context, db *store.DB, program string, dry bool,
) (sum Rescored, err error) {
	tasks := query.NewLibraries(db)
	defer func() { err = errors.Join(err, tasks.Close()) }()
	sum = Rescored{Levels: make(map[string]int), Skipped: make(map[string]int)}
	var batch []store.Rescored
	save := func() error {
		if dry {
			batch = nil
		}
		err := db.Rescore(ctx, batch)
		batch = batch[:0]
		return err
	}

	for s, err := range db.Transcripts(ctx, store.Filter{OnlySettled: true}) {
		a := &s.Attempt
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return sum, err
		}
		if err != nil || s.Transcript == nil {
			sum.Skipped["its transcript is missing or damaged"]++
			continue
		}
		if score.Version(a.World) == "" {
			sum.Skipped[fmt.Sprintf("this program does not know the world %q", a.World)]++
			continue
		}
		task, judge, err := tasks.Task(ctx, a)
		if err != nil {
			if ctx.Err() != nil {
				return sum, err
			}
			sum.Skipped[err.Error()]++
			continue
		}

		sum.Outcomes++
		if a.World == world.OpenEnv {
			sum.Environments++
		}
		outcome := judge.Outcome(&a.Trial, task, s.Transcript)
		if sum.differs(a.Outcome, outcome) {
			batch = append(batch, store.Rescored{
				Trial: a.ID, Number: a.Number, Outcome: outcome,
				At: time.Now().UTC(), Program: program,
			})
		}
		if len(batch) >= RescoreBatch {
			if err := save(); err != nil {
				return sum, err
			}
		}
	}
	return sum, save()
}

// differs reports whether an outcome has changed, and counts the change.
func (s *Rescored) differs(before, after assay.Outcome) bool {
	if sameOutcome(before, after) {
		return false
	}
	s.Changed++
	if before.Level != after.Level {
		s.Levels[fmt.Sprintf("%s → %s", before.Level, after.Level)]++
	}
	if before.ErrorCategory != after.ErrorCategory {
		s.Categories++
	}
	return true
}

// sameOutcome reports whether two outcomes are equal. An empty list equals a missing one, because a
// store treats both alike.
func sameOutcome(a, b assay.Outcome) bool {
	for _, o := range []*assay.Outcome{&a, &b} {
		if len(o.RequiredTools) == 0 {
			o.RequiredTools = nil
		}
		if len(o.ExecutedTools) == 0 {
			o.ExecutedTools = nil
		}
	}
	return reflect.DeepEqual(a, b)
}
