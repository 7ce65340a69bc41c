package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/store"
)

// retried returns the planned trials that satisfy the conditions of --retry, with the round of
// their next outcome. The outcome of a trial has to satisfy them. If the trial has no outcome, the
// latest attempt has to.
func (f *runFlags) retried(
	ctx context.Context, p *process, j *job.Job,
) (rounds map[assay.TrialID]int, err error) {
	where, err := export.ParseWhere(f.retry)
	if err != nil {
		return nil, usageError("--retry: %w", err)
	}
	db, err := p.openForOne(ctx, f.store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	planned := func(yield func(assay.Trial, error) bool) {
		for t := range j.Trials() {
			if !yield(t, nil) {
				return
			}
		}
	}
	if err := where.Check(planned, db.Attempts(ctx, store.Filter{All: true})); err != nil {
		return nil, usageError("--retry: %w", err)
	}
	// A record of each trial, because a store may have more attempts than fit in memory.
	type record struct {
		settled, chosen bool
		round           int // of the next outcome
	}
	latest := make(map[assay.TrialID]record)
	for a, err := range db.Attempts(ctx, store.Filter{}) {
		switch {
		case err != nil:
			return nil, err
		case a.Settles():
			latest[a.ID] = record{true, where.Has(&a), a.Round + 1}
		case !latest[a.ID].settled:
			latest[a.ID] = record{false, where.Has(&a), 0}
		}
	}
	rounds = make(map[assay.TrialID]int)
	for t := range j.Trials() {
		if r := latest[t.ID]; r.chosen {
			rounds[t.ID] = r.round
		}
	}
	if len(rounds) == 0 {
		return nil, fmt.Errorf("no trial of %s matches --retry %s\n"+
			"hint: `assay status` counts faults, `assay export --where %s` lists attempts",
			j.Experiment.Name, strings.Join(f.retry, " --retry "), f.retry[0])
	}
	return rounds, nil
}
