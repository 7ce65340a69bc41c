package query

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/store"
)

// A Request describes attempts in the user's words. Empty fields select everything.
type Request struct {
	Experiment string
	Run        string // an ID, or at least four characters of its beginning
	Snapshot   string // a state of the store; the present one if empty
	Since      string // an earlier snapshot; only newer attempts are selected
	Where      export.Where
	// Reveal shows the texts of private libraries.
	Reveal bool
}

// A Selection streams the attempts that a request selects from a store.
type Selection struct {
	Request
	// Snapshot names the selected state of the store. It is empty if the store is damaged,
	// because a damaged state has no name.
	Snapshot string
	Run      assay.RunID

	db     *store.DB
	warn   func(string)
	filter store.Filter
	scope  *scope // the scope of Request.Experiment, or nil
	bare   map[bareAttempt]bool
	veil   *veil
}

// A bareAttempt is an attempt without a transcript. In Selection.bare, it maps to true if the
// transcript is damaged and to false if the store lacks it.
type bareAttempt struct {
	trial  assay.TrialID
	number int
}

// Select resolves a request against a store. Warn receives sentences about attempts that the
// selection leaves out unexpectedly.
func Select(
	ctx context.Context, db *store.DB, r Request, warn func(string),
) (*Selection, error) {
	s := &Selection{Request: r, Snapshot: r.Snapshot, db: db, warn: warn}
	s.bare = make(map[bareAttempt]bool)
	var err error
	if s.veil, err = readVeil(ctx, db, r.Reveal); err != nil {
		return nil, err
	}
	if s.Snapshot == "" {
		if s.Snapshot, err = db.Snapshot(ctx); err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, err
		}
	}
	if r.Run != "" {
		_, run, err := resolve(ctx, db, "run:"+r.Run)
		if err != nil {
			return nil, err
		}
		s.Run = assay.RunID(run)
	}
	s.filter = store.Filter{Snapshot: s.Snapshot, Since: r.Since, Run: s.Run}
	if r.Experiment == "" {
		return s, nil
	}

	e, err := FindExperiment(ctx, db, r.Experiment)
	if err != nil {
		return nil, err
	}
	if s.scope, err = s.scopeOf(ctx, e); err != nil || s.scope.planned == nil {
		return s, err
	}
	unplanned := 0
	ids := func() map[assay.TrialID]bool { return s.scope.planned }
	counts, err := Unplanned(ctx, db, ids, e)
	for _, n := range counts {
		unplanned += n
	}
	if unplanned > 0 {
		warn(fmt.Sprintf("%d attempts made for %s are left out, "+
			"because it no longer plans their trials", unplanned, e.Name))
	}
	return s, err
}

// all returns the selection with the attempts that count for nothing but their cost.
func (s *Selection) all() *Selection {
	more := *s
	more.filter.All = true
	return &more
}

// Attempts streams the selected attempts.
func (s *Selection) Attempts(ctx context.Context) iter.Seq2[assay.Attempt, error] {
	return s.veil.attempts(Filter(s.Unconditional(ctx), s.Where.Has))
}

// Hides reports whether the texts of an attempt's library are hidden.
func (s *Selection) Hides(a *assay.Attempt) bool { return s.veil.hides(a.Run) }

// Unconditional streams the attempts that would be selected without the conditions of Where.
func (s *Selection) Unconditional(ctx context.Context) iter.Seq2[assay.Attempt, error] {
	return Filter(s.db.Attempts(ctx, s.filter), s.scope.has)
}

// in streams the selected attempts within a scope.
func (s *Selection) in(ctx context.Context, scope *scope) iter.Seq2[assay.Attempt, error] {
	return s.veil.attempts(Filter(Filter(s.db.Attempts(ctx, s.filter), scope.has), s.Where.Has))
}

// Transcripts streams the selected attempts with their transcripts.
func (s *Selection) Transcripts(ctx context.Context) iter.Seq2[store.Stored, error] {
	return s.transcriptsIn(ctx, "", s.scope)
}

// transcriptsIn streams the selected attempts of a model within a scope, with their transcripts.
// An empty model stands for all models. Attempts without a transcript count in [Selection.Missing].
func (s *Selection) transcriptsIn(
	ctx context.Context, model string, scope *scope,
) iter.Seq2[store.Stored, error] {
	filter := s.filter
	filter.Model = model
	return func(yield func(store.Stored, error) bool) {
		for stored, err := range s.db.Transcripts(ctx, filter) {
			a := &stored.Attempt
			damaged := errors.Is(err, store.ErrDamaged) && a.ID != ""
			if damaged {
				err = nil
			}
			if err == nil && !(scope.has(a) && s.Where.Has(a)) {
				continue
			}
			if err == nil && stored.Transcript == nil {
				s.bare[bareAttempt{a.ID, a.Number}] = damaged
			}
			stored.Attempt = s.veil.attempt(stored.Attempt)
			stored.Transcript = s.veil.transcript(a.Run, stored.Transcript)
			if !yield(stored, err) {
				return
			}
		}
	}
}

// Missing counts the selected attempts and transcripts that could not be read so far.
func (s *Selection) Missing() export.Missing {
	m := export.Missing{Attempts: s.db.Skipped(), Rows: s.db.SkippedRows()}
	for _, damaged := range s.bare {
		if damaged {
			m.Transcripts++
		} else {
			m.NotKept++
		}
	}
	return m
}

// Narrowed reports whether the selection leaves out attempts at planned trials.
func (s *Selection) Narrowed() bool {
	return len(s.Where.Conditions()) > 0 || s.Run != "" || s.Since != ""
}

// Filter returns the attempts that satisfy a predicate, and all errors. The predicate may change an
// attempt.
func Filter(
	attempts iter.Seq2[assay.Attempt, error], keep func(*assay.Attempt) bool,
) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		var a assay.Attempt // one for all, because keep gets its address
		var err error
		for a, err = range attempts {
			if (err != nil || keep(&a)) && !yield(a, err) {
				return
			}
		}
	}
}

// A scope holds the attempts that belong to one experiment.
type scope struct {
	experiment string
	planned    map[assay.TrialID]bool // nil if the experiment cannot be planned again
	models     map[string]int         // the number of planned trials
	// withMade adds the attempts that were made for the experiment whose trials it no longer
	// plans. They belong to it if no experiment was named, so that every attempt
	// belongs to one.
	withMade bool
}

// has reports whether an attempt belongs to the scope. Every attempt belongs to a nil scope.
func (s *scope) has(a *assay.Attempt) bool {
	return s == nil || s.planned[a.ID] || s.withMade && a.Experiment == s.experiment
}

// scopes yields the scope of the requested experiment, or the scopes of all experiments.
func (s *Selection) scopes(ctx context.Context) iter.Seq2[*scope, error] {
	return func(yield func(*scope, error) bool) {
		if s.scope != nil {
			yield(s.scope, nil)
			return
		}
		experiments, err := s.db.Experiments(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, e := range experiments {
			scope, err := s.scopeOf(ctx, e)
			if !yield(scope, err) || err != nil {
				return
			}
		}
	}
}

// scopeOf plans an experiment. If that fails, the scope has the attempts that were made for the
// experiment, with a warning.
func (s *Selection) scopeOf(ctx context.Context, e store.Experiment) (*scope, error) {
	all := &scope{
		experiment: e.Name,
		planned:    make(map[assay.TrialID]bool, e.Planned),
		models:     make(map[string]int),
		withMade:   s.Experiment == "",
	}
	for t, err := range job.PlannedTrials(ctx, s.db, e) {
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			reason, _, _ := strings.Cut(err.Error(), "\n")
			s.warn(fmt.Sprintf("cannot plan experiment %s again, "+
				"so the attempts made for it are used: %s", e.Name, reason))
			return &scope{experiment: e.Name, withMade: true}, nil
		}
		all.planned[t.ID] = true
		all.models[t.Model]++
	}
	return all, nil
}

// WhyEmpty explains why a selection has no attempts.
func (s *Selection) WhyEmpty(ctx context.Context) (string, error) {
	why, err := s.Where.Explain(s.Unconditional(ctx))
	if err != nil || why != "" {
		return why, err
	}
	flags := ""
	for _, flag := range [][2]string{
		{"experiment", s.Experiment},
		{"run", string(s.Run)},
		{"since", s.Since},
		{"snapshot", s.Request.Snapshot},
	} {
		if flag[1] != "" {
			flags += fmt.Sprintf(" --%s %s", flag[0], flag[1])
		}
	}
	if flags == "" {
		return "the store has no attempts yet", nil
	}
	return "there is no attempt with" + flags, nil
}
