package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/store"
)

func newBackup(p *process) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy a store, even while a run writes to it",
		Long: `Backup copies the current state of a store to a new file. The file appears complete
or not at all, and has the permissions of the store. A run that writes to the store
meanwhile is not disturbed. Space left by deleted rows is not copied. Backup refuses
a store that verify found damaged, because runs could write to the copy.`,
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
