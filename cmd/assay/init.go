package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

//go:embed example
var exampleFiles embed.FS

func newInit(p *process) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write an example with tools and tasks of your own",
		Long: `Init writes the files of a support desk: five tools in Starlark, twelve tasks that use
them, and an experiment with simulated models, which runs at once without a key. It
never replaces a file.`,
		Example: `  assay init
  assay init my-agent`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return writeExample(p, dir)
		},
	}
}

// writeExample writes the files of the example unless one of them exists.
func writeExample(p *process, dir string) error {
	files, err := fs.Sub(exampleFiles, "example")
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
				"hint: name a new directory, such as `assay init support-desk`", path))
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
	run := "assay run experiment.yaml"
	if dir != "." {
		run = fmt.Sprintf("cd %s && %s", dir, run)
	}
	fmt.Fprintf(p.out, "Wrote %d files to %s.\n\nNext: %s\n", len(entries), dir, run)
	return nil
}
