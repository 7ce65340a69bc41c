package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/export"
	"github.com/assay-eval/assay/internal/store"
)

func newExport(p *process) *cobra.Command {
	var path, format, output, experiment string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write all attempts as JSON lines or CSV",
		Long: `Export writes one record for each attempt, outcomes and faults alike: a record has
either a level or a fault. With --output the file is written whole or not at all.`,
		Example: `  assay export --format csv --output results.csv
  assay export --experiment quickstart | jq -r .level | sort | uniq -c`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			f, err := export.ParseFormat(format)
			if err != nil {
				return usageError("%w", err)
			}
			db, err := store.OpenReadOnly(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			if experiment != "" {
				if _, err := chooseExperiments(cmd.Context(), db, []string{experiment}); err != nil {
					return err
				}
			}
			snapshot, err := db.Snapshot(cmd.Context())
			if err != nil {
				return err
			}
			attempts := db.Attempts(cmd.Context(), store.Filter{Experiment: experiment, Snapshot: snapshot})
			n := 0
			err = toFile(p, output, func(w io.Writer) error {
				n, err = export.Write(w, f, attempts)
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(p.err, "%d attempts of snapshot %s\n", n, snapshot)
			return nil
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().StringVar(&format, "format", string(export.JSONL), "jsonl or csv")
	cmd.Flags().StringVarP(&output, "output", "o", "-", "the `file` to write; - is standard output")
	cmd.Flags().StringVar(&experiment, "experiment", "", "only attempts made for this experiment")
	choice(cmd, "format", "jsonl", "csv")
	return cmd
}

// toFile writes to standard output, or to a file that appears when it is whole.
func toFile(p *process, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(p.out)
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = f.Cleanup() }()
	if err := write(f); err != nil {
		return err
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
