package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/store"
)

func newBackup(p *process) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy a store, also while a run writes to it",
		Long: `Backup copies the store as it is at this moment to a new file, which appears whole or
not at all, as private as the store. A run that writes meanwhile is not disturbed. Room
that deleted rows left is not copied. A store that is known to be damaged is not copied
either: nothing would keep a run from writing to the copy.`,
		Example: `  assay backup results-2026-11-20.db
  assay backup --store results.db /mnt/other/results.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			db, err := store.OpenReadOnly(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			snapshot, err := db.Backup(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.out, "%s holds snapshot %s of %s\n", args[0], snapshot, path)
			return err
		},
	}
	storeFlag(cmd, &path)
	return cmd
}

func newRecover(p *process) *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "recover FILE",
		Short: "Copy the intact rows of a damaged store to a new one",
		Long: `Recover makes a new store from the intact rows of a damaged one, and lists what it left
out. It copies the rows that SQLite still returns and whose seals are intact. Rows on pages
that SQLite cannot read are lost; to get them back, use a backup. Trials whose outcome is
lost are pending again. The damaged store stays as it is. If only the transcript of an
attempt is lost, the attempt is kept without it.

The exit code is 0 if every attempt was kept, and 1 if some were lost.`,
		Example: `  assay recover --store assay.db whole.db
  assay recover whole.db && assay run experiment.yaml --store whole.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rebuild(cmd.Context(), p, args[0], []string{path}, true, asJSON)
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func newMerge(p *process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge NEW STORE...",
		Short: "Make one store of several",
		Long: `Merge makes a new store of several, such as those of machines that worked on one
experiment. Attempts that several stores have come once, and a trial that was settled in
several keeps the outcome that was finished first; the others are listed. So are stores
in which the name of an experiment stands for another plan: the plan of the latest run
is the one that status and reports go by. The order of the stores changes nothing, and
merging a result again adds nothing. The stores are only read.`,
		Example: `  assay merge all.db machine-1.db machine-2.db
  assay merge all-2.db all.db machine-3.db`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rebuild(cmd.Context(), p, args[0], args[1:], false, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func rebuild(ctx context.Context, p *process, to string, from []string, salvage, asJSON bool) error {
	out := struct {
		Store string `json:"store"`
		store.Copied
		Conflicts     []store.Conflict     `json:"conflict_list"`
		PlanConflicts []store.PlanConflict `json:"plan_conflict_list"`
		Lost          []store.Problem      `json:"lost_list"`
	}{Store: to, Conflicts: []store.Conflict{}, PlanConflicts: []store.PlanConflict{}, Lost: []store.Problem{}}
	show := p.progress("")
	r := store.Rebuild{
		Conflict:     func(c store.Conflict) { out.Conflicts = append(out.Conflicts, c) },
		PlanConflict: func(c store.PlanConflict) { out.PlanConflicts = append(out.PlanConflicts, c) },
		Progress:     show.on,
	}
	if salvage {
		r.Lost = func(_ string, problem store.Problem) { out.Lost = append(out.Lost, problem) }
	}
	sum, err := r.Make(ctx, to, from...)
	show.end()
	if err != nil {
		return err
	}
	out.Copied = sum
	var incomplete error
	if sum.Lost > 0 || sum.Missing > 0 || sum.Unreadable > 0 {
		incomplete = &codedError{code: exitError}
	}
	if asJSON {
		return errors.Join(json.NewEncoder(p.out).Encode(out), incomplete)
	}
	var b strings.Builder
	for _, c := range firstOf(&b, out.PlanConflicts, "conflicts of plans") {
		fmt.Fprintf(&b, "experiment %s has two plans, which differ in %s: status and reports go by that of run %s in %s, not that of run %s in %s\n",
			c.Experiment, strings.Join(c.Fields, ", "), c.Kept.Run, c.Kept.Store, c.Left.Run, c.Left.Store)
	}
	for _, c := range firstOf(&b, out.Conflicts, "conflicts") {
		same := "differ"
		if c.Kept.Level == c.Left.Level {
			same = "agree"
		}
		fmt.Fprintf(&b, "trial %s has two outcomes, which %s: kept %s of run %s in %s, left %s of run %s in %s\n", c.Trial, same,
			c.Kept.Level, c.Kept.Run, c.Kept.Store, c.Left.Level, c.Left.Run, c.Left.Store)
	}
	for _, l := range firstOf(&b, out.Lost, "losses") {
		fmt.Fprintf(&b, "left: %s\n", l)
	}
	fmt.Fprintf(&b, "%s: %d runs, %d trials, %d attempts, %d outcomes, %d transcripts", to, sum.Runs, sum.Trials, sum.Attempts, sum.Outcomes, sum.Transcripts)
	if sum.Doubles > 0 {
		fmt.Fprintf(&b, "; %d attempts were there more than once", sum.Doubles)
	}
	if sum.Conflicts > 0 {
		fmt.Fprintf(&b, "; %d outcomes were left for earlier ones", sum.Conflicts)
	}
	if sum.Lost > 0 {
		fmt.Fprintf(&b, "; left %s that cannot be trusted or read", counted(sum.Lost, "attempt"))
	}
	if sum.Missing > 0 {
		verb := "are"
		if sum.Missing == 1 {
			verb = "is"
		}
		fmt.Fprintf(&b, "; %s %s missing", counted(int(sum.Missing), "attempt"), verb)
	}
	if sum.Unreadable > 0 {
		fmt.Fprintf(&b, "; of %s what follows the damage is lost", counted(sum.Unreadable, "table"))
	}
	if sum.Bare > 0 {
		fmt.Fprintf(&b, "; %d attempts were kept without their transcripts, which are lost", sum.Bare)
	}
	_, err = fmt.Fprintln(p.out, b.String())
	return errors.Join(err, incomplete)
}

// firstOf returns the first of a long list, and says how long it is.
func firstOf[T any](b *strings.Builder, all []T, what string) []T {
	const most = 20
	if len(all) <= most {
		return all
	}
	fmt.Fprintf(b, "%d %s; --json lists all\n", len(all), what)
	return all[:most]
}

func newDelete(p *process) *cobra.Command {
	var path, experiment, model string
	var older time.Duration
	var levels []string
	var transcripts, yes, asJSON bool
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete an experiment, a model, or old transcripts, after a preview",
		Long: `Delete takes attempts out of a store with all that hangs on them, or with
--transcripts-only their transcripts alone, which are nine tenths of a store. Without --yes
it says what would go and deletes nothing. A record of it stays in the store, so that
"assay verify" does not take what is missing for a loss. Trials whose outcome went are pending
again, by every experiment that plans them. The file does not shrink; a backup does without
the room that is free. Ctrl-C before all is gone takes everything back.`,
		Example: `  assay delete --experiment quickstart
  assay delete --experiment quickstart --yes
  assay delete --model gpt-4o-mini --yes
  assay delete --transcripts-only --level full_success --older-than 720h --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c := store.Choice{Experiment: experiment, Model: model, Transcripts: transcripts}
			if cmd.Flags().Changed("older-than") {
				if older <= 0 {
					return usageError("--older-than=%s: it takes a time that has passed, such as 720h", older)
				}
				c.Before = time.Now().Add(-older)
			}
			for _, l := range levels {
				if !slices.Contains(assay.Levels, assay.Level(l)) {
					return usageError("--level %q: the levels are full_success, partial_success and failure", l)
				}
				c.Levels = append(c.Levels, assay.Level(l))
			}
			if c.Experiment == "" && c.Model == "" && older == 0 && len(levels) == 0 {
				return usageError("say what to delete\nhint: --experiment, --model, --older-than or --level; without --yes nothing is deleted")
			}
			d, err := deleteRows(cmd.Context(), path, c, yes)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(p.out).Encode(d)
			}
			_, err = fmt.Fprint(p.out, d)
			return err
		},
	}
	storeFlag(cmd, &path)
	f := cmd.Flags()
	f.StringVar(&experiment, "experiment", "", "what was made for this experiment")
	f.StringVar(&model, "model", "", "what this model did")
	f.DurationVar(&older, "older-than", 0, "attempts that ended so long ago, such as 720h")
	f.StringSliceVar(&levels, "level", nil, "outcomes of this level; may be given several times")
	f.BoolVar(&transcripts, "transcripts-only", false, "delete transcripts and keep their attempts")
	f.BoolVar(&yes, "yes", false, "do it")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	choice(cmd, "level", "full_success", "partial_success", "failure")
	return cmd
}

// deletion is what `assay delete` says.
type deletion struct {
	Done bool `json:"done"`
	store.Deleted
	// Pending says which experiments owe trials again.
	Pending []owing `json:"owed_again"`
}

// An owing experiment plans trials whose outcome goes.
type owing struct {
	Experiment string `json:"experiment"`
	Trials     int    `json:"trials"`
	// Unknown says why nobody can tell what it plans.
	Unknown string `json:"unknown,omitempty"`
}

func deleteRows(ctx context.Context, path string, c store.Choice, yes bool) (d deletion, err error) {
	open := store.OpenReadOnly
	if yes {
		open = openExisting
	}
	db, err := open(ctx, path)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if c.Experiment != "" {
		if _, err := chooseExperiments(ctx, db, []string{c.Experiment}); err != nil {
			return d, err
		}
	}
	if c.Model != "" {
		if err := knownModel(ctx, db, c.Model); err != nil {
			return d, err
		}
	}
	if d.Pending, err = owingAfter(ctx, db, c); err != nil {
		return d, err
	}
	if d.Done = yes; yes {
		d.Deleted, err = db.Delete(ctx, c, version())
		return d, err
	}
	d.Deleted, err = db.Preview(ctx, c)
	return d, err
}

// owingAfter returns the experiments, but for the one that is chosen, that plan trials
// whose outcome goes. They may never have tried them: what is settled is not tried.
func owingAfter(ctx context.Context, db *store.DB, c store.Choice) ([]owing, error) {
	pending := []owing{}
	losing, err := db.Losing(ctx, c)
	if err != nil || losing.Len() == 0 {
		return pending, err
	}
	experiments, err := db.Experiments(ctx)
	for _, e := range experiments {
		if e.Name == c.Experiment {
			continue
		}
		o, failed := owingOf(ctx, e, losing)
		if ctx.Err() != nil {
			return pending, context.Cause(ctx)
		}
		if failed != nil {
			o.Unknown, _, _ = strings.Cut(failed.Error(), "\n")
		}
		if o.Trials > 0 || failed != nil {
			pending = append(pending, o)
		}
	}
	return pending, err
}

func owingOf(ctx context.Context, e store.Experiment, losing store.Set) (o owing, err error) {
	o.Experiment = e.Name
	if e.Lost() {
		return o, errors.New("the text of its experiment is lost")
	}
	j, err := job.Reopen(ctx, e)
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for t := range j.Trials() {
		if losing.Has(t.ID) {
			o.Trials++
		}
	}
	return o, nil
}

// knownModel refuses a model of which the store holds nothing.
func knownModel(ctx context.Context, db *store.DB, model string) error {
	models, err := db.Models(ctx)
	if err != nil || slices.Contains(models, model) {
		return err
	}
	err = fmt.Errorf("the store has no attempt of model %q", model)
	if hint := assay.NameHint(model, models); hint != "" {
		err = fmt.Errorf("%w\nhint: %s", err, hint)
	}
	return err
}

func (d deletion) String() string {
	var b strings.Builder
	if d.Deleted == (store.Deleted{}) {
		return "Nothing fits, so there is nothing to delete.\n"
	}
	verb, hint := "would be deleted", "Nothing was deleted; --yes does it.\n"
	if d.Done {
		verb, hint = "deleted", ""
	}
	if d.Attempts > 0 || d.Runs > 0 {
		fmt.Fprintf(&b, "%d attempts, %d outcomes among them, %s: %d trials are gone altogether, and %s\n", d.Attempts, d.Outcomes, verb, d.Trials, counted(d.Runs, "run"))
	}
	fmt.Fprintf(&b, "%s %s, %.1f MB\n", counted(d.Transcripts, "transcript"), verb, float64(d.Bytes)/1e6)
	for _, o := range d.Pending {
		if o.Unknown != "" {
			fmt.Fprintf(&b, "what experiment %s owes then nobody can tell: %s\n", o.Experiment, o.Unknown)
			continue
		}
		fmt.Fprintf(&b, "experiment %s plans %d of the trials that lose their outcome, and owes them then\n", o.Experiment, o.Trials)
	}
	b.WriteString(hint)
	return b.String()
}
