package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/task/library"
)

func newCommit(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "commit LIBRARY",
		Short: "Print a digest of a library to publish in advance",
		Long: `Commit prints a digest of the tools and tasks of a library. Publish it before the results,
and the library whenever its tasks may become known: then everybody can see with the same
command that no task was changed in between. The digest of a private library gives nothing
away.`,
		Example: "  assay library commit private.db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			lib, err := library.OpenNamed(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, lib.Close()) }()
			digest, err := lib.Commitment(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintln(p.out, digest)
			return nil
		},
	}
}
