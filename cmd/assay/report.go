package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/store"
)

func newReport(p *process) *cobra.Command {
	var f documentFlags
	cmd := &cobra.Command{
		Use:   "report [EXPERIMENT]",
		Short: "Tables, charts and warnings of an experiment",
		Long: `Report shows what an experiment found. It begins with the lines that end a run: how
the models rank, what costs most, why trials fail, which trial shows it, and what the
work took. Warnings follow, then rates with intervals, comparisons of variants and
models on the same tasks, errors, effort, cost, and what it takes to reproduce the
run. Without EXPERIMENT, it reports the experiment of the latest run. With --where,
only matching attempts count.

A terminal shows the first 40 rows of a table. A pipe, a file and the other formats get
all of them.

The HTML is one file that needs no network. With --transcripts N, it has the transcripts of
up to N failed episodes of each model.`,
		Example: `  assay report
  assay report flawed-workflows --output report.html
  assay report --where model=gpt-4o --where difficulty!=easy
  assay report --transcripts 20 --output report.html
  assay report --json | jq '.warnings[].title'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := f.check(p); err != nil {
				return err
			}
			ctx := cmd.Context()
			db, err := p.openToRead(ctx, f.store)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			if err := checkWhere(ctx, db, f.where); err != nil {
				return err
			}
			all, err := chooseExperiments(ctx, db, args)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return writeOthers(ctx, p, db, f)
			}
			return writeReport(ctx, p, db, latest(all), f)
		},
	}
	cmd.Flags().BoolVar(&f.details, "details", false,
		"show every section on a terminal; the other formats have them all")
	f.flags(cmd, "transcripts of episodes that did not fully succeed, at most `N` per model")
	cmd.ValidArgsFunction = namesIn(&f.store, experimentNames)
	return cmd
}

// writeReport writes the report of a stored experiment.
func writeReport(
	ctx context.Context, p *process, db *store.DB, e store.Experiment, f documentFlags,
) (err error) {
	j, err := job.Reopen(ctx, db, e)
	if err != nil {
		return fmt.Errorf("cannot plan experiment %s again: %w", e.Name, err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if j.Experiment.Forks != nil {
		return writeForks(ctx, p, db, j.Experiment.Forks.Of, &f)
	}
	r, err := analyze(ctx, p, db, j, e, f)
	if err != nil {
		return err
	}
	if f.format != "text" {
		r = r.Lasting()
	}
	return f.write(p, r, func() (*document.Document, error) {
		d, err := r.Document(ctx, f.transcripts)
		if err == nil && f.format == "text" && !f.details {
			d = d.Brief(r.CommandLine("report --details"))
		}
		return d, err
	})
}

// analyze computes the figures of a planned experiment.
func analyze(
	ctx context.Context, p *process, db *store.DB, j *job.Job, e store.Experiment, f documentFlags,
) (*query.Report, error) {
	x, err := query.Plan(ctx, db, j, e, f.where)
	if err != nil {
		return nil, err
	}
	x.Program, x.Command, x.Store = version(), p.name, f.store
	x.Reveal, x.Design.Cluster = f.reveal, f.cluster
	return x.Analyze(ctx, db)
}

// writeOthers reports the results of other systems, for a store that has no experiment.
func writeOthers(ctx context.Context, p *process, db *store.DB, f documentFlags) error {
	others, err := query.Others(ctx, db)
	if err != nil {
		return err
	}
	if len(others) == 0 {
		return errors.New("the store holds no experiment yet\nhint: `assay run` runs one")
	}
	return f.write(p, others, func() (*document.Document, error) {
		return sections.Others(others), nil
	})
}
