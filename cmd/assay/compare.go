package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/reading"
	"github.com/assay-eval/assay/internal/result/report"
)

func newCompare(p *process) *cobra.Command {
	var f documentFlags
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two experiments, runs, models or variants on the same tasks",
		Long: `Compare shows what changed from A to B, whether that is more than chance, overall and
condition by condition, and which trials flipped. A and B are experiments, runs (or the
beginnings of their IDs), models or variants. If a name is ambiguous, write model:NAME,
run:NAME, experiment:NAME or variant:NAME.

Trials are matched by task, repeat and everything else that both sides have in common. If
each side has a single level of a factor, and the two levels differ, the sides are compared
by that factor.`,
		Example: `  assay compare sim/expert sim/obedient
  assay compare optimal flawed_missing_step --where model=sim/obedient
  assay compare my-model@v1 my-model@v2
  assay compare before after --transcripts 20 --output compare.html
  assay compare run:01a1fe7e run:01a2003b --json | jq '.flips'`,
		Args: cobra.ExactArgs(2),
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
			c, err := reading.Compare(ctx, db, args[0], args[1], f.where, f.cluster)
			if errors.Is(err, report.ErrNothingInCommon) || errors.Is(err, reading.ErrOneSide) {
				return sanitizedError{err}
			}
			if err != nil {
				return err
			}
			return f.write(p, c, func() (*document.Document, error) {
				return c.Document(ctx, f.transcripts, f.reveal)
			})
		},
	}
	f.flags(cmd, "both transcripts of the first `N` flips")
	cmd.ValidArgsFunction = namesIn(&f.store, reading.Names)
	return cmd
}
