package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/query"
)

func newRepeat(p *process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "repeat REPORT.json",
		Short: "Plan a published experiment again, and say what differs",
		Long: `Repeat reads a report in JSON, which a published site has as report.json, plans the same
experiment again, and says what differs on this machine and in this version of the program:
tasks, tools, limits, words, rules of scoring. Trials are the same if their digest is the same.

plan, check and run accept such a report in the place of an experiment file. A library of its
own has to be beside it, and --providers names the keys and endpoints.

The exit code is 0 if the trials are the same, 1 if they are others, and 2 if the report or its
library cannot be read.`,
		Example: `  assay repeat report.json
  assay repeat report.json --json | jq .differences
  assay run report.json --providers providers.yaml --store mine.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			published, err := plan.LoadPublished(args[0])
			if err != nil {
				return err
			}
			j, err := job.Open(cmd.Context(), published.Experiment, 0)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, j.Close()) }()
			r := query.Repeated(published, j)
			if err := p.either(asJSON, r, func() { writeRepeat(p, args[0], &r) }); err != nil {
				return err
			}
			if !r.Same {
				return &codedError{code: exitError}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"json"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return cmd
}

func writeRepeat(p *process, file string, r *query.Repeat) {
	if len(r.Differences) > 0 {
		for _, d := range r.Differences {
			p.item(d.Setting+": ", fmt.Sprintf("published %s, here %s: %s", d.Published, d.Here, d.Means))
		}
		fmt.Fprintln(p.out)
	}
	same := "the same as the published ones"
	switch {
	case !r.Same:
		same = "not the published ones"
	case !r.Known:
		same = "the same as far as the report tells"
	}
	p.say("experiment %s: %d trials, %s.", r.Experiment, r.Trials, same)
	p.say("Next: assay run %s --store mine.db; --providers FILE gives access to its models", file)
}
