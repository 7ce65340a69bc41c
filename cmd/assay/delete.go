package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/store"
)

type deleteFlags struct {
	store, experiment, model string
	older                    time.Duration
	levels, conditions       []string
	transcripts, yes, asJSON bool
}

func newDelete(p *process) *cobra.Command {
	var f deleteFlags
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Delete an experiment, a model, or old transcripts, after a preview",
		Long: `Delete removes attempts from a store, with everything that depends on them. With
--transcripts-only, it removes only their transcripts, which take up nine tenths of a store.
Without --yes, it prints what would go and deletes nothing. The store keeps a record of the
deletion, so that "assay store verify" does not report a loss. Trials whose outcome is deleted are
pending again in every experiment that plans them. The file does not shrink, but a backup
leaves the free space out. Ctrl-C before the end undoes everything.`,
		Example: `  assay store delete --experiment quickstart
  assay store delete --experiment quickstart --yes
  assay store delete --model gpt-4o-mini --yes
  assay store delete --where faults --where task=refund-*
  assay store delete --transcripts-only --level full_success --older-than 720h --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.choice(cmd.Flags().Changed("older-than"))
			if err != nil {
				return err
			}
			where, err := parseWhere(f.conditions)
			if err != nil {
				return err
			}
			d, err := deleteRows(cmd.Context(), f.store, c, where, f.yes)
			if err != nil {
				return err
			}
			return p.print(f.asJSON, d)
		},
	}
	storeFlag(cmd, &f.store)
	flags := cmd.Flags()
	flags.StringVar(&f.experiment, "experiment", "", "attempts made for this experiment")
	flags.StringVar(&f.model, "model", "", "attempts of this model")
	flags.DurationVar(&f.older, "older-than", 0,
		"attempts that ended longer ago than this, such as 720h")
	flags.StringSliceVar(&f.levels, "level", nil,
		"outcomes of this level; may be given several times")
	whereFlag(cmd, &f.conditions)
	flags.BoolVar(&f.transcripts, "transcripts-only", false,
		"delete transcripts and keep their attempts")
	flags.BoolVar(&f.yes, "yes", false, "delete instead of previewing")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	choice(cmd, "level", "full_success", "partial_success", "failure")
	return cmd
}

// choice returns the choice that the flags make. Aged is true if --older-than was given.
func (f deleteFlags) choice(aged bool) (store.Choice, error) {
	c := store.Choice{Experiment: f.experiment, Model: f.model, Transcripts: f.transcripts}
	if aged {
		if f.older <= 0 {
			return c, usageError("--older-than=%s: want a positive duration, such as 720h", f.older)
		}
		c.Before = time.Now().Add(-f.older)
	}
	for _, l := range f.levels {
		if !slices.Contains(assay.Levels, assay.Level(l)) {
			return c,
				usageError("--level %q: the levels are full_success, partial_success and failure",
					l)
		}
		c.Levels = append(c.Levels, assay.Level(l))
	}
	c.Where = f.conditions
	if c.Experiment == "" && c.Model == "" && !aged && len(c.Levels) == 0 && len(c.Where) == 0 {
		return c, usageError("nothing is chosen for deletion\n" +
			"hint: use --experiment, --model, --older-than, --level or --where; " +
			"without --yes nothing is deleted")
	}
	return c, nil
}

// deletion is the JSON that `assay store delete` prints.
type deletion struct {
	Done bool `json:"done"`
	store.Deleted
	// Pending counts the trials of other experiments that are pending again.
	Pending []audit.Loss `json:"pending_again"`
}

func deleteRows(
	ctx context.Context, path string, c store.Choice, where export.Where, yes bool,
) (d deletion, err error) {
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
		e, err := query.FindExperiment(ctx, db, c.Experiment)
		if err != nil {
			return d, err
		}
		c.Experiment = e.Name
	}
	if c.Model != "" {
		if err := query.CheckModel(ctx, db, c.Model); err != nil {
			return d, err
		}
	}

	if err := checkWhere(ctx, db, where); err != nil {
		return d, err
	}
	if len(c.Where) > 0 {
		all := query.Filter(db.Attempts(ctx, store.Filter{All: true}), where.Has)
		for a, err := range all {
			if err != nil {
				return d, err
			}
			c.Only = append(c.Only, store.Key{Trial: a.ID, Number: a.Number})
		}
	}
	if d.Pending, err = audit.Losses(ctx, db, c); err != nil {
		return d, err
	}
	if d.Done = yes; yes {
		d.Deleted, err = db.Delete(ctx, c, version())
		return d, err
	}
	d.Deleted, err = db.Preview(ctx, c)
	return d, err
}

func (d deletion) String() string {
	var b strings.Builder
	if d.Deleted == (store.Deleted{}) {
		return "Nothing matches, so there is nothing to delete.\n"
	}
	verb, pending := "would be deleted", "would be pending afterwards"
	hint := "Nothing was deleted; use --yes to delete.\n"
	if d.Done {
		verb, pending, hint = "deleted", "are pending again", ""
	}
	if d.Attempts > 0 || d.Runs > 0 {
		fmt.Fprintf(&b, "%s, including %s, %s, with %s and %s\n", assay.Counted(d.Attempts, "attempt"),
			assay.Counted(d.Outcomes, "outcome"), verb, assay.Counted(d.Trials, "whole trial"),
			assay.Counted(d.Runs, "run"))
	}
	if d.CostUSD > 0 || d.CostUnknown > 0 {
		fmt.Fprintf(&b, "their cost, %s, is in no figure afterwards\n",
			assay.DollarsText(d.CostUSD, 2, d.CostUnknown > 0))
	}
	fmt.Fprintf(&b, "%s %s, %.1f MB\n",
		assay.Counted(d.Transcripts, "transcript"), verb, float64(d.Bytes)/1e6)
	for _, l := range d.Pending {
		if l.Unknown != "" {
			fmt.Fprintf(&b,
				"cannot tell which trials of experiment %s would be pending afterwards: %s\n",
				l.Experiment, l.Unknown)
			continue
		}
		fmt.Fprintf(&b, "%d trials of experiment %s lose their outcome and %s\n",
			l.Trials, l.Experiment, pending)
	}
	b.WriteString(hint)
	return b.String()
}
