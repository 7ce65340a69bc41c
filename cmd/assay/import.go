package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/legacy"
	"github.com/assay-eval/assay/internal/store"
)

type importFlags struct {
	store       string
	dry, asJSON bool
}

func newImportLegacy(p *process) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Import a master_database.json of the 2025 original, as aggregates",
		Long: `Import reads a database of the 2025 original. It stores each leaf as an aggregate of
another system: its JSON as it is, and its counts, which are corrected if the leaf's other
fields determine them. Totals and summaries are not kept, because they follow from the
leaves. Aggregates are not trials: rates, coverage and exports exclude them, and reports
show them separately, with a label. Nothing is moved between models or cells.

Without FILE, it lists the databases in the store.`,
		Example: `  assay store import master_database.json
  assay store import master_database.json --dry-run
  assay store import master_database.json --json | jq '.aggregates | length'
  assay store import`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listLegacy(cmd.Context(), p, f)
			}
			return importLegacy(cmd.Context(), p, args[0], f)
		},
	}
	storeFlag(cmd, &f.store)
	cmd.Flags().BoolVar(&f.dry, "dry-run", false, "show what the file contains, and store nothing")
	cmd.Flags().BoolVar(&f.asJSON, "json", false,
		"print the imported data as one JSON object, or the list as an array")
	return cmd
}

// importLegacy stores and prints the contents of a file. It prints them even if the store has the
// file already.
func importLegacy(ctx context.Context, p *process, file string, f importFlags) error {
	d, err := readLegacy(ctx, file)
	if err != nil {
		return err
	}
	var imported error
	if !f.dry {
		imported = storeLegacy(ctx, f.store, file, d)
		if imported != nil && !errors.Is(imported, store.ErrImported) {
			return imported
		}
	}
	return errors.Join(p.either(f.asJSON, d, func() { writeLegacy(p.out, d, f) }), imported)
}

func readLegacy(ctx context.Context, path string) (*legacy.Database, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: file not found\nhint: name a database of the original benchmark, as JSON", path)
	}
	if err != nil {
		return nil, err
	}
	// Closing the file ends a read that waits for another program, for example at a pipe.
	stop := context.AfterFunc(ctx, func() { _ = f.Close() })
	d, err := legacy.Read(path, f)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return d, errors.Join(err, f.Close())
}

func storeLegacy(ctx context.Context, path, file string, d *legacy.Database) (err error) {
	db, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return d.Save(ctx, db, filepath.Base(file), version())
}

func writeLegacy(w io.Writer, d *legacy.Database, f importFlags) {
	var b strings.Builder
	usable, corrected := 0, 0
	reasons := make(map[string]int)
	for i := range d.Aggregates {
		reasons[d.Aggregates[i].Reason]++
		if d.Aggregates[i].Usable {
			usable++
			if d.Aggregates[i].Corrected != nil {
				corrected++
			}
		}
	}
	fmt.Fprintf(&b, "%s, %d usable, %d of these corrected; last updated %s\n\n",
		assay.Counted(len(d.Aggregates), "aggregate"), usable, corrected, sanitize(d.LastUpdated))
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(&b, "%5d  %s\n", reasons[reason], reason)
	}
	if f.dry {
		b.WriteString("\nNothing was stored.\n")
	} else {
		fmt.Fprintf(&b,
			"\n%s holds them, apart from trials; `assay report` shows them with a label.\n",
			f.store)
	}
	_, _ = io.WriteString(w, b.String()) // [run] reports errors of standard output
}

// An importLine is an entry in the list of imports.
type importLine struct {
	Name       string    `json:"name"`
	SHA256     string    `json:"sha256"`
	At         time.Time `json:"imported_at"`
	Aggregates int       `json:"aggregates"`
}

// listLegacy lists the databases of the original that a store holds.
func listLegacy(ctx context.Context, p *process, f importFlags) (err error) {
	if f.dry {
		return usageError("--dry-run shows what a file contains, but no file is named")
	}
	db, err := p.openToRead(ctx, f.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	databases, err := legacy.Stored(ctx, db)
	if err != nil {
		return err
	}

	all := []importLine{}
	for _, d := range databases {
		all = append(all, importLine{d.Name, d.SHA256, d.At, len(d.Aggregates)})
	}
	return p.either(f.asJSON, all, func() {
		for _, i := range all {
			fmt.Fprintf(p.out, "%s  %s: %s\n", i.At.Format(time.RFC3339), sanitize(i.Name),
				assay.Counted(i.Aggregates, "aggregate"))
		}
		if len(all) == 0 {
			fmt.Fprintf(p.out,
				"%s holds no database of the original; `assay store import FILE` imports one.\n",
				f.store)
		}
	})
}
