package query

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/store"
)

// A Comparison has the figures of a comparison. Its JSON is the JSON of the figures.
type Comparison struct {
	*report.Comparison
	db *store.DB
}

// ErrOneSide means that both sides of a comparison are the same trials.
var ErrOneSide = errors.New("both sides are the same")

// Compare compares the attempts that two names stand for. Each is an experiment, run, model or
// variant, and may start with its kind and a colon, as in model:gpt-4o.
func Compare(
	ctx context.Context, db *store.DB, a, b string, where export.Where, cluster string,
) (*Comparison, error) {
	first, err := sideOf(ctx, db, a, where, job.PlannedTrials)
	if err != nil {
		return nil, err
	}
	second, err := sideOf(ctx, db, b, where, job.PlannedTrials)
	if err != nil {
		return nil, err
	}
	c, err := compare(a, b, cluster, first, second)
	if err != nil {
		return nil, err
	}
	c.Unread = db.Skipped()
	if err := markJudges(ctx, db, &c.A, &c.B); err != nil {
		return nil, err
	}
	first.countKnown(&c.A)
	second.countKnown(&c.B)
	return &Comparison{c, db}, nil
}

// Document returns the comparison as a document, with both transcripts of the first flips. Without
// reveal, the texts of private libraries are hidden in them.
func (c *Comparison) Document(
	ctx context.Context, transcripts int, reveal bool,
) (*document.Document, error) {
	v, err := readVeil(ctx, c.db, reveal)
	if err != nil {
		return nil, err
	}
	ids := make(map[sections.EpisodeKey]string)
	var episodes []document.Episode
	for _, flip := range c.Flips[:min(transcripts, len(c.Flips))] {
		for _, key := range []sections.EpisodeKey{
			{Trial: flip.A, Attempt: flip.AttemptA}, {Trial: flip.B, Attempt: flip.AttemptB},
		} {
			if ids[key] != "" {
				continue
			}
			filter := store.Filter{Trial: key.Trial, OnlySettled: true, All: key.Attempt > 0}
			for a, err := range c.db.Attempts(ctx, filter) {
				if err != nil {
					return nil, err
				}
				if key.Attempt > 0 && a.Number != key.Attempt {
					continue
				}
				e, err := episodeOf(ctx, c.db, v, &a)
				if err != nil {
					return nil, err
				}
				if e != nil {
					ids[key] = e.ID
					episodes = append(episodes, *e)
				}
			}
		}
	}
	d := sections.Comparison(c.Comparison, ids)
	d.Episodes = episodes
	return d, nil
}

// Hosts compares models of the store, which stand for the hosts of one model, with the first of them.
// It returns the errors of [report.Compare].
func Hosts(
	ctx context.Context, db *store.DB, names []string, where export.Where, cluster string,
) (*report.Hosts, error) {
	reference, err := sideOf(ctx, db, "model:"+names[0], where, job.PlannedTrials)
	if err != nil {
		return nil, err
	}
	var all []*report.Comparison
	for _, name := range names[1:] {
		host, err := sideOf(ctx, db, "model:"+name, where, job.PlannedTrials)
		if err != nil {
			return nil, err
		}
		c, err := compare(names[0], name, cluster, reference, host)
		if err != nil {
			return nil, err
		}
		reference.countKnown(&c.A)
		host.countKnown(&c.B)
		all = append(all, c)
	}
	h := report.HostsOf(all)
	h.Unread = db.Skipped()
	for i := range h.All {
		if err := markJudges(ctx, db, &h.All[i]); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// markJudges finds out which models judged on some sides and were never compared with people.
func markJudges(ctx context.Context, db *store.DB, sides ...*report.Side) error {
	compared, err := comparedJudges(ctx, db)
	for _, s := range sides {
		s.Compare(compared)
	}
	return err
}

func comparedJudges(ctx context.Context, db *store.DB) (all []report.Judge, err error) {
	comparisons, err := db.Comparisons(ctx)
	for _, c := range comparisons {
		if c.Labels >= store.EnoughLabels {
			all = append(all, report.Judge{Model: c.Judge, Prompt: c.Prompt})
		}
	}
	return all, err
}

// A GateRequest asks whether a candidate is worse than a baseline by less than a margin, and
// whether it meets demands.
type GateRequest struct {
	// Candidate names an experiment, run, model or variant of the store.
	Candidate string
	Baseline  *Baseline
	Where     export.Where
	Cluster   string
	Terms     report.Terms
	// Allow lists the [report.Unlikenesses] that are allowed.
	Allow []string
}

// Gate answers the request. It returns [ErrOneSide] and the errors of [report.Compare],
// [report.Comparison.CheckAlike], [report.Comparison.Gate] and [report.Alone].
func (r GateRequest) Gate(
	ctx context.Context, db *store.DB, plan Planner,
) (*report.Gate, error) {
	candidate, err := sideOf(ctx, db, r.Candidate, r.Where, plan)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(r.Candidate, "experiment:")
	baseline := r.Baseline.side
	var c *report.Comparison
	if baseline == nil {
		c, err = report.Alone(name, candidate.all())
	} else {
		baseline.where = r.Where
		c, err = compare(r.Baseline.Name, name, r.Cluster, baseline, candidate)
		if err == nil && c.Shared > 0 && (c.Shared == c.A.Matched || c.Shared == c.B.Matched) {
			err = oneSide(c) // no pair can differ
		}
	}
	if err == nil {
		err = c.CheckAlike(r.Allow)
	}
	if err != nil {
		return nil, err
	}
	c.Unread = db.Skipped()
	if err := markJudges(ctx, db, &c.A, &c.B); err != nil {
		return nil, err
	}
	covered, err := candidate.coverage()
	if err != nil {
		return nil, err
	}
	covered.count(&c.B)
	r.Terms.Pending = covered.at
	if len(r.Terms.Faults) > 0 {
		if r.Terms.Forks, err = ForksOf(ctx, db, name); err != nil {
			return nil, err
		}
	}
	if baseline != nil {
		baseline.countKnown(&c.A)
	}
	return c.Gate(r.Terms)
}

// A coverage counts the trials that were meant to be on a side, and the trials without an outcome.
type coverage struct {
	planned, pending int
	at               map[assay.TaskID]int // pending
}

func (c coverage) count(s *report.Side) { s.Planned, s.Pending = c.planned, c.pending }

// A side is the attempts of one side of a comparison, and the trials that were planned for it; both
// count if they satisfy conditions. It remembers the trials that the attempts settle, because each
// reading of a store proves its attempts.
type side struct {
	attempts iter.Seq2[assay.Attempt, error]
	trials   iter.Seq2[assay.Trial, error] // may name a trial several times
	where    export.Where
	done     map[assay.TrialID]bool
	// stopped returns a function that reports whether a stop rule skips the trials of a cell. It is
	// nil if no rule can.
	stopped func() (func(assay.Cell) bool, error)
}

// triedSide returns the side of all trials that were tried. Interrupted attempts are no tries. An
// exported file has no plan, so a trial is missing from it if all of its attempts ended in faults.
func triedSide(attempts iter.Seq2[assay.Attempt, error], where export.Where) *side {
	tries := Filter(attempts, func(a *assay.Attempt) bool { return a.FaultKind != assay.Interrupted })
	return &side{attempts: tries, where: where, trials: func(yield func(assay.Trial, error) bool) {
		for a, err := range tries {
			if !yield(a.Trial, err) {
				return
			}
		}
	}}
}

// all yields the attempts. A trial is done whatever its outcome is, and whoever it was made for.
func (s *side) all() iter.Seq2[assay.Attempt, error] {
	return Filter(s.attempts, func(a *assay.Attempt) bool {
		if a.Settles() {
			if s.done == nil {
				s.done = make(map[assay.TrialID]bool)
			}
			s.done[a.ID] = true
		}
		return s.where.Has(a)
	})
}

// compare compares two sides.
func compare(nameA, nameB, cluster string, a, b *side) (*report.Comparison, error) {
	c, err := report.Compare(nameA, nameB, cluster, a.all(), b.all())
	switch {
	case errors.Is(err, report.ErrNothingInCommon):
		return nil, nothingInCommon(err, c, a, b)
	case err != nil:
		return nil, err
	case c.Shared == c.A.Trials && c.Shared == c.B.Trials:
		return nil, oneSide(c)
	}
	return c, nil
}

func oneSide(c *report.Comparison) error {
	err := fmt.Errorf("%w: the %d trials of %s", ErrOneSide, c.Shared, c.B.Name)
	return assay.WithHint(err, assay.HintSides)
}

// nothingInCommon adds the reason to the error that two sides have no trials to compare.
func nothingInCommon(err error, c *report.Comparison, a, b *side) error {
	for i, s := range []*side{a, b} {
		if []report.Side{c.A, c.B}[i].Trials > 0 {
			continue
		}
		if why, failed := s.where.Explain(s.attempts); failed == nil && why != "" {
			return fmt.Errorf("%w: of %s, %s", err, []report.Side{c.A, c.B}[i].Name, why)
		}
	}
	return fmt.Errorf("%w: %s has %d settled trials, %s has %d\nhint: %s",
		err, c.A.Name, c.A.Trials, c.B.Name, c.B.Trials, c.Apart())
}

// coverage counts the planned trials that satisfy the conditions, after all attempts were read.
// Trials that a stop rule skips are neither planned nor pending.
func (s *side) coverage() (c coverage, err error) {
	planned := make(map[assay.TrialID]bool)
	c.at = make(map[assay.TaskID]int)
	var skips func(assay.Cell) bool
	for t, err := range s.trials {
		if err != nil {
			return coverage{}, err
		}
		if planned[t.ID] || !s.where.HasTrial(&t) {
			continue
		}
		planned[t.ID] = true
		if !s.done[t.ID] && s.stopped != nil {
			if skips == nil {
				if skips, err = s.stopped(); err != nil {
					return coverage{}, err
				}
			}
			if skips(t.Cell) {
				continue
			}
		}
		c.planned++
		if !s.done[t.ID] {
			c.pending++
			c.at[t.Task]++
		}
	}
	return c, nil
}

// countKnown counts the coverage of a side. It is unknown if an experiment cannot be planned again.
func (s *side) countKnown(of *report.Side) {
	if c, err := s.coverage(); err == nil {
		c.count(of)
	}
}
