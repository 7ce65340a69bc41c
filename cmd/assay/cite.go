package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/stat"
)

func newCite(p *process) *cobra.Command {
	var f documentFlags
	cmd := &cobra.Command{
		Use:   "cite [EXPERIMENT]",
		Short: "Method in three sentences, BibTeX and digests for a paper",
		Long: `Cite prints what a paper says about an experiment: what was done, how it was judged and what
was found, with this experiment's numbers, an entry for BibTeX, the digests that identify
what was used, the commands that publish the results and plan the experiment again, and
the warnings of its report.
Without EXPERIMENT, it cites the experiment of the latest run.`,
		Example: `  assay cite
  assay cite flawed-workflows --json | jq -r .bibtex >> paper.bib
  assay cite --json | jq -r .method`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			f.cluster = stat.Auto
			db, err := p.openToRead(ctx, f.store)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			e, err := latestExperiment(ctx, db, args)
			if err != nil {
				return err
			}
			j, err := job.Reopen(ctx, db, e)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, j.Close()) }()
			r, err := analyze(ctx, p, db, j, e, f)
			if err != nil {
				return err
			}
			c, err := r.Lasting().Citation(ctx)
			if err != nil {
				return err
			}
			return p.print(f.asJSON, c)
		},
	}
	storeFlag(cmd, &f.store)
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	cmd.ValidArgsFunction = namesIn(&f.store, experimentNames)
	return cmd
}
