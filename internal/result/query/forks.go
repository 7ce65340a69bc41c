package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// ForkPoints are the calls of an experiment's attempts from which forks can go on.
type ForkPoints struct {
	Points []assay.ForkPoint
	// Chosen are the points of attempts that satisfy the conditions.
	Chosen map[assay.ForkPoint]bool
	// Tokens is what the attempt's own replies after the point took, which forks from there probably take, too.
	Tokens map[assay.ForkPoint]int
	// USD is their share of what the attempt cost.
	USD map[assay.ForkPoint]float64
	// Models says whose attempts have points.
	Models map[assay.TrialID]string
	// Unforkable says of which models the attempts cannot be continued, and why.
	Unforkable map[string]string
	// Bare counts the attempts whose calls are unknown, because the store lacks their transcripts or tasks.
	Bare int
}

// FindForkPoints finds the calls that met a fault which reached the model, in the attempts whose outcomes
// count. It calls show with the number of attempts that were read.
func FindForkPoints(
	ctx context.Context, s *Selection, e *plan.Experiment, where export.Where, show func(done int),
) (f *ForkPoints, err error) {
	f = &ForkPoints{
		Chosen: make(map[assay.ForkPoint]bool), Tokens: make(map[assay.ForkPoint]int), USD: make(map[assay.ForkPoint]float64),
		Models: make(map[assay.TrialID]string), Unforkable: make(map[string]string),
	}
	points := make(map[assay.TrialID][]assay.ForkPoint) // a later round counts instead of an earlier one
	libraries := NewLibraries(s.db)
	defer func() { err = errors.Join(err, libraries.Close()) }()
	whole := *s // points need the texts
	whole.veil = nil
	read := 0
	for stored, err := range whole.Transcripts(ctx) {
		if err != nil {
			return nil, err
		}
		show(read)
		read++
		a := &stored.Attempt
		if !a.Settles() {
			continue
		}
		delete(points, a.ID)
		if why := e.Unforkable(a.Model); why != "" {
			f.Unforkable[a.Model] = why
			continue
		}
		task, judge, err := libraries.Task(ctx, a)
		if err != nil || stored.Transcript == nil {
			f.Bare++
			continue
		}
		f.Models[a.ID] = a.Model
		why := judge.Explain(&a.Trial, task, stored.Transcript)
		for i, step := range why.Path {
			if step.Reaction == nil || !step.Reaction.Delivered {
				continue
			}
			at := assay.ForkPoint{
				Trial: a.ID, Attempt: a.Number, Call: i + 1, Fault: stored.Transcript.Calls[i].Met(),
				Step: step.Step + 1, Steps: len(why.Plan),
			}
			points[a.ID] = append(points[a.ID], at)
			f.Chosen[at] = where.Has(a)
			for _, turn := range stored.Transcript.Turns[stored.Transcript.Calls[i].Turn:] {
				f.Tokens[at] += turn.Total()
			}
			f.USD[at] = a.CostUSD * float64(f.Tokens[at]) / float64(max(1, a.Total()))
		}
	}
	for _, of := range points {
		f.Points = append(f.Points, of...)
	}
	// IDs are hashes, so the first points are a sample, and further attempts leave most of it as it is.
	slices.SortFunc(f.Points, func(a, b assay.ForkPoint) int { return strings.Compare(a.String(), b.String()) })
	return f, nil
}

// ForksOf computes what faults have caused in a stored experiment, from its forks. It returns
// [report.ErrNoForks].
func ForksOf(ctx context.Context, db *store.DB, experiment string) (found *report.Forks, err error) {
	all, err := db.Experiments(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(e store.Experiment) bool { return e.Name == plan.ForksName(experiment) })
	if at < 0 {
		err := fmt.Errorf("%w: %s has no forks", report.ErrNoForks, experiment)
		return nil, assay.WithHint(err, assay.HintFork, experiment)
	}
	j, err := job.Reopen(ctx, db, all[at])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if j.Experiment.Forks == nil {
		return nil, fmt.Errorf("%w: %s is an experiment of its own", report.ErrNoForks, all[at].Name)
	}
	s, err := Select(ctx, db, Request{Experiment: all[at].Name}, func(string) {})
	if err != nil {
		return nil, err
	}
	return report.AnalyzeForks(all[at].Name, j.Experiment.Forks, j.Planned(), s.all().Attempts(ctx))
}
