package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

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

// toFile writes to standard output, or to a file that appears when it is whole
// and on disk. Renaming replaces a file at once on every system that Go has.
func toFile(p *process, path string, write func(io.Writer) error) (err error) {
	if path == "-" {
		return write(p.out)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	// CreateTemp keeps files private; an export is for whoever may read the store.
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
