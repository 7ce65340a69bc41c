package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/validate"
	"github.com/assay-eval/assay/internal/task/fresh"
	"github.com/assay-eval/assay/internal/task/library"
)

func newGenerate(p *process) *cobra.Command {
	var out string
	var perType int
	var force bool
	var seed uint64
	var private bool
	var alternatives float64
	cmd := &cobra.Command{
		Use:   "generate -o LIBRARY.db",
		Short: "Generate a task library",
		Long: `Generate writes a number of tasks of each of the five types, each worded at five
difficulties. With --seed, it draws new tools and new tasks, which no model can
have seen; another seed gives others of the same difficulty. A later version of the
program may draw others, and reads all earlier files. --private draws a seed that
only the file knows. Reports, exports and pages then show IDs and
digests instead of the tasks, unless they are told to --reveal them. With
--alternatives 0.5, half of the new tools have a second one that does the same, so
that an agent can go on when one is down.

Without both, generate takes the thirty built-in tools and adds three biased
mixtures of the difficulties; the default number of tasks then gives the built-in
library, as a file. The same flags always give the same library, except --private.`,
		Example: `  assay library generate --seed 7 -o fresh.db
  assay library generate --private -o private.db
  assay library generate --tasks-per-type 500 -o large.db`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usageError("--output is missing\nhint: assay library generate -o library.db")
			}
			seeded := cmd.Flags().Changed("seed")
			if seeded && private {
				return usageError("--private draws a seed that nobody can guess\n" +
					"hint: leave out --seed")
			}
			switch {
			case !(alternatives >= 0 && alternatives <= 1): // also true for NaN
				return usageError("--alternatives is %v, want a share from 0 to 1", alternatives)
			case alternatives > 0 && !seeded && !private:
				return usageError("--alternatives is for new tools, and the built-in ones have none\n" +
					"hint: add --seed 7 or --private")
			}
			made, err := generated(seeded, seed, private, perType, alternatives)
			if err != nil {
				return &codedError{exitUsage, err}
			}
			switch there, err := os.Lstat(out); {
			case err != nil: // if the path cannot be written, creating the file reports that
			case there.IsDir():
				return fmt.Errorf("%s is a directory\nhint: name a file in it", out)
			case !force:
				return fmt.Errorf("%s already exists%s\n"+
					"hint: choose another file, or replace it with --force", out, grammarOf(cmd.Context(), out))
			}
			err = untilInterrupted(cmd.Context(), p, func(ctx context.Context) error {
				return library.Create(ctx, out, made.meta, made.tools, made.tasks)
			})
			if err != nil {
				return err
			}
			n := len(assay.TaskTypes) * perType
			fmt.Fprintf(p.out,
				"%s: %d descriptions of %d tasks\n"+
					"Next: write `library: %s` in an experiment file\n",
				out, n*len(made.difficulties), n, out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the library `file` to write")
	cmd.Flags().IntVar(&perType, "tasks-per-type", library.TasksPerType,
		"how many tasks of each type")
	cmd.Flags().Uint64Var(&seed, "seed", 0,
		"make new tools and tasks, different for each `number`")
	cmd.Flags().BoolVar(&private, "private", false,
		"draw a secret seed, and keep the tasks out of reports and exports")
	cmd.Flags().Float64Var(&alternatives, "alternatives", 0,
		"the `share` of new tools with a second one that does the same")
	cmd.Flags().BoolVar(&force, "force", false, "replace an existing file")
	return cmd
}

// fileContent is what a library file is made of.
type fileContent struct {
	meta  library.Meta
	tools []assay.Tool
	tasks iter.Seq[assay.Task]
	// difficulties are the difficulties and mixtures that each task has.
	difficulties []string
}

// generated returns the content of a library with new tools from a seed, or of one with the
// built-in tools.
func generated(
	seeded bool, seed uint64, private bool, perType int, alternatives float64,
) (c fileContent, err error) {
	if !seeded && !private {
		c.meta = library.Meta{Name: "generated", Source: fmt.Sprintf(
			"generator %s, %d tasks a type", library.GeneratorVersion, perType)}
		c.tools, c.difficulties = library.Tools(), validate.Difficulties
		c.tasks, err = library.GenerateN(perType)
		return c, err
	}
	text, shown := fmt.Sprint(seed), fmt.Sprint("seed ", seed)
	c.meta.Name = "fresh-" + text
	if private {
		text, shown = rand.Text(), "a private seed"
		c.meta.Name, c.meta.Key = "private", text
	}
	c.meta.Source = fmt.Sprintf("grammar %s, %s, %d tasks a type", fresh.Version, shown, perType)
	grammar := fresh.New(text)
	if alternatives > 0 {
		c.meta.Source += fmt.Sprintf(", alternatives %v", alternatives)
		grammar = grammar.WithSubstitutes(alternatives)
	}
	c.tools, c.difficulties = grammar.Tools(), assay.Difficulties
	c.tasks, err = grammar.Tasks(perType)
	return c, err
}

// oldGrammar says what to do with a library with new tools if another version of the grammar drew
// them. It returns "" for all other libraries.
func oldGrammar(meta library.Meta) string {
	version, _ := meta.Grammar()
	if version == "" || version == fresh.Version {
		return ""
	}
	return fmt.Sprintf("its tasks are of grammar %s, and a seed now gives those of grammar %s: "+
		"keep the file, which works as before", version, fresh.Version)
}

// grammarOf returns what [oldGrammar] says about a file, as the end of a sentence.
func grammarOf(ctx context.Context, path string) string {
	lib, err := library.Open(ctx, path)
	if err != nil { // it is no library
		return ""
	}
	defer lib.Close()
	if text := oldGrammar(lib.Meta()); text != "" {
		return "; " + text
	}
	return ""
}
