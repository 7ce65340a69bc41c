package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/validate"
	"github.com/assay-eval/assay/internal/task/library"
)

func newGenerate(p *process) *cobra.Command {
	var out string
	var perType int
	var force bool
	cmd := &cobra.Command{
		Use:   "generate -o LIBRARY.db",
		Short: "Generate a task library",
		Long: `Generate writes tasks for the thirty built-in tools: a number of tasks of each of
the five types, each worded at five difficulties and in three biased mixtures of
them. The same number always gives the same library. The default number gives the
built-in library, as a file.`,
		Example: `  assay library generate -o tasks.db
  assay library generate --tasks-per-type 500 -o large.db`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usageError("--output is missing\nhint: assay library generate -o library.db")
			}
			tasks, err := library.GenerateN(perType)
			if err != nil {
				return &codedError{exitUsage, err}
			}
			switch there, err := os.Lstat(out); {
			case err != nil: // if the path cannot be written, creating the file reports that
			case there.IsDir():
				return fmt.Errorf("%s is a directory\nhint: name a file in it", out)
			case !force:
				return fmt.Errorf("%s already exists\n"+
					"hint: choose another file, or replace it with --force", out)
			}
			source := fmt.Sprintf("generator %s, %d tasks a type",
				library.GeneratorVersion, perType)
			meta := library.Meta{Name: "generated", Source: source}
			err = untilInterrupted(cmd.Context(), p, func(ctx context.Context) error {
				return library.Create(ctx, out, meta, library.Tools(), tasks)
			})
			if err != nil {
				return err
			}
			n := len(assay.TaskTypes) * perType
			fmt.Fprintf(p.out,
				"%s: %d descriptions of %d tasks\n"+
					"Next: write `library: %s` in an experiment file\n",
				out, n*len(validate.Difficulties), n, out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the library `file` to write")
	cmd.Flags().IntVar(&perType, "tasks-per-type", library.TasksPerType,
		"how many tasks of each type")
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return cmd
}
