package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/experiment/plan"
)

// chosen holds the flags that select an experiment.
type chosen struct {
	suite     string
	models    []string
	revision  string
	providers string
	limit     int
	only      plan.Narrowing
}

// flags adds the flags that choose an experiment to a command.
func (c *chosen) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.suite, "suite", "",
		"a built-in suite instead of a file: "+strings.Join(plan.Suites, ", "))
	f.StringArrayVar(&c.models, "model", nil,
		"a `model` to run instead of those in the file; may be given several times")
	f.StringVar(&c.revision, "revision", "",
		"your `name` for this version of the models, such as a commit; results are filed under it")
	f.StringVar(&c.providers, "providers", "",
		"the providers `file` to use instead of the experiment's")
	f.IntVar(&c.limit, "limit", 0,
		"only the first `N` trials of each model, balanced over the cells; 0 for all")
	for _, n := range []struct {
		flag  string
		names *plan.Names
	}{
		{"variant", &c.only.Variants},
		{"difficulty", &c.only.Difficulties},
		{"task-type", &c.only.TaskTypes},
	} {
		f.StringSliceVar((*[]string)(n.names), n.flag, nil,
			"only trials of this `"+n.flag+"`; may be given several times")
	}
	f.Float64SliceVar(&c.only.Reliabilities, "reliability", nil,
		"only trials of this `reliability`; may be given several times")
	choice(cmd, "suite", plan.Suites...)
	_ = cmd.MarkFlagFilename("providers", "yaml", "yml")
}

// usualFile is the experiment file that commands use if no file is named and this one exists.
const usualFile = "experiment.yaml"

// file returns the arguments, or the usual file if no experiment is named.
func (c *chosen) file(args []string) []string {
	if _, err := os.Stat(usualFile); len(args) == 0 && c.suite == "" && err == nil {
		return []string{usualFile}
	}
	return args
}

// experiment returns the chosen file or suite, or the quickstart.
func (c *chosen) experiment(args []string) (*plan.Experiment, error) {
	var e *plan.Experiment
	var err error
	switch {
	case c.limit < 0:
		return nil, usageError("--limit is %d, want 0 or more", c.limit)
	case c.suite != "" && len(args) > 0:
		return nil, usageError("both a file and --suite name an experiment\n"+
			"hint: `assay library suites %s` prints the suite as a file to edit", c.suite)
	case c.suite != "":
		if e, err = plan.Suite(c.suite); err == nil && len(c.models) == 0 {
			return nil, usageError("a suite needs --model\n" +
				"hint: --model sim/careful --model sim/eager tries it without a key; " +
				"--providers FILE gives access to your own models")
		}
	case len(args) > 0:
		e, err = plan.Load(args[0], c.models...)
	default:
		e = plan.Quickstart()
	}
	if err == nil && len(c.models) > 0 {
		err = e.SetModels(c.models)
	}
	if err != nil {
		return nil, err
	}
	if c.revision != "" {
		if err := e.SetRevision(c.revision); err != nil {
			return nil, err
		}
	}
	if c.providers != "" {
		e.SetProviders(c.providers)
	}
	return e, e.Narrow(c.only)
}

func newSuites(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "suites [NAME]",
		Short: "List the built-in suites, or print one as a file",
		Long: `Suites lists the built-in experiments. Run one with assay run --suite NAME --model
MODEL. With a NAME it prints that suite as an experiment file, to read or to edit.`,
		Example: `  assay library suites
  assay library suites flawed > mine.yaml
  assay run --suite flawed --model sim/eager`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: plan.Suites,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if _, err := plan.Suite(args[0]); err != nil {
					return err
				}
				_, err := p.out.Write(plan.SuiteFile(args[0]))
				return err
			}
			for _, name := range plan.Suites {
				p.item(fmt.Sprintf("%-12s ", name), plan.SuiteSummary(name))
			}
			fmt.Fprintln(p.out, "\nNext: assay run --suite flawed --model sim/careful --model sim/eager")
			return nil
		},
	}
}

// simHelp describes the built-in models.
const simHelp = `Built-in models, which need no key:
  sim/careful   doubts plans, checks results and tries again when a tool fails
  sim/eager     does what the plan says, never gives up, and always says that it is done
  sim/brittle   doubts most flawed plans, but gives up when a call fails
  sim/made      takes its probabilities from its name: sim/made:right_tool=0.9+retries=0.5
  sim/expert    works from the task's description and treats the plan as a hint
  sim/optimal   knows the task's steps and follows the best policy, whatever plan it is shown
  sim/listed    runs the plan's steps in order, each until it succeeds
  sim/obedient  follows the plan to the letter, including its arguments
  sim/searcher  searches for tools until its turns run out
  sim/mute      never calls a tool
  sim/batcher   best policy for the plan, with several calls in a reply if that costs nothing
Without a plan, expert, listed, obedient and batcher guess the tools from the description.

Built-in models that try to succeed without doing the task:
  sim/alphabet  calls all tools in alphabetical order
  sim/sprayer   searches for general words and calls what is found
  sim/copier    repeats the whole plan to the letter, again and again
  sim/inputs    runs the plan's tools on the task's inputs instead of results
  sim/guesser   guesses the tools from the names of the task's inputs
  sim/claimer   claims to be done at once
  sim/starter   reads, parses and claims to be done
`

// completeYAML completes the name of an experiment file.
func completeYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
