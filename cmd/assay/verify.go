package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/store"
)

func newVerify(p *process) *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that a store is intact",
		Long: `Verify reads everything in a store once and checks it: the file and its tables, each
row against its seal, each trial against its ID, and each transcript against the
score that it gave. It checks that nothing is missing except what was deleted on
purpose, that each trial is settled at most once, that models, variants, task types
and reliabilities belong to the run's experiment, and that the requested model
answered.

It changes no row. If something is wrong, it prints what, where and what to do, and exits
with code 1. It also writes STORE.damaged; while that file exists, no run writes to the store.
The store can still be read, and "assay store recover" copies the intact rows. If a run has
not ended, its latest attempts may have been cut off without a trace.`,
		Example: `  assay store verify
  assay store verify --store results.db --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			show := p.progress("verifying")
			r, err := audit.Run(cmd.Context(), path, words, show.at)
			show.end()
			if err != nil {
				return err
			}
			err = p.print(asJSON, r)
			if r.NotMarked != nil {
				fmt.Fprintf(p.err, "assay: %v\nhint: the store's directory is not writable, "+
					"so nothing keeps a run from writing to a copy of the store\n", r.NotMarked)
			}
			if err == nil && len(r.Problems) > 0 {
				err = &codedError{code: exitError}
			}
			return err
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// openToRead opens a store for reading. It prints which attempts cannot be read, and skips them.
func (p *process) openToRead(ctx context.Context, path string) (*store.DB, error) {
	db, err := p.openForOne(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := db.SkipGone(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openForOne is openToRead for commands that don't read all attempts.
func (p *process) openForOne(ctx context.Context, path string) (*store.DB, error) {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, err
	}
	if db.MarkedDamaged() {
		fmt.Fprintf(p.err,
			"assay: %s is damaged, says \"assay store verify\"; the output covers what can be read\n",
			path)
	}
	const most = 10
	n := 0
	db.SkipDamage(func(err error) {
		switch n++; {
		case n <= most:
			fmt.Fprintf(p.err, "assay: skipped %s\n", strings.SplitN(err.Error(), "\n", 2)[0])
		case n == most+1:
			fmt.Fprintln(p.err, "assay: more cannot be read or proved; \"assay store verify\" lists it")
		}
	})
	p.read = append(p.read, db)
	return db, nil
}
