package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

func newRescore(p *process) *cobra.Command {
	var path string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "rescore",
		Short: "Judge stored transcripts again by this version's rules",
		Long: `Rescore judges the transcript of every outcome in a store by the rules of this
version. If the new outcome differs, it is stored next to the attempt, which never
changes. From then on, reports and exports show the new verdicts. Each verdict names
the version of the rules that gave it.

A store keeps the tasks and judges of its runs, so no other file is needed. Outcomes of
worlds that this version does not know, or that only an environment can judge, stay as
they are.`,
		Example: `  assay store rescore --dry-run
  assay store rescore --store results.db`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var sum audit.Rescored
			err := untilInterrupted(cmd.Context(), p, func(ctx context.Context) (err error) {
				open := openExisting
				if dry {
					open = store.OpenReadOnly
				}
				db, err := open(ctx, path)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, db.Close()) }()
				sum, err = audit.Rescore(ctx, db, version(), dry)
				return err
			})
			if err != nil {
				return err
			}
			return p.either(asJSON, sum, func() { writeRescored(p, sum, dry) })
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would change, and store nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// openExisting opens a store for writing and migrates it if it is older. Unlike [store.Open], it
// does not create a store.
func openExisting(ctx context.Context, path string) (*store.DB, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return store.OpenReadOnly(ctx, path) // its error has a hint
	}
	return store.Open(ctx, path)
}

func writeRescored(p *process, sum audit.Rescored, dry bool) {
	verb := "were stored"
	if dry {
		verb = "would be stored"
	}
	fmt.Fprintf(p.out, "%d outcomes judged again by the rules %s; %d differ and %s\n",
		sum.Outcomes, strings.Join(score.Versions(), ", "), sum.Changed, verb)
	for _, change := range slices.Sorted(maps.Keys(sum.Levels)) {
		fmt.Fprintf(p.out, "  %6d  %s\n", sum.Levels[change], change)
	}
	if sum.Categories > 0 {
		fmt.Fprintf(p.out, "  %6d  another error category\n", sum.Categories)
	}
	if sum.Environments > 0 {
		fmt.Fprintf(p.out, "  %6d  by the verdict that an environment gave; it cannot be asked again\n",
			sum.Environments)
	}
	for _, why := range slices.Sorted(maps.Keys(sum.Skipped)) {
		fmt.Fprintf(p.out, "  %6d  skipped: %s\n", sum.Skipped[why], why)
	}
}
