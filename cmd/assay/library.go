package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/experiment/validate"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/task/library"
)

func newLibrary(p *process) *cobra.Command {
	return group("library", "Suites, task libraries and the schemas of files",
		"  assay library suites\n  assay library generate -o tasks.db\n"+
			"  assay library inspect tasks.db\n  assay library validate tasks.db",
		newSuites(p), newSchema(p), newGenerate(p), interruptible(p, newImport(p)),
		interruptible(p, newInspect(p)), newValidate(p), newCommit(p), newPhrase(p), newLibraryCall(p))
}

func newImport(p *process) *cobra.Command {
	opts := library.ImportOptions{}
	cmd := &cobra.Command{
		Use:   "import TASKS",
		Short: "Convert a JSON or YAML task library to a library file",
		Long: `Import reads a JSON task library or a YAML file of tasks, checks it, and writes the tasks that can run to a
library file. It reports every kind of problem with a count and an example, and
lists the tasks that it left out.`,
		Example: `  assay library import tasks.json --tools registry.json -o pilot.db
  assay library import tasks.yaml -o mine.db
  assay library inspect pilot.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if opts.Out == "" {
				return usageError("--output is missing\n"+
					"hint: assay library import %s -o library.db", args[0])
			}
			opts.Tasks = args[0]
			opts.Created, opts.Solvable = time.Now(), validate.Solvable
			r, err := library.Import(cmd.Context(), opts)
			if s := r.String(); s != "" && r.Read > 0 {
				fmt.Fprint(p.out, s)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(p.out, "\nNext: write `library: %s` in an experiment file\n", opts.Out)
			return nil
		},
	}
	cmd.Flags().StringVar(&opts.Tools, "tools", "",
		"the JSON tool registry `file`; the default is the built-in tools")
	cmd.Flags().StringVarP(&opts.Out, "output", "o", "", "the library `file` to write")
	cmd.Flags().StringVar(&opts.Difficulty, "difficulty", "easy",
		"the difficulty of tasks that don't have one")
	cmd.Flags().StringVar(&opts.Name, "name", "",
		"the library's name; the default is the name of the output")
	cmd.Flags().BoolVar(&opts.Force, "force", false, "replace an existing library file")
	choice(cmd, "difficulty", "very_easy", "easy", "medium", "hard", "very_hard")
	return cmd
}

func newInspect(p *process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect [LIBRARY]",
		Short: "Show what a library holds",
		Example: `  assay library inspect
  assay library inspect pilot.db`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			name := library.BuiltinName
			if len(args) == 1 {
				name = args[0]
			}
			lib, err := library.OpenNamed(cmd.Context(), name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, lib.Close()) }()
			counts, err := lib.Counts(cmd.Context())
			if err != nil {
				return err
			}
			meta := lib.Meta()
			return p.either(asJSON, map[string]any{
				"library": meta, "tools": lib.Catalog().Names(), "counts": counts,
			}, func() {
				fmt.Fprintf(p.out, "library %s  (%d tools, digest %s)\n%s\n\n",
					meta.Name, len(lib.Catalog().All()), meta.Digest, sanitize(meta.Source))
				if text := oldGrammar(meta); text != "" {
					p.say("Note: %s.", text)
					fmt.Fprintln(p.out)
				}
				t := document.NewTextTable("task type", "difficulty", "tasks")
				for _, c := range counts {
					t.Row(c.Type, c.Difficulty, fmt.Sprint(c.Tasks))
				}
				fmt.Fprintln(p.out, t)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
