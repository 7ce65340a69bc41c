package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/site"
	"github.com/assay-eval/assay/internal/store"
)

type publishFlags struct {
	stores      []string
	title       string
	transcripts int
	reveal      bool
	asJSON      bool
}

func newPublish(p *process) *cobra.Command {
	var f publishFlags
	cmd := &cobra.Command{
		Use:   "publish DIR [EXPERIMENT]...",
		Short: "Write a static site with leaderboard, figures, trials and method",
		Long: `Publish writes a site into a directory: a leaderboard, the report of each experiment, of each
of its models and conditions, and of each task, transcripts of some trials, trends over
revisions, and the method with versions and digests. Every figure is also in a file. The
pages need no server and load nothing from elsewhere, and all of them can be read without
scripts.

--store may be given several times. Without EXPERIMENT, all experiments are published. A
second publication into the same directory writes only the files that have changed, and
removes those that are gone; it leaves other files alone.

Private libraries are published without the texts of their tasks, unless --reveal asks for
them.`,
		Example: `  assay publish site
  assay publish site quickstart --title "Agents under failing tools"
  assay publish site --store monday.db --store tuesday.db
  assay publish site && python3 -m http.server -d site`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "" {
				return usageError("the directory has no name")
			}
			if f.transcripts < 0 {
				return usageError("--transcripts %d: want 0 or more", f.transcripts)
			}
			return publish(cmd.Context(), p, args[0], args[1:], &f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.stores, "store", []string{defaultStore}, "a `file` with results; may be given several times")
	_ = cmd.MarkFlagFilename("store", "db")
	flags.StringVar(&f.title, "title", "Results", "the title of the first page")
	flags.IntVar(&f.transcripts, "transcripts", 5, "pages with transcripts of failed trials, at most `N` per model")
	flags.BoolVar(&f.asJSON, "json", false, "print what changed as JSON")
	revealFlag(cmd, &f.reveal)
	cmd.ValidArgsFunction = func(c *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
		return namesIn(&f.stores[0], experimentNames)(c, nil, start)
	}
	return cmd
}

func publish(ctx context.Context, p *process, dir string, names []string, f *publishFlags) (err error) {
	s := site.Site{
		Title: f.title, Program: version(), Transcripts: f.transcripts, Reveal: f.reveal,
		Say: func(text string) {
			if p.errTerminal {
				fmt.Fprintf(p.err, "assay: %s\n", text)
			}
		},
		Warn: func(text string) { fmt.Fprintf(p.err, "assay: %s\n", text) },
	}
	wanted := make(map[string]bool)
	for i, path := range f.stores {
		for _, other := range f.stores[:i] {
			if same(path, other) {
				return usageError("--store %s and --store %s are the same file\nhint: leave out one", other, path)
			}
		}
		db, err := p.openToRead(ctx, path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		src := site.Source{DB: db, Path: path}
		if len(names) == 0 {
			src.Experiments, err = db.Experiments(ctx)
		} else {
			src.Experiments, err = named(ctx, db, names, wanted)
		}
		if err != nil {
			return err
		}
		s.Sources = append(s.Sources, src)
	}
	for _, name := range names {
		if !wanted[name] { // say which names there are
			_, err := query.FindExperiment(ctx, s.Sources[0].DB, name)
			return err
		}
	}
	changes, err := s.Publish(ctx, dir)
	if err != nil {
		return err
	}
	return p.either(f.asJSON, changes, func() {
		p.say("%s has %d files: %d written, %d removed, the others are as they were. Open %s/index.html.", dir,
			changes.Files, changes.Written, changes.Removed, dir)
	})
}

// same reports whether two paths lead to one file.
func same(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// named returns the experiments of a store that have some of the names, which it notes.
func named(ctx context.Context, db *store.DB, names []string, found map[string]bool) (some []store.Experiment, err error) {
	for _, name := range names {
		e, err := query.FindExperiment(ctx, db, name)
		if err != nil {
			continue
		}
		found[name] = true
		some = append(some, e)
	}
	return some, nil
}
