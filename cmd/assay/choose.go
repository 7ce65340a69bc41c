package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/run/plan"
)

// chosen is what flags and arguments say of the experiment to work on.
type chosen struct {
	suite     string
	models    []string
	providers string
	limit     int
}

// flags adds the flags that choose an experiment to a command.
func (c *chosen) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.suite, "suite", "", "a built-in suite instead of a file: "+strings.Join(plan.Suites, ", "))
	f.StringArrayVar(&c.models, "model", nil, "a `model` to run instead of the file's; may be given several times")
	f.StringVar(&c.providers, "providers", "", "the providers `file`, instead of the one that the experiment names")
	f.IntVar(&c.limit, "limit", 0, "only the first `N` trials of each model, which are balanced over the cells; 0 for all")
	choice(cmd, "suite", plan.Suites...)
	_ = cmd.MarkFlagFilename("providers", "yaml", "yml")
}

// experiment returns what was chosen: a file, a suite, or the quickstart.
func (c *chosen) experiment(args []string) (*plan.Experiment, error) {
	var e *plan.Experiment
	var err error
	switch {
	case c.limit < 0:
		return nil, usageError("--limit is %d, want a number of trials", c.limit)
	case c.suite != "" && len(args) > 0:
		return nil, usageError("both a file and --suite name an experiment\nhint: `assay suites %s` prints the suite as a file to edit", c.suite)
	case c.suite != "":
		if e, err = plan.Suite(c.suite); err == nil && len(c.models) == 0 {
			return nil, usageError("say which models to run the suite on\nhint: --model sim/optimal --model sim/obedient to try it without a key; --providers FILE for models of yours")
		}
	case len(args) > 0:
		e, err = plan.Load(args[0])
	default:
		e = plan.Quickstart()
	}
	if err == nil && len(c.models) > 0 {
		err = e.SetModels(c.models)
	}
	if err != nil {
		return nil, err
	}
	if c.providers != "" {
		e.SetProviders(c.providers)
	}
	return e, nil
}

func newSuites(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "suites [NAME]",
		Short: "List the built-in suites, or print one as a file",
		Long: `Suites lists the built-in experiments; each is run with assay run --suite NAME
--model MODEL. With a name it prints that suite as an experiment file, to read or to
begin one of your own with.`,
		Example: `  assay suites
  assay suites flawed > mine.yaml
  assay run --suite flawed --model sim/obedient`,
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
				fmt.Fprintf(p.out, "%-12s %s\n", name, summary(plan.SuiteFile(name)))
			}
			fmt.Fprintln(p.out, "\nNext: assay run --suite baseline --model sim/optimal")
			return nil
		},
	}
}

// summary is the first sentence of the comment that a suite's file begins with.
func summary(file []byte) string {
	var words []string
	for line := range strings.Lines(string(file)) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(text)...)
	}
	text := strings.Join(words, " ")
	if first, _, ok := strings.Cut(text, ". "); ok {
		return first + "."
	}
	return text
}
