package main

import (
	"github.com/spf13/cobra"
)

func newRecover(p *process) *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "recover FILE",
		Short: "Copy the intact rows of a damaged store to a new one",
		Long: `Recover makes a new store from the intact rows of a damaged one, and lists what it
left out. It reads every page of the file and copies the rows whose seals are intact.
Rows on damaged pages are lost; to get them back, use a backup.
Trials whose outcome is lost are pending again. The damaged store stays as it is. If
only the transcript of an attempt is lost, the attempt is kept without it.

The exit code is 0 if every attempt was kept, and 1 if some were lost.`,
		Example: `  assay recover --store assay.db whole.db
  assay recover whole.db && assay run experiment.yaml --store whole.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rebuild(cmd.Context(), p, args[0], []string{path}, true, asJSON)
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
