package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/store"
)

func newCompare(p *process) *cobra.Command {
	var f documentFlags
	var conditions []string
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two experiments, runs, models or variants on the same tasks",
		Long: `Compare says what changed from A to B, whether that is more than chance, on the whole
and condition by condition, and which trials flipped. Each of A and B is an experiment, a
run (or the beginning of its ID), a model or a variant; where a name could be several, write
model:NAME, run:NAME, experiment:NAME or variant:NAME.

Trials are matched by task, repeat and everything else that both sides have in common;
what each side has one of, and not the same, is what they differ in.`,
		Example: `  assay compare sim/expert sim/obedient
  assay compare optimal flawed_missing_step --where model=sim/obedient
  assay compare before after --format html --transcripts 20 --output compare.html
  assay compare run:01a1fe7e run:01a2003b --json | jq '.flips'`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := f.check(); err != nil {
				return err
			}
			where, err := export.ParseWhere(conditions)
			if err != nil {
				return usageError("--where: %w", err)
			}
			db, err := p.openToRead(cmd.Context(), f.store)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			return compareSides(cmd.Context(), p, db, args, where, f)
		},
	}
	f.flags(cmd, "both transcripts of the first `N` flips")
	cmd.ValidArgsFunction = namesIn(&f.store, func(ctx context.Context, db *store.DB) (all []string, err error) {
		known, err := (&sides{ctx: ctx, db: db}).names()
		for _, kind := range sideKinds {
			all = append(all, known[kind]...)
		}
		return all, err
	})
	cmd.Flags().StringArrayVar(&conditions, "where", nil, "of both sides only attempts with `FIELD=VALUE`; may be given several times")
	return cmd
}

func compareSides(ctx context.Context, p *process, db *store.DB, args []string, where export.Where, f documentFlags) error {
	sides := &sides{ctx: ctx, db: db}
	a, err := sides.find(args[0])
	if err != nil {
		return err
	}
	b, err := sides.find(args[1])
	if err != nil {
		return err
	}
	v, err := report.Compare(args[0], args[1], filtered(a, where), filtered(b, where))
	if errors.Is(err, report.ErrNothingInCommon) {
		for _, s := range []struct {
			trials   int
			attempts iter.Seq2[assay.Attempt, error]
		}{{v.A.Trials, a}, {v.B.Trials, b}} {
			if s.trials > 0 {
				continue
			}
			if why, failed := where.Explain(s.attempts); failed == nil && why != "" {
				what, hint, _ := strings.Cut(why, "\n")
				return fmt.Errorf("%w: %s\n%s", err, harmless(what), harmless(hint))
			}
		}
		return fmt.Errorf("%w: %s has %d settled trials, %s has %d\nhint: %s", err, v.A.Name, v.A.Trials, v.B.Name, v.B.Trials, apart(v))
	}
	if err != nil {
		return err
	}
	v.Unread = db.Skipped()
	return f.write(p, v, func() (*document.Document, error) {
		episodes, shown, err := flipped(ctx, db, v, f.transcripts)
		if err != nil {
			return nil, err
		}
		d := exhibit.Comparison(v, episodes)
		d.Episodes = shown
		return d, nil
	})
}

// apart says in which factors two sides have no level in common.
func apart(v *report.Comparison) string {
	var factors []string
	for name, levels := range v.A.Levels {
		others := v.B.Levels[name]
		if len(levels)+len(others) > 2 && !slices.ContainsFunc(levels, func(l string) bool { return slices.Contains(others, l) }) {
			if hint := bySeverity(append(slices.Clone(levels), others...)); hint != "" && name == report.Graded {
				return hint
			}
			factors = append(factors, name)
		}
	}
	if len(factors) == 0 {
		return "`assay status` says what each has"
	}
	slices.Sort(factors)
	return "they have no level in common of " + strings.Join(factors, ", ") + ", and several each; choose one with --where"
}

// bySeverity says how to choose one of several severities; plain variants have none.
func bySeverity(variants []string) string {
	var all []string
	for _, v := range variants {
		if _, severity, graded := strings.Cut(v, ", "); graded && !slices.Contains(all, severity) {
			all = append(all, severity)
		}
	}
	if len(all) < 2 {
		return ""
	}
	slices.Sort(all)
	return fmt.Sprintf("flawed plans are there in several severities; choose one, such as with --where severity!=%s", strings.Join(all[1:], ","))
}

// sides finds what a name stands for.
type sides struct {
	ctx context.Context
	db  *store.DB
}

func (s *sides) find(name string) (iter.Seq2[assay.Attempt, error], error) {
	kind, rest, explicit := strings.Cut(name, ":")
	known, err := s.names()
	if err != nil {
		return nil, err
	}
	if _, ok := known[kind]; !explicit || !ok {
		kind, rest = "", name
	}
	var fits [][2]string
	for _, k := range sideKinds {
		if kind != "" && kind != k {
			continue
		}
		for _, n := range known[k] {
			if n == rest || k == "run" && len(rest) >= 4 && strings.HasPrefix(n, rest) {
				fits = append(fits, [2]string{k, n})
			}
		}
	}
	switch len(fits) {
	case 1:
		return s.attempts(fits[0][0], fits[0][1])
	case 0:
		var all []string
		for _, k := range sideKinds {
			all = append(all, known[k]...)
		}
		err := fmt.Errorf("the store has no experiment, run, model or variant %q", name)
		if hint := assay.NameHint(rest, all); hint != "" {
			err = fmt.Errorf("%w\nhint: %s", err, hint)
		}
		return nil, err
	}
	var could []string
	for _, f := range fits {
		could = append(could, f[0]+":"+f[1])
	}
	return nil, usageError("%q could be several\nhint: write one of %s", name, strings.Join(could, ", "))
}

var sideKinds = []string{"experiment", "run", "model", "variant"}

func (s *sides) names() (map[string][]string, error) {
	known := make(map[string][]string)
	experiments, err := s.db.Experiments(s.ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range experiments {
		known["experiment"] = append(known["experiment"], e.Name)
	}
	runs, err := s.db.Runs(s.ctx, "")
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		known["run"] = append(known["run"], string(r.ID))
	}
	if known["model"], err = s.db.Models(s.ctx); err != nil {
		return nil, err
	}
	known["variant"], err = s.db.Variants(s.ctx)
	return known, err
}

func (s *sides) attempts(kind, name string) (iter.Seq2[assay.Attempt, error], error) {
	keep := func(has func(*assay.Attempt) bool) iter.Seq2[assay.Attempt, error] {
		return func(yield func(assay.Attempt, error) bool) {
			for a, err := range s.db.Attempts(s.ctx, store.Filter{OnlySettled: true}) {
				if (err != nil || has(&a)) && !yield(a, err) {
					return
				}
			}
		}
	}
	switch kind {
	case "run":
		return s.db.Attempts(s.ctx, store.Filter{Run: assay.RunID(name), OnlySettled: true}), nil
	case "model":
		return s.db.Attempts(s.ctx, store.Filter{Model: name, OnlySettled: true}), nil
	case "variant":
		return keep(func(a *assay.Attempt) bool { return a.Variant == name }), nil
	}
	// An experiment is what it plans, whichever run settled that.
	chosen, err := chooseExperiments(s.ctx, s.db, []string{name})
	if err != nil {
		return nil, err
	}
	j, err := job.Reopen(s.ctx, chosen[0])
	if err != nil {
		return nil, fmt.Errorf("experiment %s cannot be planned again: %w", name, err)
	}
	planned := j.IDs()
	return keep(func(a *assay.Attempt) bool { return planned[a.ID] }), j.Close()
}

// flipped returns both episodes of the first flips, and their IDs by trial.
func flipped(ctx context.Context, db *store.DB, v *report.Comparison, most int) (map[assay.TrialID]string, []document.Episode, error) {
	ids := make(map[assay.TrialID]string)
	var shown []document.Episode
	for _, flip := range v.Flips[:min(most, len(v.Flips))] {
		for _, id := range []assay.TrialID{flip.A, flip.B} {
			if ids[id] != "" {
				continue
			}
			for a, err := range db.Attempts(ctx, store.Filter{Trial: id, OnlySettled: true}) {
				if err != nil {
					return nil, nil, err
				}
				tr, err := db.Transcript(ctx, id, a.Number)
				if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
					continue
				}
				if err != nil {
					return nil, nil, err
				}
				e := episodeOf(&a, &tr)
				ids[id] = e.ID
				shown = append(shown, e)
			}
		}
	}
	return ids, shown, nil
}
