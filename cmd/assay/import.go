package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/legacy"
	"github.com/assay-eval/assay/internal/store"
)

// legacyKind names the original's database among imports.
const legacyKind = "pilot master_database V3"

func newImports(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Take in what other systems found",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImportLegacy(p))
	return cmd
}

func newImportLegacy(p *process) *cobra.Command {
	var path string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "legacy FILE",
		Short: "Take in a master_database.json of the 2025 original, as aggregates",
		Long: `Legacy reads a database of the 2025 original, finds every contradiction in it, corrects
what its own fields tell the right value of, and stores both as aggregates of another
system. They are no trials: no rate, no coverage and no export of ours counts them, and
reports show them apart, labelled. Nothing is ever moved between models or cells.`,
		Example: `  assay import legacy master_database.json
  assay import legacy master_database.json --dry-run
  assay import legacy master_database.json --json | jq '.findings | length'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := readLegacy(args[0])
			if err != nil {
				return err
			}
			if !dry {
				if err := storeLegacy(cmd.Context(), path, args[0], d); err != nil {
					return err
				}
			}
			if asJSON {
				return json.NewEncoder(p.out).Encode(d)
			}
			_, err = fmt.Fprint(p.out, legacyText(d, path, dry))
			return err
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what is in the file, and store nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was read as one JSON object")
	return cmd
}

func readLegacy(path string) (*legacy.Database, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	d, err := legacy.Read(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return d, nil
}

func storeLegacy(ctx context.Context, path, file string, d *legacy.Database) (err error) {
	body, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.Import(ctx, store.Import{
		Kind: legacyKind, Name: filepath.Base(file), SHA256: d.Source, At: time.Now().UTC(), Program: version(), Body: body,
	})
}

func legacyText(d *legacy.Database, path string, dry bool) string {
	var b strings.Builder
	usable, corrected := 0, 0
	for i := range d.Aggregates {
		if d.Aggregates[i].Usable {
			usable++
			if d.Aggregates[i].Corrected != nil {
				corrected++
			}
		}
	}
	fmt.Fprintf(&b, "%d aggregates, %d usable, %d of these corrected; last updated %s\n", len(d.Aggregates), usable, corrected, d.LastUpdated)
	fmt.Fprintf(&b, "%d contradictions:\n\n", len(d.Findings))
	for _, k := range d.Summary(2) {
		fmt.Fprintf(&b, "%5d  %s: %s\n", k.Count, k.Kind, k.Meaning)
		for _, f := range k.Examples {
			fmt.Fprintf(&b, "         %s: %s; %s\n", f.Path, f.Message, f.Done)
		}
	}
	if dry {
		b.WriteString("\nNothing was stored.\n")
	} else {
		fmt.Fprintf(&b, "\n%s holds them apart from trials; `assay report` shows them, labelled.\n", path)
	}
	return b.String()
}
