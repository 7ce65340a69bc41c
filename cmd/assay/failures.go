package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/result/query"
)

func newFailures(p *process) *cobra.Command {
	var path string
	var conditions []string
	var details, asJSON, reveal bool
	cmd := &cobra.Command{
		Use:   "failures [EXPERIMENT]",
		Short: "Group the failures of an experiment by what went wrong first",
		Long: `Failures finds the first thing that went wrong in each trial that is not a full success,
such as a skipped step, a wrong argument or a failed call that was not repeated. It counts
the causes by model, and shows one example of each: the turn, what happened, what would
have been right, and the command that shows the whole trial.

The causes are found by rules, without a model. "assay store classify" asks a model.`,
		Example: `  assay failures
  assay failures --where model=gpt-4o --where variant=optimal
  assay failures --json | jq '.causes[] | {cause, failed, trial: .example.trial}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			where, err := parseWhere(conditions)
			if err != nil {
				return err
			}
			db, err := p.openToRead(ctx, path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			if err := checkWhere(ctx, db, where); err != nil {
				return err
			}
			all, err := chooseExperiments(ctx, db, args)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return errors.New("the store holds no experiment yet\nhint: `assay run` runs one")
			}
			request := query.Request{Experiment: latest(all).Name, Where: where, Reveal: reveal}
			warn := func(message string) { fmt.Fprintf(p.err, "assay: %s\n", message) }
			s, err := query.Select(ctx, db, request, warn)
			if err != nil {
				return err
			}
			show := p.progress("attempts read")
			f, err := query.FindFailures(ctx, s, func(n int) { show.at(n, 0) })
			show.end()
			if err != nil {
				return err
			}
			return p.either(asJSON, f, func() {
				show := query.CommandLine(p.name, "show", path)
				for line := range strings.Lines(f.Text(show, details)) {
					fmt.Fprintln(p.out, sanitize(strings.TrimSuffix(line, "\n")))
				}
			})
		},
	}
	storeFlag(cmd, &path)
	whereFlag(cmd, &conditions)
	revealFlag(cmd, &reveal)
	cmd.Flags().BoolVar(&details, "details", false, "show an example of each cause, and all models")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.ValidArgsFunction = namesIn(&path, experimentNames)
	return cmd
}
