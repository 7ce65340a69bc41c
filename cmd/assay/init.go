package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
)

//go:embed example example-agent
var exampleFiles embed.FS

// An exampleFolder is a folder of files that init writes.
type exampleFolder struct {
	name, folder string
	next         string // the commands to try it
}

// examples lists the examples, the default first.
var examples = []exampleFolder{
	{"desk", "example", "assay run experiment.yaml"},
	{"my-agent", "example-agent", "assay check && assay run"},
}

func newInit(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "init [EXAMPLE] [DIR]",
		Short: "Write an example with tools and tasks of your own, or with an agent of your own",
		Long: `Init writes the files of an example, which runs at once without a key:

  desk      a support desk: five tools in Starlark, and twelve tasks that use them
  my-agent  an agent in Python, which needs nothing else, and an experiment with it

DIR is a directory named like the example if it is left out. Without EXAMPLE, init writes
the support desk to DIR, or to this directory. It never replaces a file.`,
		Example: `  assay init
  assay init desk
  assay init my-agent
  assay init my-agent agents/first`,
		Args:      cobra.MaximumNArgs(2),
		ValidArgs: []string{examples[0].name, examples[1].name},
		RunE: func(_ *cobra.Command, args []string) error {
			x, dir, err := chosenExample(args)
			if err != nil {
				return err
			}
			return x.write(p, dir)
		},
	}
}

// chosenExample returns the example and the directory that arguments name.
func chosenExample(args []string) (x exampleFolder, dir string, err error) {
	if len(args) == 0 {
		return examples[0], ".", nil
	}
	i := slices.IndexFunc(examples, func(x exampleFolder) bool { return x.name == args[0] })
	switch {
	case i >= 0:
		return examples[i], args[len(args)-1], nil
	case len(args) == 1:
		return examples[0], args[0], nil
	}
	var names []string
	for _, x := range examples {
		names = append(names, x.name)
	}
	return x, "", usageError("there is no example %q\nhint: %s", args[0],
		assay.NameHint(args[0], names))
}

// write writes the files of the example unless one of them exists.
func (x exampleFolder) write(p *process, dir string) error {
	files, err := fs.Sub(exampleFiles, x.folder)
	if err != nil {
		return err
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fmt.Errorf("%s already exists\n"+
				"hint: name a new directory, such as `assay init %s new-%[2]s`", path, x.name))
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		text, err := fs.ReadFile(files, e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o644); err != nil {
			return err
		}
	}
	run := x.next
	if dir != "." {
		run = fmt.Sprintf("cd %s && %s", dir, run)
	}
	fmt.Fprintf(p.out, "Wrote the %d files of the example %s to %s.\n\nNext: %s\n", len(entries), x.name, dir, run)
	return nil
}
